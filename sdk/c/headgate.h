/*
 * headgate.h is what a Headgate plugin in C includes: it does the plugin's side of the ABI (sdk/abi), so that a
 * plugin is one function that sees each event. Nothing else is linked, not even a C library:
 *
 *     #include "headgate.h"
 *
 *     static void route(hg_text event, hg_result *r) {
 *         hg_text user;
 *         if (hg_json_string(event, "user", &user)) hg_key(r, user);
 *     }
 *
 *     HG_PLUGIN(HG_SETS_KEYS, route, NULL)
 *
 *     clang-19 --target=wasm32 -O3 -msimd128 -mbulk-memory -nostdlib -ffreestanding -Wl,--no-entry \
 *         -Wl,-z,stack-size=65536 -I path/to/sdk/c -o user.wasm user.c
 *
 * An instance runs on one thread, events come in their order, and what a static variable keeps is lost with the
 * instance: there are several, and a trap ends one. Without -msimd128 everything works, slower.
 */
#ifndef HEADGATE_H
#define HEADGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __wasm_simd128__
#include <wasm_simd128.h>
#endif

#define HG__INLINE static inline __attribute__((always_inline, unused))
#define HG__RARE static __attribute__((noinline, cold, unused))
#define HG__EXPORT(name) __attribute__((export_name(name), visibility("default")))
#define HG__IMPORT(name) __attribute__((import_module("hg"), import_name(name)))

/* ---- What a plugin uses ---- */

/* hg_text is bytes that belong to somebody else; at is not NULL unless len is 0. */
typedef struct {
	const char *at;
	uint32_t len;
} hg_text;

/* HG_TEXT is a literal as hg_text. */
#define HG_TEXT(literal) ((hg_text){(literal), sizeof(literal) - 1})

/* Capabilities: what a plugin does, to be combined with |. */
enum {
	HG_SETS_KEYS = 1 << 0,
	HG_DROPS = 1 << 1,
	HG_REPLACES = 1 << 2,
	HG_KEEPS_STATE = 1 << 3,   /* results depend on earlier events */
	HG_DETERMINISTIC = 1 << 4, /* the same event always gives the same result */
};

/* hg_result is what becomes of one event, set by the functions below. As it comes it keeps the event, keyless. */
typedef struct {
	uint32_t key;
	uint16_t key_len;
	uint8_t verdict, code;
	uint32_t value, value_len;
} hg_result;

/*
 * HG_PLUGIN defines the exports of the module; it stands once, behind what it names:
 *
 *     static void handle(hg_text event, hg_result *r)   sees each event; its bytes are lent until the next batch
 *     static bool configure(hg_text config)             gets the configuration, once, before the first event: the
 *                                                       JSON object of the activation, empty when there is none;
 *                                                       it stays. false refuses the activation: log why. Or NULL.
 */
#define HG_PLUGIN(capabilities, handle, configure) \
	HG__EXPORT("hg_abi_v1") uint32_t hg__export_abi_v1(void) { return (capabilities); } \
	HG__EXPORT("hg_alloc") char *hg__export_alloc(uint32_t size, uint32_t align) { return hg__alloc(size, align); } \
	HG__EXPORT("hg_free") void hg__export_free(char *at, uint32_t size) { hg__free(at, size); } \
	HG__EXPORT("hg_init") int32_t hg__export_init(const char *at, uint32_t len) { \
		return hg__start(configure, (hg_text){at, len}); \
	} \
	HG__EXPORT("hg_process") int32_t hg__export_process(hg__control *c) { return hg__process(c, handle); }

/* hg_key sets the event's key, of at most 1024 bytes; an empty one is a key, too. Bytes outside of the batch are
 * copied. */
HG__INLINE void hg_key(hg_result *r, hg_text key);

/* hg_drop filters the event out, which is no error. */
HG__INLINE void hg_drop(hg_result *r);

/* hg_reject refuses the event; the client is told the reason, a number of the plugin's own. */
HG__INLINE void hg_reject(hg_result *r, uint8_t reason);

/* hg_replace gives the event new bytes; those outside of the batch are copied. On JSON streams they must be JSON. */
HG__INLINE void hg_replace(hg_result *r, hg_text value);

/*
 * hg_json_values finds members of a JSON object in one pass:
 *
 *     hg_text v[2];
 *     hg_json_values(event, v, "status", "user");
 *
 * A value is given as it stands there, strings with their quotes. Its len is 0 when text is no object, has no such
 * member, or has it twice: which one is meant is ambiguous, and the gateway's own extractor refuses such an event.
 * Names are compared after unescaping. The text is taken to be valid JSON, as that of events of a JSON stream is;
 * of any other text a value is some part of it, or none. 64 bytes behind the text must be readable, as they are
 * behind events, the configuration, static data and what hg_alloc returns.
 */
#define hg_json_values(text, values, ...) \
	hg__values(text, values, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* hg_string gives the content of a value that is a string, unescaped; it is false for any other value. The bytes are
 * part of the value, or valid until the next batch: see hg_keep. A surrogate without its other half becomes U+FFFD. */
HG__INLINE bool hg_string(hg_text value, hg_text *content);

/* hg_int gives a value that is a whole number, written without fraction and exponent, that an int64_t holds; it is
 * false for any other value. */
HG__INLINE bool hg_int(hg_text value, int64_t *number);

/* hg_json_string and hg_json_int are for a single member. */
HG__INLINE bool hg_json_string(hg_text text, const char *name, hg_text *content);
HG__INLINE bool hg_json_int(hg_text text, const char *name, int64_t *number);

/* hg_header gives the request's first header of that name, which is in lower case; false when it has none.
 * Credentials (authorization, cookie) are never there. */
HG__INLINE bool hg_header(const char *name, hg_text *value);

/* hg_arrived is when the request came in, in unix nanoseconds. */
HG__INLINE int64_t hg_arrived(void);

/* hg_equal reports whether two texts have the same bytes. */
HG__INLINE bool hg_equal(hg_text a, hg_text b);

/* hg_alloc returns n bytes that are valid until the next batch. It never returns NULL: it traps when there is no
 * memory left, and the event goes by the plugin's on_error. */
HG__INLINE char *hg_alloc(uint32_t n);

/* hg_keep copies a text for good; to be used in configure. */
HG__INLINE hg_text hg_keep(hg_text text);

enum { HG_DEBUG, HG_INFO, HG_WARN, HG_ERROR };

/* hg_log writes a line of at most 1 KiB to the gateway's log. The plugin's instances may log 100 lines a second
 * together; the rest is counted. */
HG__INLINE void hg_log(uint32_t level, hg_text line);

/* hg_count adds to one of the plugin's counters, 0 to 31, which are shown in the gateway's metrics. */
HG__INLINE void hg_count(uint32_t counter, int64_t delta);

/* ---- How it works ---- */

HG__IMPORT("log") void hg__log(uint32_t level, const char *at, uint32_t len);
HG__IMPORT("counter") void hg__counter(uint32_t id, int64_t delta);

typedef struct {
	uint32_t off, len;
} hg__event;

/* The control block, as sdk/abi describes it. done is volatile: the host reads it after a trap. */
typedef struct {
	uint32_t size, count, first;
	volatile uint32_t done;
	const char *data;
	uint32_t data_len;
	const hg__event *events;
	hg_result *results;
	int64_t now;
	uint32_t flags, stream;
	const char *headers;
	uint32_t headers_len, budget, zero;
} hg__control;

_Static_assert(sizeof(hg__control) == 64 && sizeof(hg_result) == 16, "the layouts of ABI version 1");

enum { HG__DROP = 1, HG__REJECT = 2, HG__REPLACE = 3 };

/* The quotes of a text, one after the other, those behind a backslash left out. A text is looked at in blocks of 64
 * bytes, of which a mask has a bit for each byte. */
typedef struct {
	const char *block, *end; /* the block that mask is of; the text's end */
	uint64_t mask;           /* the block's quotes that were not taken yet */
} hg__quotes;

/* A member of a JSON object: its name as it stands there, without the quotes, and its value. The end of a number or
 * a literal is found when it is wanted: NULL until then. */
typedef struct {
	hg_text name;
	const char *value, *end;
} hg__member;

static struct {
	hg__control *control; /* of the batch at hand */
	uintptr_t top;        /* memory from here on is not the host's */
	uintptr_t scratch;    /* memory from here on is free */
	uint64_t carry;       /* 1: the block at hand ends in a backslash that escapes the next byte */
	bool escapes;         /* the text at hand has a backslash */
} hg__g;

/* -- memory: what the host asked for from below, and above it what is forgotten with each batch -- */

extern char __heap_base;

#define HG__PAGE 65536u
#define HG__SLACK 64u /* readable bytes behind everything, for reads of whole vectors */

/* hg__reach makes memory up to end usable. */
HG__INLINE bool hg__reach(uint64_t end) {
	uint64_t size = (uint64_t)__builtin_wasm_memory_size(0) * HG__PAGE;
	if (end + HG__SLACK <= size) return true;
	uint64_t more = (end + HG__SLACK - size + HG__PAGE - 1) / HG__PAGE;
	return more < 65536 && __builtin_wasm_memory_grow(0, (size_t)more) != (size_t)-1;
}

HG__INLINE char *hg__alloc(uint32_t size, uint32_t align) {
	if (size == 0 || align == 0 || (align & (align - 1)) != 0) return NULL;
	if (hg__g.top == 0) hg__g.top = (uintptr_t)&__heap_base;
	uint64_t at = ((uint64_t)hg__g.top + align - 1) & ~(uint64_t)(align - 1);
	if (!hg__reach(at + size)) return NULL;
	hg__g.top = hg__g.scratch = (uintptr_t)(at + size);
	return (char *)(uintptr_t)at;
}

/* hg__free gives the last region back, which is the one that grows. */
HG__INLINE void hg__free(char *at, uint32_t size) {
	if ((uintptr_t)at + size == hg__g.top) hg__g.top = hg__g.scratch = (uintptr_t)at;
}

HG__INLINE char *hg_alloc(uint32_t n) {
	uintptr_t at = hg__g.scratch;
	if (!hg__reach((uint64_t)at + n)) __builtin_trap();
	hg__g.scratch = at + n;
	return (char *)at;
}

HG__RARE const char *hg__copy(hg_text text) {
	return __builtin_memcpy(hg_alloc(text.len), text.at, text.len);
}

HG__INLINE hg_text hg_keep(hg_text text) {
	if (text.len == 0) return text;
	hg__g.top = hg__g.scratch; /* the text itself may lie there, and others to be kept */
	char *at = hg__alloc(text.len, 1);
	if (at == NULL) __builtin_trap();
	return (hg_text){__builtin_memcpy(at, text.at, text.len), text.len};
}

/* hg__stable is an address, not 0, of the text's bytes that is valid until the next batch. */
HG__INLINE uint32_t hg__stable(hg_text text) {
	if (text.len == 0) return (uint32_t)(uintptr_t)hg__g.control;
	bool in_batch = (uintptr_t)text.at - (uintptr_t)hg__g.control->data < hg__g.control->data_len;
	return (uint32_t)(uintptr_t)(in_batch ? text.at : hg__copy(text));
}

/* -- texts -- */

HG__INLINE uint32_t hg__length(const char *name) {
	if (__builtin_constant_p(__builtin_strlen(name))) return __builtin_strlen(name);
	uint32_t n = 0;
	while (name[n] != 0) n++;
	return n;
}

#ifdef __wasm_simd128__

/* hg__first16 is a mask of n bits, at most 16. */
HG__INLINE uint32_t hg__first16(uint32_t n) { return n < 16 ? (1u << n) - 1 : 0xFFFF; }

HG__INLINE bool hg_equal(hg_text a, hg_text b) {
	if (a.len != b.len) return false;
	for (uint32_t i = 0; i < a.len; i += 16) {
		uint32_t differ = ~wasm_i8x16_bitmask(wasm_i8x16_eq(wasm_v128_load(a.at + i), wasm_v128_load(b.at + i)));
		if ((differ & hg__first16(a.len - i)) != 0) return false;
	}
	return true;
}

HG__INLINE bool hg__has_escape(hg_text raw) {
	for (uint32_t i = 0; i < raw.len; i += 16) {
		uint32_t slashes = wasm_i8x16_bitmask(wasm_i8x16_eq(wasm_v128_load(raw.at + i), wasm_i8x16_splat('\\')));
		if ((slashes & hg__first16(raw.len - i)) != 0) return true;
	}
	return false;
}

#else

HG__INLINE bool hg_equal(hg_text a, hg_text b) {
	if (a.len != b.len) return false;
	for (uint32_t i = 0; i < a.len; i++)
		if (a.at[i] != b.at[i]) return false;
	return true;
}

HG__INLINE bool hg__has_escape(hg_text raw) {
	for (uint32_t i = 0; i < raw.len; i++)
		if (raw.at[i] == '\\') return true;
	return false;
}

#endif

HG__INLINE const char *hg__skip(const char *p, const char *end) {
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
	return p;
}

HG__INLINE int32_t hg__hex4(const char *p, const char *end) {
	int32_t v = 0;
	if (end - p < 4) return -1;
	for (int i = 0; i < 4; i++) {
		char c = p[i], letter = c | 0x20;
		if (c >= '0' && c <= '9') v = v << 4 | (c - '0');
		else if (letter >= 'a' && letter <= 'f') v = v << 4 | (letter - 'a' + 10);
		else return -1;
	}
	return v;
}

HG__INLINE char *hg__utf8(char *out, int32_t c) {
	int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	*out++ = (char)(more == 0 ? c : c >> 6 * more | 0xFF00 >> (more + 1));
	while (more-- > 0) *out++ = (char)(0x80 | (c >> 6 * more & 0x3F));
	return out;
}

/* hg__unicode reads what stands behind \u, 4 digits or a pair of surrogates, and moves *p behind it. */
HG__INLINE int32_t hg__unicode(const char **p, const char *end) {
	int32_t c = hg__hex4(*p, end);
	if (c < 0) return 0xFFFD;
	*p += 4;
	if (c < 0xD800 || c > 0xDFFF) return c;
	if (c > 0xDBFF || end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u') return 0xFFFD;
	int32_t low = hg__hex4(*p + 2, end);
	if (low < 0xDC00 || low > 0xDFFF) return 0xFFFD;
	*p += 6;
	return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
}

/* hg__unescape returns the content of a JSON string, given without its quotes. It is never longer, but for a \u
 * without digits, which makes 3 bytes of 2. */
HG__RARE hg_text hg__unescape(hg_text raw) {
	char *out = hg_alloc(raw.len + raw.len / 2), *o = out;
	for (const char *p = raw.at, *end = p + raw.len; p < end;) {
		char c = *p++;
		if (c != '\\' || p == end) {
			*o++ = c;
			continue;
		}
		switch (c = *p++) {
		case 'b': *o++ = '\b'; break;
		case 'f': *o++ = '\f'; break;
		case 'n': *o++ = '\n'; break;
		case 'r': *o++ = '\r'; break;
		case 't': *o++ = '\t'; break;
		case 'u': o = hg__utf8(o, hg__unicode(&p, end)); break;
		default: *o++ = c;
		}
	}
	return (hg_text){out, (uint32_t)(o - out)};
}

/* -- quotes: a text is looked at in blocks of 64 bytes, of which masks have a bit for each byte -- */

#ifdef __wasm_simd128__

HG__INLINE uint64_t hg__bits(v128_t a, v128_t b, v128_t c, v128_t d) {
	uint32_t low = wasm_i8x16_bitmask(a) | wasm_i8x16_bitmask(b) << 16;
	uint32_t high = wasm_i8x16_bitmask(c) | wasm_i8x16_bitmask(d) << 16;
	return (uint64_t)high << 32 | low;
}

HG__INLINE uint64_t hg__block(const char *p, uint64_t *slashes) {
	v128_t a = wasm_v128_load(p), b = wasm_v128_load(p + 16), c = wasm_v128_load(p + 32), d = wasm_v128_load(p + 48);
	v128_t slash = wasm_i8x16_splat('\\'), quote = wasm_i8x16_splat('"');
	v128_t sa = wasm_i8x16_eq(a, slash), sb = wasm_i8x16_eq(b, slash);
	v128_t sc = wasm_i8x16_eq(c, slash), sd = wasm_i8x16_eq(d, slash);
	*slashes = 0;
	if (wasm_v128_any_true(wasm_v128_or(wasm_v128_or(sa, sb), wasm_v128_or(sc, sd)))) *slashes = hg__bits(sa, sb, sc, sd);
	return hg__bits(wasm_i8x16_eq(a, quote), wasm_i8x16_eq(b, quote), wasm_i8x16_eq(c, quote), wasm_i8x16_eq(d, quote));
}

#else

HG__INLINE uint64_t hg__block(const char *p, uint64_t *slashes) {
	uint64_t quotes = 0;
	*slashes = 0;
	for (uint32_t i = 0; i < 64; i++) {
		quotes |= (uint64_t)(p[i] == '"') << i;
		*slashes |= (uint64_t)(p[i] == '\\') << i;
	}
	return quotes;
}

#endif

/* hg__escaped are the bytes behind a backslash that is not itself behind one. A run of backslashes that begins at
 * an odd place escapes the even ones, and the other way round; adding a run's first bit to it finds its end.
 * (Langdale and Lemire, Parsing gigabytes of JSON per second, 2019, section 3.1.1.) */
HG__INLINE uint64_t hg__escaped(uint64_t slashes) {
	const uint64_t even = 0x5555555555555555;
	slashes &= ~hg__g.carry;
	uint64_t follows = slashes << 1 | hg__g.carry, odd = slashes & ~even & ~follows, runs;
	hg__g.carry = __builtin_add_overflow(odd, slashes, &runs);
	return (even ^ runs << 1) & follows;
}

/* hg__quote is the next quote; it stays the next until hg__take. The text's end when there is none. */
HG__INLINE const char *hg__quote(hg__quotes *q) {
	while (q->mask == 0) {
		if (q->end - q->block <= 64) return q->end;
		uint64_t slashes;
		q->block += 64;
		q->mask = hg__block(q->block, &slashes);
		if (q->end - q->block < 64) {
			uint64_t inside = ((uint64_t)1 << (q->end - q->block)) - 1;
			q->mask &= inside;
			slashes &= inside;
		}
		if (__builtin_expect((slashes | hg__g.carry) != 0, 0)) {
			q->mask &= ~hg__escaped(slashes);
			hg__g.escapes = true;
		}
	}
	return q->block + __builtin_ctzll(q->mask);
}

HG__INLINE void hg__take(hg__quotes *q) { q->mask &= q->mask - 1; }

/* -- members of an object -- */

/* hg__nested is the end of the object or array that begins at p; the text's end when it does not end. */
HG__INLINE const char *hg__nested(hg__quotes *q, const char *p) {
	for (int32_t depth = 0;;) {
		const char *quote = hg__quote(q);
		for (; p < quote; p++) {
			char c = *p | 0x20; /* makes { of [ and } of ] */
			if (c == '{') depth++;
			if (c == '}' && --depth == 0) return p + 1;
		}
		if (p >= q->end) return p;
		hg__take(q);
		p = hg__quote(q) + 1;
		hg__take(q);
	}
}

/* hg__scalar is the end of the number or literal that begins at p. */
HG__INLINE const char *hg__scalar(const char *p, const char *end) {
	while (p < end && *p > ' ' && *p != ',' && (*p | 0x20) != '}') p++;
	return p;
}

/* hg__first goes to the first member of the object that text is. */
HG__INLINE hg__quotes hg__first(hg_text text) {
	const char *end = text.at + text.len, *p = hg__skip(text.at, end);
	if (p >= end || *p != '{') end = text.at;
	hg__g.carry = 0;
	hg__g.escapes = false;
	return (hg__quotes){text.at - 64, end, 0};
}

/* hg__next reads a member and goes to the next one: the first quote behind a value is that of a name. */
HG__INLINE bool hg__next(hg__quotes *q, hg__member *m) {
	const char *open = hg__quote(q);
	hg__take(q);
	const char *close = hg__quote(q);
	hg__take(q);
	const char *colon = close + 1;
	if (__builtin_expect(colon < q->end && *colon != ':', 0)) colon = hg__skip(colon, q->end);
	const char *value = colon + 1;
	if (__builtin_expect(value < q->end && *value <= ' ', 0)) value = hg__skip(value, q->end);
	if (value >= q->end || *colon != ':') return false;
	*m = (hg__member){{open + 1, (uint32_t)(close - open - 1)}, value, NULL};
	if (*value == '"') {
		hg__quote(q); /* the one at value, which may be the first of a block */
		hg__take(q);
		m->end = hg__quote(q) + 1;
		hg__take(q);
	} else if ((*value | 0x20) == '{') {
		m->end = hg__nested(q, value);
	}
	return m->end <= q->end;
}

HG__INLINE void hg__values(hg_text text, hg_text *values, const char *const *names, uint32_t n) {
	hg__quotes q = hg__first(text);
	for (uint32_t i = 0; i < n; i++) values[i] = (hg_text){NULL, 0};
	for (hg__member m; hg__next(&q, &m);) {
		if (__builtin_expect(hg__g.escapes, 0) && hg__has_escape(m.name)) m.name = hg__unescape(m.name);
		for (uint32_t i = 0; i < n; i++) {
			if (!hg_equal(m.name, (hg_text){names[i], hg__length(names[i])})) continue;
			if (values[i].at != NULL) {
				values[i].len = 0; /* twice; at stays for a third */
				continue;
			}
			if (m.end == NULL) m.end = hg__scalar(m.value, q.end);
			values[i] = (hg_text){m.value, (uint32_t)(m.end - m.value)};
		}
	}
}

HG__INLINE bool hg_string(hg_text value, hg_text *content) {
	if (value.len < 2 || value.at[0] != '"') return false;
	hg_text raw = {value.at + 1, value.len - 2};
	*content = hg__has_escape(raw) ? hg__unescape(raw) : raw;
	return true;
}

HG__INLINE bool hg_int(hg_text value, int64_t *number) {
	bool minus = value.len > 0 && value.at[0] == '-';
	uint64_t v = 0, limit = (uint64_t)INT64_MAX + minus;
	for (uint32_t i = minus; i < value.len; i++) {
		uint64_t digit = (uint64_t)(uint8_t)value.at[i] - '0';
		if (digit > 9 || v > INT64_MAX / 10) return false;
		v = v * 10 + digit;
		if (v > limit) return false;
	}
	*number = (int64_t)(minus ? -v : v);
	return value.len > minus;
}

HG__INLINE bool hg_json_string(hg_text text, const char *name, hg_text *content) {
	hg_text value;
	hg_json_values(text, &value, name);
	return hg_string(value, content);
}

HG__INLINE bool hg_json_int(hg_text text, const char *name, int64_t *number) {
	hg_text value;
	hg_json_values(text, &value, name);
	return hg_int(value, number);
}

/* -- batches -- */

HG__INLINE void hg_key(hg_result *r, hg_text key) {
	r->key = hg__stable(key);
	r->key_len = (uint16_t)(key.len < 0xFFFF ? key.len : 0xFFFF); /* too long either way */
}

HG__INLINE void hg_drop(hg_result *r) { r->verdict = HG__DROP; }

HG__INLINE void hg_reject(hg_result *r, uint8_t reason) {
	r->verdict = HG__REJECT;
	r->code = reason;
}

HG__INLINE void hg_replace(hg_result *r, hg_text value) {
	r->verdict = HG__REPLACE;
	r->value = hg__stable(value);
	r->value_len = value.len;
}

HG__INLINE hg_text hg__text16(const char *p) { return (hg_text){p + 2, (uint32_t)(uint8_t)p[0] | (uint32_t)(uint8_t)p[1] << 8}; }

HG__INLINE bool hg_header(const char *name, hg_text *value) {
	hg_text want = {name, hg__length(name)};
	const char *p = hg__g.control->headers, *end = p + hg__g.control->headers_len;
	while (p < end) {
		hg_text n = hg__text16(p), v = hg__text16(n.at + n.len);
		if (hg_equal(n, want)) {
			*value = v;
			return true;
		}
		p = v.at + v.len;
	}
	return false;
}

HG__INLINE int64_t hg_arrived(void) { return hg__g.control->now; }
HG__INLINE void hg_log(uint32_t level, hg_text line) { hg__log(level, line.at, line.len); }
HG__INLINE void hg_count(uint32_t counter, int64_t delta) { hg__counter(counter, delta); }

HG__INLINE int32_t hg__start(bool (*configure)(hg_text), hg_text config) {
	return configure == NULL || configure(config) ? 0 : 1;
}

HG__INLINE int32_t hg__process(hg__control *c, void (*handle)(hg_text, hg_result *)) {
	hg__g.control = c;
	hg__g.scratch = hg__g.top;
	for (uint32_t i = c->first; i < c->count; i++) {
		c->done = i;
		hg_text event = {c->data + c->events[i].off, c->events[i].len};
		hg_result r = {0};
		handle(event, &r);
		c->results[i] = r;
	}
	c->done = c->count;
	return 0;
}

#endif
