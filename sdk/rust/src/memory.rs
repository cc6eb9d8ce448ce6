//! Memory: what the host asked for from below, and above it what is forgotten with each batch. It comes from
//! memory.grow alone, so that an allocator of the plugin's may have other parts.

use core::arch::wasm32::{memory_grow, unreachable};
use core::cell::Cell;

const PAGE: usize = 65536;

pub(crate) struct Memory {
    top: Cell<usize>,     // memory from here on is not the host's
    scratch: Cell<usize>, // memory from here on is free
    limit: Cell<usize>,   // up to here it is ours
}

// A guest has one thread.
unsafe impl Sync for Memory {}

pub(crate) static MEMORY: Memory = Memory { top: Cell::new(0), scratch: Cell::new(0), limit: Cell::new(0) };

impl Memory {
    /// Gives size bytes at `from`, or in a new area when somebody else's memory is behind ours.
    fn reserve(&self, from: usize, size: usize) -> Option<usize> {
        let end = from.checked_add(size)?;
        if end <= self.limit.get() {
            return Some(from);
        }
        let pages = (end - self.limit.get() + PAGE - 1) / PAGE;
        let at = grow(pages)?;
        if at == self.limit.get() {
            self.limit.set(at + pages * PAGE);
            return Some(from);
        }
        let missing = ((size + PAGE - 1) / PAGE).saturating_sub(pages);
        if missing > 0 {
            grow(missing)?;
        }
        self.limit.set(at + (pages + missing) * PAGE);
        Some(at)
    }

    /// A region for the host; 0 when there is no memory left.
    pub(crate) fn region(&self, size: usize, align: usize) -> usize {
        if size == 0 || !align.is_power_of_two() || align > PAGE {
            return 0;
        }
        let from = (self.top.get() + align - 1) & !(align - 1);
        let at = self.reserve(from, size).unwrap_or(0);
        if at != 0 {
            self.top.set(at + size);
            self.reset();
        }
        at
    }

    /// Gives the last region back, which is the one that grows.
    pub(crate) fn release(&self, at: usize, size: usize) {
        if at + size == self.top.get() {
            self.top.set(at);
            self.reset();
        }
    }

    /// Forgets what was given by `bytes`.
    pub(crate) fn reset(&self) {
        self.scratch.set(self.top.get());
    }

    /// Keeps for good what was given by `bytes`.
    pub(crate) fn seal(&self) {
        self.top.set(self.scratch.get());
    }

    /// n bytes that are valid until reset, or for good if seal comes first. Out of memory is a trap.
    pub(crate) fn bytes<'b>(&self, n: usize) -> &'b mut [u8] {
        if n == 0 {
            return &mut [];
        }
        match self.reserve(self.scratch.get(), n) {
            Some(at) => {
                self.scratch.set(at + n);
                if at < self.top.get() || at > self.limit.get() {
                    unreachable()
                }
                // Nobody else has these bytes; memory that memory.grow gave is initialised.
                unsafe { core::slice::from_raw_parts_mut(at as *mut u8, n) }
            }
            None => unreachable(),
        }
    }
}

fn grow(pages: usize) -> Option<usize> {
    match memory_grow(0, pages) {
        usize::MAX => None,
        before => Some(before * PAGE),
    }
}
