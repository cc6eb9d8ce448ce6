// features does with an event what its member "do" says: every part of the SDK that the example does not use.
import { handle, configure, log, count, Text, Event, Result, SETS_KEYS, REPLACES, WARN } from "..";
export { hg_abi_v1, hg_alloc, hg_free, hg_init, hg_process } from "..";

let suffix: Text = changetype<Text>(0); // from the configuration, escapes and all

configure((config: Text): string | null => {
  const s = config.jsonString("suffix");
  if (!s) return "no suffix";
  suffix = s;
  return null;
});

handle(SETS_KEYS | REPLACES, (event: Event, r: Result): void => {
  const what = event.jsonString("do");
  if (!what) return;
  const arg = event.jsonString("arg");
  if (what.equals("reject")) r.reject(7);
  if (what.equals("replace")) r.replace(Text.of(event.toString() + suffix.toString()));
  if (what.equals("replace by part") && arg) r.replace(arg);
  if (what.equals("empty key")) r.key(Text.of(""));
  if (what.equals("literal")) r.key(Text.of("literal"));
  if (what.equals("long name")) {
    const v = event.json("a name that is longer than two vectors of 16");
    if (v) r.key(v);
  }
  if (what.equals("header") || what.equals("no header")) {
    const v = event.header(what.equals("header") ? "x-key" : "x-ke");
    if (v) r.key(v);
  }
  if (what.equals("arrived") && event.arrived() == 1234567890123456789) r.key(Text.of("then"));
  if (what.equals("log") && arg) log(WARN, arg.toString());
  if (what.equals("count")) count(3, 5);
  if (what.equals("trap")) unreachable();
  if (what.equals("memory")) heap.alloc(100 << 20);
  if (what.equals("changing") && arg) r.key(arg);
});
