//! Limits the memory for decoded images over all threads of the process.
//!
//! **Invariant:** a thread that holds a share decodes, and never waits for another share. So threads cannot deadlock.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Limit on an image that is decoded at the same time as other images, in decoded bytes: a photo of 16 megapixels.
const MAX_SMALL_BYTES: u64 = 128 << 20;

/// The memory for images of up to [`MAX_SMALL_BYTES`], which pages may wait for.
static SMALL: DecodeMemory = DecodeMemory::new(192 << 20);

/// The memory for larger images, decoded one at a time. No page waits for them.
static LARGE: DecodeMemory = DecodeMemory::new(MAX_SMALL_BYTES);

/// A limit on decoded bytes.
struct DecodeMemory {
    limit: u64,
    held: Mutex<u64>,
    released: Condvar,
}

/// A share of the memory, released when it is dropped.
pub(super) struct MemoryShare {
    memory: &'static DecodeMemory,
    bytes: u64,
}

/// Whether an image of so many decoded bytes is decoded one at a time.
pub(super) const fn is_large(bytes: u64) -> bool {
    bytes > MAX_SMALL_BYTES
}

/// Waits until a share of `bytes` is free, and acquires it.
pub(super) fn acquire(bytes: u64) -> MemoryShare {
    match is_large(bytes) {
        true => LARGE.acquire(bytes),
        false => SMALL.acquire(bytes),
    }
}

impl DecodeMemory {
    const fn new(limit: u64) -> Self {
        Self {
            limit,
            held: Mutex::new(0),
            released: Condvar::new(),
        }
    }

    fn acquire(&'static self, bytes: u64) -> MemoryShare {
        let has_room = |held: &mut u64| *held == 0 || *held + bytes <= self.limit;
        let held = self
            .released
            .wait_while(self.lock(), |held| !has_room(held));
        *held.unwrap_or_else(PoisonError::into_inner) += bytes;
        MemoryShare {
            memory: self,
            bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        *self.memory.lock() -= self.bytes;
        self.memory.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::thread;

    use super::*;

    #[test]
    fn shares_together_stay_below_the_limit() {
        static MEMORY: DecodeMemory = DecodeMemory::new(10);
        static HELD: AtomicU64 = AtomicU64::new(0);
        thread::scope(|scope| {
            for number in 0..64 {
                scope.spawn(move || {
                    let bytes = 1 + number % 5;
                    let share = MEMORY.acquire(bytes);
                    let held = HELD.fetch_add(bytes, SeqCst) + bytes;
                    assert!(held <= 10, "{held}");
                    thread::yield_now();
                    HELD.fetch_sub(bytes, SeqCst);
                    drop(share);
                });
            }
        });
        assert_eq!(*MEMORY.lock(), 0);
    }

    #[test]
    fn small_images_do_not_wait_for_a_large_one() {
        let large = acquire(MAX_SMALL_BYTES + 1);
        let small = acquire(MAX_SMALL_BYTES);
        drop((large, small));
    }
}
