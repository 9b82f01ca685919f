//! The requests in progress of all clients of one principal.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Maximum number of requests in progress per principal, over all its sessions and connections.
pub(crate) const MAX_PRINCIPAL_REQUESTS: usize = 64;

/// The principals that have clients.
#[derive(Default)]
pub(crate) struct PrincipalLoads(Mutex<HashMap<Arc<str>, Weak<PrincipalLoad>>>);

/// The requests of one principal.
#[derive(Default)]
pub(crate) struct PrincipalLoad {
    in_progress: AtomicUsize,
}

/// A request that counts as in progress until it is dropped.
pub(crate) struct CountedRequest(Arc<PrincipalLoad>);

impl PrincipalLoads {
    /// Returns the requests of a principal. All views of the principal share them.
    pub fn find(&self, principal: &Arc<str>) -> Arc<PrincipalLoad> {
        let mut loads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loads.retain(|_, load| load.strong_count() > 0);
        let known = loads.get(principal).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let load = Arc::<PrincipalLoad>::default();
            loads.insert(Arc::clone(principal), Arc::downgrade(&load));
            load
        })
    }
}

impl PrincipalLoad {
    /// Counts one more request. `None` if too many are in progress.
    pub fn begin(self: &Arc<Self>) -> Option<CountedRequest> {
        let counted = CountedRequest(Arc::clone(self));
        let before = self.in_progress.fetch_add(1, Ordering::Relaxed);
        (before < MAX_PRINCIPAL_REQUESTS).then_some(counted)
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_principal_are_counted_over_all_its_views() {
        let loads = PrincipalLoads::default();
        let (ci, other) = ("ci".into(), "other".into());
        let (one, two) = (loads.find(&ci), loads.find(&ci));
        let mut running: Vec<_> = (0..MAX_PRINCIPAL_REQUESTS).map(|_| one.begin().unwrap()).collect();
        assert!(two.begin().is_none() && one.begin().is_none());
        assert!(loads.find(&other).begin().is_some());
        running.pop();
        assert!(two.begin().is_some());
        drop((one, two, running));
        loads.find(&other);
        assert_eq!(loads.0.lock().unwrap().len(), 1, "principals without clients are forgotten");
    }
}
