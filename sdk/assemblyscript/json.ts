/* Members of JSON objects, found without parsing the rest. */
import { bytes } from "./memory";
import { Text } from "./text";

const QUOTE: u8 = 0x22;
const SLASH: u8 = 0x5c;
const COMMA: u8 = 0x2c;
const COLON: u8 = 0x3a;
const OPEN: u8 = 0x7b; // [ is that without the bit 0x20
const CLOSE: u8 = 0x7d; // ] too

/** Where a member is: its name without the quotes, and its value. */
@unmanaged
class Member {
  name: usize;
  nameEnd: usize;
  value: usize;
  valueEnd: usize;
  escaped: bool; // the name
}

// The members of the text scanned last.
export let scannedAt: usize = 0;
export let scannedLength: u32 = 0;
let members: usize = 0;
let count: usize = 0;
let room: usize = 0;

/** Forgets the text scanned last: its bytes change. */
export function forget(): void {
  scannedAt = 0;
  count = 0;
}

function grow(): void {
  room = max<usize>(2 * room, 64);
  const size = room * offsetof<Member>();
  members = members == 0 ? heap.alloc(size) : heap.realloc(members, size);
}

/** Finds the members of the object that the text is. */
export function scan(at: usize, length: u32): void {
  scannedAt = at;
  scannedLength = length;
  count = 0;
  const end = at + length;
  let p = space(at, end);
  if (p >= end || load<u8>(p) != OPEN) return;
  for (;;) {
    p = space(p + 1, end);
    if (p >= end || load<u8>(p) != QUOTE) return;
    const name = p + 1;
    const nameEnd = closing(name, end);
    const escapes = escaped;
    p = space(nameEnd + 1, end);
    if (p >= end || load<u8>(p) != COLON) return;
    const value = space(p + 1, end);
    if (value >= end) return;
    const first = load<u8>(value);
    if (first == QUOTE) p = closing(value + 1, end) + 1;
    else if ((first | 0x20) == OPEN) p = nested(value, end);
    else p = scalar(value, end);
    if (p > end || p == value) return; // not JSON
    if (count == room) grow();
    const m = changetype<Member>(members + count++ * offsetof<Member>());
    m.name = name;
    m.nameEnd = nameEnd;
    m.value = value;
    m.valueEnd = p;
    m.escaped = escapes;
    p = space(p, end);
    if (p >= end || load<u8>(p) != COMMA) return;
  }
}

/** The value of the member of that name in the text scanned last; null when there is none, or two. */
export function find(name: string): Text | null {
  let found: usize = 0;
  const end = members + count * offsetof<Member>();
  for (let at = members; at < end; at += offsetof<Member>()) {
    const m = changetype<Member>(at);
    if (m.escaped) {
      if (!unescaped(m.name, m.nameEnd).equals(name)) continue;
    } else if (!equal(m.name, m.nameEnd, name)) continue;
    if (found != 0) return null;
    found = at;
  }
  if (found == 0) return null;
  const m = changetype<Member>(found);
  return Text.at(m.value, <u32>(m.valueEnd - m.value));
}

/** Compares UTF-8 with a string, which is UTF-16. */
export function equal(p: usize, end: usize, s: string): bool {
  let q = changetype<usize>(s);
  const n = <usize>s.length;
  if (end - p < n) return false; // a character has at least as many bytes
  const last = q + 2 * n;
  for (; q < last; q += 2, p++) {
    const c = load<u16>(q);
    if (c >= 0x80) return equalWide(p, end, s, <i32>((q - changetype<usize>(s)) >> 1));
    if (p >= end || load<u8>(p) != c) return false;
  }
  return p == end;
}

function equalWide(p: usize, end: usize, s: string, i: i32): bool {
  const buffer = memory.data(4);
  while (i < s.length) {
    const c = s.codePointAt(i);
    i += c > 0xffff ? 2 : 1;
    const n = utf8(buffer, c) - buffer;
    if (end - p < n || memory.compare(p, buffer, n) != 0) return false;
    p += n;
  }
  return p == end;
}

/** The first place from p on that is not white space. */
// @ts-ignore: decorator
@inline
function space(p: usize, end: usize): usize {
  return load<u8>(p) > 0x20 ? p : spaces(p, end);
}

function spaces(p: usize, end: usize): usize {
  for (; p < end; p++) {
    const c = load<u8>(p);
    if (c != 0x20 && c != 0x0a && c != 0x0d && c != 0x09) break;
  }
  return p;
}

/** The end of the number or literal that begins at p. */
// @ts-ignore: decorator
@inline
function scalar(p: usize, end: usize): usize {
  for (; p < end; p++) {
    const c = load<u8>(p);
    if (c <= 0x20 || c == COMMA || (c | 0x20) == CLOSE) break;
  }
  return p;
}

/** The end of the object or array that begins at p; behind the end when it does not end. */
function nested(p: usize, end: usize): usize {
  let depth = 0;
  for (; p < end; p++) {
    const c = load<u8>(p);
    if (c == QUOTE) p = closing(p + 1, end);
    else if ((c | 0x20) == OPEN) depth++;
    else if ((c | 0x20) == CLOSE && --depth == 0) return p + 1;
  }
  return end + 1;
}

let escaped: bool = false; // the string that closing went through has escapes

/** The quote that closes the string whose content starts at p; the end when there is none. */
function closing(p: usize, end: usize): usize {
  escaped = false;
  while (p < end) {
    const hit = special(p);
    if (hit == 0) {
      p += 16;
      continue;
    }
    p += ctz(hit);
    if (p >= end) break;
    if (load<u8>(p) == QUOTE) return p;
    escaped = true;
    p += 2;
  }
  return end;
}

/** A mask of the quotes and backslashes in 16 bytes. */
// @ts-ignore: decorator
@inline
function special(p: usize): i32 {
  const v = v128.load(p);
  return i8x16.bitmask(v128.or(i8x16.eq(v, i8x16.splat(<i8>QUOTE)), i8x16.eq(v, i8x16.splat(<i8>SLASH))));
}

/** The content of a JSON string, given without its quotes. */
export function unescaped(p: usize, end: usize): Text {
  for (let q = p; q < end; q += 16) {
    const hit = special(q); // a quote within it is behind a backslash
    if (hit != 0 && q + ctz(hit) < end) return unescape(p, end);
  }
  return Text.at(p, <u32>(end - p));
}

/** It is never longer, but for a \u without digits, which makes 3 bytes of 2. */
function unescape(p: usize, end: usize): Text {
  const length = end - p;
  const out = bytes(length + length / 2 + 1);
  let o = out;
  while (p < end) {
    let c = load<u8>(p++);
    if (c == SLASH && p < end) {
      c = load<u8>(p++);
      switch (c) {
        case 0x62: c = 8; break;
        case 0x66: c = 12; break;
        case 0x6e: c = 10; break;
        case 0x72: c = 13; break;
        case 0x74: c = 9; break;
        case 0x75:
          o = utf8(o, unicode(p, end));
          p = behind;
          continue;
      }
    }
    store<u8>(o++, c);
  }
  return Text.at(out, <u32>(o - out));
}

let behind: usize = 0; // where unicode has read to

/** Reads what stands behind \u, 4 digits or a pair of surrogates. */
function unicode(p: usize, end: usize): i32 {
  const high = hex4(p, end);
  behind = p;
  if (high < 0) return 0xfffd;
  behind = p + 4;
  if (high < 0xd800 || high > 0xdfff) return high;
  if (high > 0xdbff || end - behind < 6 || load<u8>(behind) != SLASH || load<u8>(behind, 1) != 0x75) return 0xfffd;
  const low = hex4(behind + 2, end);
  if (low < 0xdc00 || low > 0xdfff) return 0xfffd;
  behind += 6;
  return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

function hex4(p: usize, end: usize): i32 {
  if (p > end || end - p < 4) return -1;
  let v = 0;
  for (let i: usize = 0; i < 4; i++) {
    const c = <i32>load<u8>(p + i);
    const letter = c | 0x20;
    if (c >= 0x30 && c <= 0x39) v = (v << 4) | (c - 0x30);
    else if (letter >= 0x61 && letter <= 0x66) v = (v << 4) | (letter - 0x61 + 10);
    else return -1;
  }
  return v;
}

/** Writes a character as UTF-8 and returns where the next one goes. */
function utf8(o: usize, c: i32): usize {
  if (c < 0x80) {
    store<u8>(o, <u8>c);
    return o + 1;
  }
  const more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  store<u8>(o++, <u8>((c >> (6 * more)) | (0xff00 >> (more + 1))));
  for (let i = more - 1; i >= 0; i--) store<u8>(o++, <u8>(0x80 | ((c >> (6 * i)) & 0x3f)));
  return o;
}
