//! How much memory a fault takes. One at a time, because the system counts for the whole process.

use std::sync::LazyLock;

use tokio::sync::Mutex;
use wharf_testkit::oracle::{peak_rss_kib, reset_peak_rss};

/// What a fault may add at the limits of these tests (`faults.md`, I4).
const MAX_KIB: u64 = 96 << 10;

/// Runs `work` and checks that it stayed within bounds.
pub async fn bounded<T>(work: impl Future<Output = T>) -> T {
    static ALONE: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);
    let _alone = ALONE.lock().await;
    reset_peak_rss().unwrap();
    let before = peak_rss_kib();
    let outcome = work.await;
    let grown = peak_rss_kib().saturating_sub(before);
    assert!(grown <= MAX_KIB, "it took {grown} KiB");
    outcome
}
