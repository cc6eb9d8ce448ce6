//! The plugin's side of the ABI: what the exports that `plugin!` defines do.

use crate::json::Text;
use crate::memory::MEMORY;
use core::cell::UnsafeCell;
use core::ops::Deref;
use core::ptr::{addr_of_mut, write_volatile};
use core::slice::from_raw_parts;

mod host {
    #[link(wasm_import_module = "hg")]
    extern "C" {
        pub fn log(level: u32, at: *const u8, len: usize);
        pub fn counter(id: u32, delta: i64);
    }
}

pub(crate) fn log(level: u32, line: &[u8]) {
    unsafe { host::log(level, line.as_ptr(), line.len()) }
}

pub(crate) fn count(id: u32, delta: i64) {
    unsafe { host::counter(id, delta) }
}

/// The control block of a batch.
#[repr(C)]
struct Control {
    size: u32,
    count: u32,
    first: u32,
    done: u32,
    data: u32,
    data_len: u32,
    events: u32,
    results: u32,
    now: i64,
    flags: u32,
    stream: u32,
    headers: u32,
    headers_len: u32,
    budget: u32,
    zero: u32,
}

/// What becomes of one event. As it comes it keeps the event, without a key.
#[repr(C)]
pub struct Outcome {
    key: u32,
    key_len: u16,
    verdict: u8,
    code: u8,
    value: u32,
    value_len: u32,
}

const DROP: u8 = 1;
const REJECT: u8 = 2;
const REPLACE: u8 = 3;

impl Outcome {
    /// Sets the event's key, of at most 1024 bytes; an empty one is a key, too. Bytes outside of the batch are copied.
    #[inline]
    pub fn key(&mut self, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        self.key = stable(key);
        self.key_len = key.len().min(0xFFFF) as u16; // too long either way
    }

    /// Filters the event out, which is no error.
    #[inline]
    pub fn drop(&mut self) {
        self.verdict = DROP;
    }

    /// Refuses the event; the client is told the reason, a number of the plugin's own.
    pub fn reject(&mut self, reason: u8) {
        self.verdict = REJECT;
        self.code = reason;
    }

    /// Gives the event new bytes; those outside of the batch are copied. On JSON streams they must be JSON.
    pub fn replace(&mut self, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        self.verdict = REPLACE;
        self.value = stable(value);
        self.value_len = value.len() as u32;
    }
}

/// An event: its bytes, as [`Text`], and the request it came in. It is lent until the next batch.
#[derive(Clone, Copy)]
pub struct Event<'b> {
    text: Text<'b>,
    control: &'b Control,
}

impl<'b> Event<'b> {
    /// The bytes of the event.
    pub fn text(&self) -> Text<'b> {
        self.text
    }

    /// The request's first header of that name, which is in lower case. Credentials (authorization, cookie) are never
    /// there.
    pub fn header(&self, name: &str) -> Option<Text<'b>> {
        let mut rest = unsafe { slice(self.control.headers, self.control.headers_len) };
        while !rest.is_empty() {
            let (n, behind) = text16(rest)?;
            let (value, behind) = text16(behind)?;
            if n == name.as_bytes() {
                return Some(Text(value));
            }
            rest = behind;
        }
        None
    }

    /// When the request came in, in unix nanoseconds.
    pub fn arrived(&self) -> i64 {
        self.control.now
    }
}

impl<'b> Deref for Event<'b> {
    type Target = Text<'b>;
    fn deref(&self) -> &Text<'b> {
        &self.text
    }
}

impl AsRef<[u8]> for Event<'_> {
    fn as_ref(&self) -> &[u8] {
        self.text.0
    }
}

/// Takes a text with its length as u16 in front off p.
fn text16(p: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = u16::from_le_bytes([*p.first()?, *p.get(1)?]) as usize;
    Some((p.get(2..2 + len)?, &p[2 + len..]))
}

/// Where the data of the batch at hand is, for `stable`.
struct Batch(UnsafeCell<(usize, usize)>);

// A guest has one thread.
unsafe impl Sync for Batch {}

static BATCH: Batch = Batch(UnsafeCell::new((0, 0)));

/// An address, not 0, of these bytes that is valid until the next batch.
#[inline]
fn stable(bytes: &[u8]) -> u32 {
    let (data, len) = unsafe { *BATCH.0.get() };
    let at = bytes.as_ptr() as usize;
    if bytes.is_empty() {
        return data as u32;
    }
    if at.wrapping_sub(data) < len {
        return at as u32;
    }
    copied(bytes)
}

#[cold]
fn copied(bytes: &[u8]) -> u32 {
    let to = MEMORY.bytes(bytes.len());
    to.copy_from_slice(bytes);
    to.as_ptr() as u32
}

unsafe fn slice<'b>(at: u32, len: u32) -> &'b [u8] {
    if len == 0 {
        return &[];
    }
    from_raw_parts(at as *const u8, len as usize)
}

/// What `configure` made of the configuration.
pub struct State<S>(UnsafeCell<Option<S>>);

// A guest has one thread.
unsafe impl<S> Sync for State<S> {}

impl<S> State<S> {
    pub const fn new() -> Self {
        State(UnsafeCell::new(None))
    }
}

pub fn alloc(size: u32, align: u32) -> u32 {
    MEMORY.region(size as usize, align as usize) as u32
}

pub fn free(at: u32, size: u32) {
    MEMORY.release(at as usize, size as usize)
}

/// # Safety
/// The host calls it once, with a region that it keeps.
pub unsafe fn start<S>(state: &State<S>, configure: fn(Text<'static>) -> Result<S, &'static str>, at: u32, len: u32) -> i32 {
    let made = configure(Text(slice(at, len)));
    MEMORY.seal();
    match made {
        Ok(s) => {
            *state.0.get() = Some(s);
            0
        }
        Err(why) => {
            log(3, why.as_bytes());
            1
        }
    }
}

/// # Safety
/// The host calls it after start, with a control block that is as the ABI says.
#[inline(always)]
pub unsafe fn process<S>(state: &State<S>, handle: impl Fn(&mut S, Event<'_>, &mut Outcome), control: u32) -> i32 {
    let done = addr_of_mut!((*(control as *mut Control)).done);
    let c = &*(control as *const Control);
    let (first, count) = (c.first, c.count);
    let state = match &mut *state.0.get() {
        Some(s) => s,
        None => return -1,
    };
    *BATCH.0.get() = (c.data as usize, c.data_len as usize);
    MEMORY.reset();
    for i in first..count {
        write_volatile(done, i); // the host reads it after a trap
        let place = (c.events as *const [u32; 2]).add(i as usize).read();
        let mut r = Outcome { key: 0, key_len: 0, verdict: 0, code: 0, value: 0, value_len: 0 };
        let event = Event { text: Text(slice(c.data + place[0], place[1])), control: c };
        handle(state, event, &mut r);
        (c.results as *mut Outcome).add(i as usize).write(r);
    }
    write_volatile(done, count);
    0
}
