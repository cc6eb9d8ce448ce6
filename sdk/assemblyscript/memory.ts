/*
 * Memory: regions that the host asked for, and chunks of what is forgotten with each batch. It comes from the runtime's
 * own allocator, beside the plugin's objects. 64 bytes behind everything are readable, for reads of whole vectors.
 */
const SLACK: usize = 64;

/** A region for the host; 0 for a size or an alignment that can't be. Out of memory is a trap. */
export function region(size: u32, align: u32): usize {
  if (size == 0 || align == 0 || align > 16 || !isPowerOfTwo(align)) return 0;
  return heap.alloc(<usize>size + SLACK); // aligned to 16
}

export function release(at: usize, size: u32): void {
  heap.free(at);
}

function isPowerOfTwo(n: u32): bool {
  return (n & (n - 1)) == 0;
}

// The chunk in use; its first word is the address of the chunk before it, which is full.
let chunk: usize = 0;
let next: usize = 0;
let end: usize = 0;
const HEADER: usize = 16;
const CHUNK: usize = 16 << 10;

/** n bytes that are valid until reset, or for good if seal comes first. */
export function bytes(n: usize): usize {
  if (n > end - next) more(n);
  const at = next;
  next += (n + 3) & ~3;
  return at;
}

function more(n: usize): void {
  const size = max(n + 4, CHUNK);
  const made = heap.alloc(HEADER + size + SLACK);
  store<usize>(made, chunk);
  chunk = made;
  next = made + HEADER;
  end = next + size - 4;
}

/** Forgets what was given, and keeps the first chunk of ordinary size. */
export function reset(): void {
  if (chunk == 0) return;
  for (let before = load<usize>(chunk); before != 0; before = load<usize>(chunk)) {
    heap.free(chunk);
    chunk = before;
    end = 0; // its size is not known any more
  }
  if (end == 0 || end - chunk > HEADER + CHUNK) {
    heap.free(chunk);
    chunk = next = end = 0;
    return;
  }
  next = chunk + HEADER;
}

/** Keeps for good what was given. */
export function seal(): void {
  chunk = next = end = 0;
}
