//! A setting of the C library's allocator, for programs that want memory back after large messages.

#![expect(unsafe_code, reason = "the allocator's settings have no safe interface")]

/// Allocations of at least this many bytes are returned to the system when they are freed.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: libc::c_int = 256 << 10;
/// Bytes of free memory at the end of a heap that are not returned.
#[cfg(target_env = "gnu")]
const TRIM_THRESHOLD: libc::c_int = 1 << 20;

/// Makes the allocator of this process return large buffers to the system as soon as they are freed. The setting is
/// process-wide: call it from a program's startup, not from a library.
///
/// By default the GNU C library keeps up to 64 MiB in each of its heaps after a few large messages. The setting is a
/// no-op with other C libraries; musl already returns such buffers.
pub fn return_large_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two integers and may be called at any time. It ignores values it does not accept.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD);
    }
}
