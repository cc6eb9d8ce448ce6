/* features does with an event what its member "do" says: every part of headgate.h that the example does not use. */
#include "headgate.h"

static hg_text suffix; /* from the configuration, escapes and all */
static char changing[8];

static bool configure(hg_text config) {
	hg_text s;
	if (!hg_json_string(config, "suffix", &s)) {
		hg_log(HG_ERROR, HG_TEXT("no suffix"));
		return false;
	}
	suffix = hg_keep(s);
	return true;
}

static char *append(char *to, hg_text t) { return (char *)__builtin_memcpy(to, t.at, t.len) + t.len; }

static void replace(hg_text event, hg_result *r) {
	char *out = hg_alloc(event.len + suffix.len);
	append(append(out, event), suffix);
	hg_replace(r, (hg_text){out, event.len + suffix.len});
}

static void handle(hg_text event, hg_result *r) {
	hg_text v[3], what, arg;
	hg_json_values(event, v, "do", "arg", "a name that is longer than two vectors of 16");
	if (!hg_string(v[0], &what)) return;
	if (!hg_string(v[1], &arg)) arg = HG_TEXT("");

	if (hg_equal(what, HG_TEXT("reject"))) hg_reject(r, 7);
	if (hg_equal(what, HG_TEXT("replace"))) replace(event, r);
	if (hg_equal(what, HG_TEXT("replace by part"))) hg_replace(r, arg);
	if (hg_equal(what, HG_TEXT("empty key"))) hg_key(r, HG_TEXT(""));
	if (hg_equal(what, HG_TEXT("literal"))) hg_key(r, HG_TEXT("literal"));
	if (hg_equal(what, HG_TEXT("long name"))) hg_key(r, v[2]);
	if (hg_equal(what, HG_TEXT("header")) && hg_header("x-key", &arg)) hg_key(r, arg);
	if (hg_equal(what, HG_TEXT("no header")) && hg_header("x-ke", &arg)) hg_key(r, arg);
	if (hg_equal(what, HG_TEXT("arrived")) && hg_arrived() == 1234567890123456789) hg_key(r, HG_TEXT("then"));
	if (hg_equal(what, HG_TEXT("log"))) hg_log(HG_WARN, arg);
	if (hg_equal(what, HG_TEXT("count"))) hg_count(3, 5);
	if (hg_equal(what, HG_TEXT("trap"))) __builtin_trap();
	if (hg_equal(what, HG_TEXT("memory"))) hg_alloc(100 << 20);
	if (hg_equal(what, HG_TEXT("changing"))) { /* a key is copied when it is set */
		changing[0] = arg.at[0];
		hg_key(r, (hg_text){changing, 1});
	}
}

HG_PLUGIN(HG_SETS_KEYS | HG_REPLACES, handle, configure)
