//! Members of JSON objects, found without parsing the rest.

use crate::memory::MEMORY;
use core::ops::Deref;

/// Bytes that belong to somebody else: an event, the configuration, a value in one of them. The methods take them for
/// JSON that is valid, as that of events of a JSON stream is; of other text a value is some part of it, or none.
#[derive(Clone, Copy)]
pub struct Text<'b>(pub &'b [u8]);

impl<'b> Text<'b> {
    /// Finds members of a JSON object in one pass:
    ///
    /// ```ignore
    /// let [status, user] = event.json_values(["status", "user"]);
    /// ```
    ///
    /// A value is given as it stands there, strings with their quotes. It is empty when the text is no object, has no
    /// such member, or has it twice: which one is meant is ambiguous, and the gateway's own extractor refuses such an
    /// event. Names are compared after unescaping.
    #[inline]
    pub fn json_values<const N: usize>(self, names: [&str; N]) -> [Text<'b>; N] {
        let mut values: [Text<'b>; N] = [Text(&[]); N];
        let mut seen = [false; N];
        members(self.0, |name, value| {
            for i in 0..N {
                if !equal(name, names[i].as_bytes()) {
                    continue;
                }
                values[i] = if seen[i] { Text(&[]) } else { value };
                seen[i] = true;
            }
        });
        values
    }

    /// The content of a member that is a string, unescaped; `None` for any other.
    #[inline]
    pub fn json_string(self, name: &str) -> Option<&'b [u8]> {
        let [value] = self.json_values([name]);
        value.string()
    }

    /// A member that is a whole number, written without fraction and exponent; `None` for any other.
    #[inline]
    pub fn json_int(self, name: &str) -> Option<i64> {
        let [value] = self.json_values([name]);
        value.int()
    }

    /// The content of a value that is a string, unescaped. A surrogate without its other half becomes U+FFFD.
    #[inline]
    pub fn string(self) -> Option<&'b [u8]> {
        if self.0.len() < 2 || self.0[0] != b'"' {
            return None;
        }
        Some(unescaped(&self.0[1..self.0.len() - 1]))
    }

    /// A value that is a whole number that an i64 holds, written without fraction and exponent.
    #[inline]
    pub fn int(self) -> Option<i64> {
        let (minus, digits) = match self.0.first()? {
            b'-' => (true, &self.0[1..]),
            _ => (false, self.0),
        };
        if digits.is_empty() {
            return None;
        }
        let mut v: i64 = 0;
        for c in digits {
            let d = c.wrapping_sub(b'0');
            if d > 9 {
                return None;
            }
            let d = if minus { -(d as i64) } else { d as i64 };
            v = v.checked_mul(10)?.checked_add(d)?;
        }
        Some(v)
    }
}

impl Deref for Text<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0
    }
}

impl AsRef<[u8]> for Text<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}

/// Calls visit with the name, unescaped, and the value of each member of the object that text is.
#[inline(always)]
fn members<'b>(text: &'b [u8], mut visit: impl FnMut(&[u8], Text<'b>)) {
    let mut i = space(text, 0);
    if at(text, i) != b'{' {
        return;
    }
    loop {
        i = space(text, i + 1);
        if at(text, i) != b'"' {
            return;
        }
        let open = i + 1;
        let (close, escaped) = closing(text, open);
        i = space(text, close + 1);
        if at(text, i) != b':' {
            return;
        }
        let value = space(text, i + 1);
        i = match at(text, value) {
            b'"' => closing(text, value + 1).0 + 1,
            b'{' | b'[' => nested(text, value),
            _ => scalar(text, value),
        };
        if i > text.len() || i == value {
            return; // not JSON
        }
        let name = &text[open..close];
        visit(if escaped { unescaped(name) } else { name }, Text(&text[value..i]));
        i = space(text, i);
        if at(text, i) != b',' {
            return;
        }
    }
}

/// Compares names, which are short: the comparison of slices is a call of memcmp.
#[inline(always)]
fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut differ = 0;
    for i in 0..a.len() {
        differ |= a[i] ^ b[i];
    }
    differ == 0
}

/// text[i], or 0 behind the end.
#[inline(always)]
fn at(text: &[u8], i: usize) -> u8 {
    if i < text.len() {
        text[i]
    } else {
        0
    }
}

/// The index of the first byte from i on that is not white space.
#[inline(always)]
fn space(text: &[u8], i: usize) -> usize {
    if at(text, i) > b' ' {
        return i;
    }
    spaces(text, i)
}

#[inline(never)]
fn spaces(text: &[u8], mut i: usize) -> usize {
    while matches!(at(text, i), b' ' | b'\n' | b'\r' | b'\t') {
        i += 1;
    }
    i
}

/// The end of the number or literal that begins at i.
#[inline(always)]
fn scalar(text: &[u8], mut i: usize) -> usize {
    while i < text.len() && text[i] > b' ' && text[i] != b',' && text[i] | 0x20 != b'}' {
        i += 1; // | 0x20 makes } of ]
    }
    i
}

/// The end of the object or array that begins at i; above the text's length when it does not end.
#[inline(never)]
fn nested(text: &[u8], mut i: usize) -> usize {
    let mut depth = 0;
    while i < text.len() {
        match text[i] {
            b'"' => i = closing(text, i + 1).0,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return i + 1;
                }
            }
            _ => {}
        }
        i += 1;
    }
    text.len() + 1
}

/// The index of the quote that closes the string whose content starts at i, the text's length when there is none, and
/// whether the string has escapes.
#[inline(always)]
fn closing(text: &[u8], mut i: usize) -> (usize, bool) {
    let mut escaped = false;
    while i < text.len() {
        let hit = special(text, i);
        if hit == 0 {
            i += WIDTH;
            continue;
        }
        i += hit.trailing_zeros() as usize / BITS;
        if text[i] == b'"' {
            return (i, escaped);
        }
        escaped = true;
        i += 2;
    }
    (text.len(), escaped)
}

/// `special` looks at WIDTH bytes and has BITS bits for each.
#[cfg(target_feature = "simd128")]
const WIDTH: usize = 16;
#[cfg(target_feature = "simd128")]
const BITS: usize = 1;
#[cfg(not(target_feature = "simd128"))]
const WIDTH: usize = 8;
#[cfg(not(target_feature = "simd128"))]
const BITS: usize = 8;

/// A mask of the quotes and backslashes from i on; i is within text.
#[cfg(target_feature = "simd128")]
#[inline(always)]
fn special(text: &[u8], i: usize) -> u32 {
    use core::arch::wasm32::*;
    let mask = |from: usize| {
        // from + 16 <= text.len()
        let p = unsafe { v128_load(text.as_ptr().add(from) as *const v128) };
        u8x16_bitmask(v128_or(u8x16_eq(p, u8x16_splat(b'"')), u8x16_eq(p, u8x16_splat(b'\\')))) as u32
    };
    if text.len() - i >= WIDTH {
        return mask(i);
    }
    if text.len() >= WIDTH {
        let last = text.len() - WIDTH;
        return mask(last) >> (i - last);
    }
    let bit = |(n, c): (usize, &u8)| ((*c == b'"' || *c == b'\\') as u32) << n;
    text[i..].iter().enumerate().map(bit).sum()
}

/// The lowest bit that is set is in the first quote or backslash from i on; i is within text. Of a byte below 0x80 that
/// is xored with what is looked for, only 0 has its highest bit set by the subtraction.
#[cfg(not(target_feature = "simd128"))]
#[inline(always)]
fn special(text: &[u8], i: usize) -> u64 {
    const ONES: u64 = 0x0101010101010101;
    let mut w = [0; WIDTH];
    let n = WIDTH.min(text.len() - i);
    w[..n].copy_from_slice(&text[i..i + n]);
    let w = u64::from_le_bytes(w);
    let quote = w ^ (ONES * b'"' as u64);
    let slash = w ^ (ONES * b'\\' as u64);
    (quote.wrapping_sub(ONES) | slash.wrapping_sub(ONES)) & !w & (ONES << 7)
}

/// The content of a JSON string, given without its quotes.
#[inline]
fn unescaped(raw: &[u8]) -> &[u8] {
    let mut i = 0;
    while i < raw.len() {
        let hit = special(raw, i);
        if hit != 0 {
            return unescape(raw); // a quote within it is behind a backslash
        }
        i += WIDTH;
    }
    raw
}

/// It is never longer, but for a \u without digits, which makes 3 bytes of 2.
#[cold]
#[inline(never)]
fn unescape<'b>(raw: &[u8]) -> &'b [u8] {
    let out = MEMORY.bytes(raw.len() + raw.len() / 2 + 1);
    let (mut i, mut n) = (0, 0);
    while i < raw.len() {
        let mut c = raw[i];
        i += 1;
        if c == b'\\' && i < raw.len() {
            c = raw[i];
            i += 1;
            match c {
                b'b' => c = 8,
                b'f' => c = 12,
                b'n' => c = b'\n',
                b'r' => c = b'\r',
                b't' => c = b'\t',
                b'u' => {
                    let (r, used) = character(&raw[i..]);
                    i += used;
                    n += r.encode_utf8(&mut out[n..]).len();
                    continue;
                }
                _ => {}
            }
        }
        out[n] = c;
        n += 1;
    }
    &out[..n]
}

/// Reads what stands behind \u, 4 digits or a pair of surrogates, and how many bytes that is.
fn character(raw: &[u8]) -> (char, usize) {
    const UNKNOWN: char = '\u{FFFD}';
    let high = match hex4(raw) {
        None => return (UNKNOWN, 0),
        Some(c) => c,
    };
    if let Some(c) = char::from_u32(high) {
        return (c, 4);
    }
    if high < 0xDC00 && raw.len() >= 10 && raw[4] == b'\\' && raw[5] == b'u' {
        if let Some(low @ 0xDC00..=0xDFFF) = hex4(&raw[6..]) {
            let c = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            return (char::from_u32(c).unwrap_or(UNKNOWN), 10);
        }
    }
    (UNKNOWN, 4)
}

fn hex4(raw: &[u8]) -> Option<u32> {
    let mut v = 0;
    for c in raw.get(..4)? {
        v = v << 4 | (*c as char).to_digit(16)?;
    }
    Some(v)
}
