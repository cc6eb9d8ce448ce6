//! features does with an event what its member "do" says: every part of the SDK that the example does not use.
#![no_std]

use headgate::{count, log, Event, Level, Outcome, Text, REPLACES, SETS_KEYS};

headgate::panic_handler!();
headgate::plugin!(SETS_KEYS | REPLACES, handle, configure => State);

struct State {
    suffix: &'static [u8], // from the configuration, escapes and all
    buffer: [u8; 256],
}

fn configure(config: Text<'static>) -> Result<State, &'static str> {
    let suffix = config.json_string("suffix").ok_or("no suffix")?;
    Ok(State { suffix, buffer: [0; 256] })
}

fn handle(state: &mut State, event: Event, r: &mut Outcome) {
    let [what, arg, long] = event.json_values(["do", "arg", "a name that is longer than two vectors of 16"]);
    let arg = arg.string().unwrap_or(b"");
    match what.string().unwrap_or(b"") {
        b"reject" => r.reject(7),
        b"replace" => {
            let text = event.text();
            state.buffer[..text.len()].copy_from_slice(&text);
            state.buffer[text.len()..][..state.suffix.len()].copy_from_slice(state.suffix);
            r.replace(&state.buffer[..text.len() + state.suffix.len()]);
        }
        b"replace by part" => r.replace(arg),
        b"empty key" => r.key(b""),
        b"literal" => r.key("literal"),
        b"long name" => r.key(long),
        b"header" => event.header("x-key").into_iter().for_each(|k| r.key(k)),
        b"no header" => event.header("x-ke").into_iter().for_each(|k| r.key(k)),
        b"arrived" if event.arrived() == 1234567890123456789 => r.key("then"),
        b"log" => log(Level::Warn, core::str::from_utf8(arg).unwrap_or("")),
        b"count" => count(3, 5),
        b"trap" => panic!(),
        b"memory" => {
            while core::arch::wasm32::memory_grow(0, 100) != usize::MAX {}
            panic!() // there is none left
        }
        b"changing" => {
            state.buffer[0] = arg[0]; // a key is copied when it is set
            r.key(&state.buffer[..1]);
        }
        _ => {}
    }
}
