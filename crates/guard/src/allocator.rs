//! One setting of the C library's allocator, for programs that want memory back after large messages.

#![expect(unsafe_code, reason = "the allocator's settings have no safe interface")]

/// Allocations from this size on are returned to the system when they are freed.
#[cfg(target_env = "gnu")]
const RETURNED_FROM: libc::c_int = 256 << 10;
/// Free memory at the end of a heap that is not returned.
#[cfg(target_env = "gnu")]
const KEPT_FREE: libc::c_int = 1 << 20;

/// Makes the allocator of this process return large buffers to the system as soon as they are freed. Process-wide, so a
/// program calls it at its start and a library does not.
///
/// The GNU C library otherwise keeps up to 64 MiB in each of its heaps after a few large messages. Other C libraries are
/// left alone: musl returns such buffers by itself.
pub fn return_large_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two integers and may be called at any time; a value it does not accept changes nothing.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, RETURNED_FROM);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_FREE);
    }
}
