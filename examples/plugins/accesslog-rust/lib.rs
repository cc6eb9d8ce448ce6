//! accesslog is a plugin for web server logs: the key is the client's address, and failed requests are dropped.
use headgate::{Event, Outcome, Text, DETERMINISTIC, DROPS, SETS_KEYS};

headgate::plugin!(SETS_KEYS | DROPS | DETERMINISTIC, route, configure => i64);

/// Responses from here on are dropped, 0 for none.
fn configure(config: Text<'static>) -> Result<i64, &'static str> {
    Ok(config.json_int("drop_status_from").unwrap_or(0))
}

fn route(drop_from: &mut i64, event: Event, r: &mut Outcome) {
    let [status, ip] = event.json_values(["response", "remote_ip"]);
    if *drop_from > 0 && status.int().map_or(false, |s| s >= *drop_from) {
        r.drop();
    } else if let Some(ip) = ip.string() {
        r.key(ip);
    }
}
