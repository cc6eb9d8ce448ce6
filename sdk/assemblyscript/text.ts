/* What a plugin reads: texts. */
import { bytes } from "./memory";
import { scan, find, scannedAt, scannedLength, unescaped, equal } from "./json";

const QUOTE: u8 = 0x22;

/** Bytes that belong to somebody else: an event, the configuration, a value in one of them. The methods for JSON take
 * them for valid, as events of a JSON stream are; of other text a value is some part of it, or none. They read up to
 * 63 bytes behind the text, which the gateway allows. */
@unmanaged
export class Text {
  at: usize;
  length: u32;

  static at(at: usize, length: u32): Text {
    const t = changetype<Text>(bytes(offsetof<Text>()));
    t.at = at;
    t.length = length;
    return t;
  }

  /** A string as UTF-8. */
  static of(s: string): Text {
    const n = String.UTF8.byteLength(s);
    const at = bytes(n + 1);
    String.UTF8.encodeUnsafe(changetype<usize>(s), s.length, at);
    return Text.at(at, n);
  }

  @inline get end(): usize {
    return this.at + this.length;
  }

  /** The text as a string, which is an object of its own. */
  toString(): string {
    return String.UTF8.decodeUnsafe(this.at, this.length);
  }

  equals(s: string): bool {
    return equal(this.at, this.at + this.length, s);
  }

  /** A member of a JSON object as it stands there, strings with their quotes. It is null when the text is no object,
   * has no such member, or has it twice: which one is meant is ambiguous, and the gateway's own extractor refuses such
   * an event. Names are compared after unescaping. The first call on a text scans it, further ones are cheap. */
  json(name: string): Text | null {
    if (this.at != scannedAt || this.length != scannedLength) scan(this.at, this.length);
    return find(name);
  }

  /** The content of a member that is a string, unescaped; null for any other. */
  jsonString(name: string): Text | null {
    const v = this.json(name);
    return v ? v.string() : null;
  }

  /** A member that is a whole number, written without fraction and exponent; `otherwise` for any other. */
  jsonInt(name: string, otherwise: i64): i64 {
    const v = this.json(name);
    return v ? v.int(otherwise) : otherwise;
  }

  /** The content of a value that is a string, unescaped. A surrogate without its other half becomes U+FFFD. */
  string(): Text | null {
    if (this.length < 2 || load<u8>(this.at) != QUOTE) return null;
    return unescaped(this.at + 1, this.end - 1);
  }

  /** A value that is a whole number that an i64 holds, written without fraction and exponent. */
  int(otherwise: i64): i64 {
    let p = this.at;
    const end = this.end;
    const minus = p < end && load<u8>(p) == 0x2d;
    if (minus) p++;
    if (p >= end) return otherwise;
    const limit: u64 = <u64>i64.MAX_VALUE + u64(minus);
    let v: u64 = 0;
    for (; p < end; p++) {
      const d = <u64>load<u8>(p) - 0x30;
      if (d > 9 || v > <u64>i64.MAX_VALUE / 10) return otherwise;
      v = v * 10 + d;
      if (v > limit) return otherwise;
    }
    return minus ? -(<i64>v) : <i64>v;
  }
}
