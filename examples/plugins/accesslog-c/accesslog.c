/* accesslog is a plugin for web server logs: the key is the client's address, and failed requests are dropped. */
#include "headgate.h"

static int64_t drop_from; /* responses from here on are dropped, 0 for none */

static bool configure(hg_text config) {
	hg_json_int(config, "drop_status_from", &drop_from);
	return true;
}

static void route(hg_text event, hg_result *r) {
	hg_text ip, v[2];
	int64_t status;
	hg_json_values(event, v, "response", "remote_ip");
	if (drop_from > 0 && hg_int(v[0], &status) && status >= drop_from) hg_drop(r);
	else if (hg_string(v[1], &ip)) hg_key(r, ip);
}

HG_PLUGIN(HG_SETS_KEYS | HG_DROPS | HG_DETERMINISTIC, route, configure)
