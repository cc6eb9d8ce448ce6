//! What a Headgate plugin in Rust links: it does the plugin's side of the ABI, so that a plugin is one function that
//! sees each event. It has no dependencies and needs no allocator; a plugin may use `std` or be `no_std`.
//!
//! ```ignore
//! use headgate::{Event, Outcome, SETS_KEYS};
//!
//! headgate::plugin!(SETS_KEYS, route);
//!
//! fn route(event: Event, r: &mut Outcome) {
//!     if let Some(user) = event.json_string("user") {
//!         r.key(user);
//!     }
//! }
//! ```
//!
//! An instance runs on one thread, events come in their order, and state is lost with the instance: there are
//! several, and a panic ends one.
#![no_std]

#[cfg(not(target_arch = "wasm32"))]
compile_error!("a plugin is WebAssembly: build it with --target wasm32-unknown-unknown");

#[doc(hidden)]
pub mod guest;
mod json;
mod memory;

pub use guest::{Event, Outcome};
pub use json::Text;

// Capabilities: what a plugin does, to be combined with `|`.
pub const SETS_KEYS: u32 = 1 << 0;
pub const DROPS: u32 = 1 << 1;
pub const REPLACES: u32 = 1 << 2;
/// Results depend on earlier events.
pub const KEEPS_STATE: u32 = 1 << 3;
/// The same event always gives the same result.
pub const DETERMINISTIC: u32 = 1 << 4;

/// How important a log line is.
#[derive(Clone, Copy)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// Writes a line of at most 1 KiB to the gateway's log. The plugin's instances may log 100 lines a second together;
/// the rest is counted.
pub fn log(level: Level, line: &str) {
    guest::log(level as u32, line.as_bytes())
}

/// Adds to one of the plugin's counters, 0 to 31, which are shown in the gateway's metrics.
pub fn count(counter: u32, delta: i64) {
    guest::count(counter, delta)
}

/// Defines the exports of the module; it stands once.
///
/// `plugin!(CAPABILITIES, handle)` is for a plugin without configuration: `fn handle(event: Event, r: &mut Outcome)`.
///
/// `plugin!(CAPABILITIES, handle, configure => State)` is for one with: `configure` gets the configuration, once,
/// before the first event, the JSON object of the activation, empty when there is none. What it returns is handed to
/// each call of `fn handle(state: &mut State, event: Event, r: &mut Outcome)`; an `Err` refuses the activation and is
/// told to whoever activates: `fn configure(config: Text<'static>) -> Result<State, &'static str>`.
#[macro_export]
macro_rules! plugin {
    ($can:expr, $handle:path) => {
        const _: () = {
            fn configure(_: $crate::Text<'static>) -> Result<(), &'static str> {
                Ok(())
            }
            fn handle(_: &mut (), event: $crate::Event<'_>, r: &mut $crate::Outcome) {
                $handle(event, r)
            }
            $crate::plugin!(@exports $can, handle, configure, ());
        };
    };
    ($can:expr, $handle:path, $configure:path => $state:ty) => {
        const _: () = {
            $crate::plugin!(@exports $can, $handle, $configure, $state);
        };
    };
    (@exports $can:expr, $handle:path, $configure:path, $state:ty) => {
        static STATE: $crate::guest::State<$state> = $crate::guest::State::new();

        #[no_mangle]
        extern "C" fn hg_abi_v1() -> u32 {
            $can
        }
        #[no_mangle]
        extern "C" fn hg_alloc(size: u32, align: u32) -> u32 {
            $crate::guest::alloc(size, align)
        }
        #[no_mangle]
        extern "C" fn hg_free(at: u32, size: u32) {
            $crate::guest::free(at, size)
        }
        #[no_mangle]
        unsafe extern "C" fn hg_init(at: u32, len: u32) -> i32 {
            $crate::guest::start(&STATE, $configure, at, len)
        }
        #[no_mangle]
        unsafe extern "C" fn hg_process(control: u32) -> i32 {
            $crate::guest::process(&STATE, $handle, control)
        }
    };
}

/// Defines the panic handler of a plugin that is `no_std`: a panic ends the instance, and the event goes by on_error.
#[macro_export]
macro_rules! panic_handler {
    () => {
        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo) -> ! {
            core::arch::wasm32::unreachable()
        }
    };
}
