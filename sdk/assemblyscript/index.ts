/*
 * What a Headgate plugin in AssemblyScript imports: it does the plugin's side of the ABI, so that a plugin is one
 * function that sees each event.
 *
 *     import { handle, Event, Result, SETS_KEYS } from "./headgate";
 *     export { hg_abi_v1, hg_alloc, hg_free, hg_init, hg_process } from "./headgate";
 *
 *     handle(SETS_KEYS, (event: Event, r: Result): void => {
 *       const user = event.jsonString("user");
 *       if (user) r.key(user);
 *     });
 *
 * An instance runs on one thread, events come in their order, and what a global keeps is lost with the instance:
 * there are several, and a trap ends one. Texts, events and results are no managed objects: nothing is allocated for
 * an event but by the plugin itself. They are valid until the next batch.
 */
import { Text } from "./text";
import { region, release, reset, seal, bytes } from "./memory";
import { forget } from "./json";
export { Text };

// Capabilities: what a plugin does, to be combined with |.
export const SETS_KEYS: u32 = 1 << 0;
export const DROPS: u32 = 1 << 1;
export const REPLACES: u32 = 1 << 2;
export const KEEPS_STATE: u32 = 1 << 3; // results depend on earlier events
export const DETERMINISTIC: u32 = 1 << 4; // the same event always gives the same result

// Levels of log.
export const DEBUG: u32 = 0;
export const INFO: u32 = 1;
export const WARN: u32 = 2;
export const ERROR: u32 = 3;

@external("hg", "log")
declare function hostLog(level: u32, at: usize, len: u32): void;
@external("hg", "counter")
declare function hostCounter(id: u32, delta: i64): void;

/** Writes a line of at most 1 KiB to the gateway's log. The plugin's instances may log 100 lines a second together;
 * the rest is counted. */
export function log(level: u32, line: string): void {
  const text = Text.of(line);
  hostLog(level, text.at, text.length);
}

/** Adds to one of the plugin's counters, 0 to 31, which are shown in the gateway's metrics. */
export function count(counter: u32, delta: i64): void {
  hostCounter(counter, delta);
}

/** The control block of a batch. */
@unmanaged
class Control {
  size: u32;
  count: u32;
  first: u32;
  done: u32;
  data: u32;
  dataLength: u32;
  events: u32;
  results: u32;
  now: i64;
  flags: u32;
  stream: u32;
  headers: u32;
  headersLength: u32;
  budget: u32;
  zero: u32;
}

let control: Control = changetype<Control>(0);

/** An event: its bytes as a text, and the request it came in. */
@unmanaged
export class Event extends Text {
  /** The request's first header of that name, which is in lower case; null when it has none. Credentials
   * (authorization, cookie) are never there. */
  header(name: string): Text | null {
    let p: usize = control.headers;
    const end = p + control.headersLength;
    while (p < end) {
      const n = Text.at(p + 2, load<u16>(p));
      p = n.end;
      const v = Text.at(p + 2, load<u16>(p));
      p = v.end;
      if (n.equals(name)) return v;
    }
    return null;
  }

  /** When the request came in, in unix nanoseconds. */
  arrived(): i64 {
    return control.now;
  }
}

/** What becomes of one event. As it comes it keeps the event, without a key. */
@unmanaged
export class Result {
  private keyAt: u32;
  private keyLength: u16;
  private verdict: u8;
  private code: u8;
  private valueAt: u32;
  private valueLength: u32;

  /** Sets the event's key, of at most 1024 bytes; an empty one is a key, too. */
  key(key: Text): void {
    this.keyAt = <u32>key.at;
    this.keyLength = <u16>min(key.length, 0xffff); // too long either way
  }

  /** Filters the event out, which is no error. */
  drop(): void {
    this.verdict = 1;
  }

  /** Refuses the event; the client is told the reason, a number of the plugin's own. */
  reject(reason: u8): void {
    this.verdict = 2;
    this.code = reason;
  }

  /** Gives the event new bytes. On JSON streams they must be JSON. */
  replace(value: Text): void {
    this.verdict = 3;
    this.valueAt = <u32>value.at;
    this.valueLength = value.length;
  }
}

type Handler = (event: Event, r: Result) => void;
type Configurer = (config: Text) => string | null;

let can: u32 = 0;
let handler: Handler | null = null;
let configurer: Configurer | null = null;

/** Registers the function that sees each event; it is called at the top of the plugin. */
export function handle(capabilities: u32, f: Handler): void {
  can = capabilities;
  handler = f;
}

/** Registers the function that gets the configuration, once, before the first event: the JSON object of the
 * activation, empty when there is none; it and its texts stay. What is returned refuses the activation and is told to
 * whoever activates; null is success. */
export function configure(f: Configurer): void {
  configurer = f;
}

export function hg_abi_v1(): u32 {
  return can;
}

export function hg_alloc(size: u32, align: u32): usize {
  return region(size, align);
}

export function hg_free(at: usize, size: u32): void {
  release(at, size);
}

export function hg_init(at: usize, length: u32): i32 {
  if (!handler) {
    log(ERROR, "no handler: call handle() at the top of the plugin");
    return 1;
  }
  const f = configurer;
  const why = f ? f(Text.at(at, length)) : null;
  seal();
  forget();
  if (!why) return 0;
  log(ERROR, why);
  return 1;
}

export function hg_process(at: usize): i32 {
  const c = changetype<Control>(at);
  const f = handler;
  if (!f) return -1;
  control = c;
  reset();
  forget();
  const event = changetype<Event>(bytes(offsetof<Event>()));
  const data: usize = c.data;
  const n = c.count;
  for (let i = c.first; i < n; i++) {
    c.done = i; // the host reads it after a trap
    const place = c.events + (i << 3);
    event.at = data + load<u32>(place);
    event.length = load<u32>(place, 4);
    const r = c.results + (i << 4);
    store<u64>(r, 0);
    store<u64>(r, 0, 8);
    f(event, changetype<Result>(<usize>r));
  }
  c.done = n;
  return 0;
}
