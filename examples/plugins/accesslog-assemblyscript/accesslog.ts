// accesslog is a plugin for web server logs: the key is the client's address, and failed requests are dropped.
import { handle, configure, Text, Event, Result, SETS_KEYS, DROPS, DETERMINISTIC } from "../../../sdk/assemblyscript";
export { hg_abi_v1, hg_alloc, hg_free, hg_init, hg_process } from "../../../sdk/assemblyscript";

let dropFrom: i64 = 0; // responses from here on are dropped, 0 for none

configure((config: Text): string | null => {
  dropFrom = config.jsonInt("drop_status_from", 0);
  return null;
});

handle(SETS_KEYS | DROPS | DETERMINISTIC, (event: Event, r: Result): void => {
  if (dropFrom > 0 && event.jsonInt("response", 0) >= dropFrom) {
    r.drop();
  } else {
    const ip = event.jsonString("remote_ip");
    if (ip) r.key(ip);
  }
});
