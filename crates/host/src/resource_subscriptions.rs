//! Resource subscriptions of one server. They outlive connections: each new connection subscribes again.

use std::collections::BTreeMap;

use tokio::sync::watch;

/// Maximum number of subscribed resources per server.
const MAX_SUBSCRIBED_RESOURCES: usize = 256;

/// Requested and confirmed subscriptions of one server.
pub(crate) struct ResourceSubscriptions {
    wanted: watch::Sender<RequestedResources>,
    agreed: watch::Sender<ConfirmedResources>,
}

/// Requested resources, each with its number of subscribers.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestedResources {
    pub version: u64,
    pub uris: BTreeMap<String, usize>,
}

/// Resources that the server confirmed for a version of the request.
#[derive(Debug, Clone, Default)]
struct ConfirmedResources {
    version: u64,
    uris: Vec<String>,
}

impl ResourceSubscriptions {
    pub fn new() -> Self {
        Self { wanted: watch::Sender::default(), agreed: watch::Sender::default() }
    }

    /// Subscribes to a resource. Returns the version of the request that includes it, or `None` if the limit is
    /// reached.
    pub fn subscribe(&self, uri: &str) -> Option<u64> {
        let mut version = None;
        self.wanted.send_if_modified(|wanted| {
            let known = wanted.uris.get(uri).copied().unwrap_or(0);
            if known == 0 && wanted.uris.len() >= MAX_SUBSCRIBED_RESOURCES {
                return false;
            }
            wanted.uris.insert(uri.to_owned(), known + 1);
            wanted.version += u64::from(known == 0);
            version = Some(wanted.version);
            known == 0
        });
        version
    }

    /// Ends one subscription to a resource.
    pub fn unsubscribe(&self, uri: &str) {
        self.wanted.send_if_modified(|wanted| {
            let Some(count) = wanted.uris.get_mut(uri) else { return false };
            *count -= 1;
            let last = *count == 0;
            if last {
                wanted.uris.remove(uri);
                wanted.version += 1;
            }
            last
        });
    }

    /// Returns the number of subscribed resources.
    pub fn len(&self) -> usize {
        self.wanted.borrow().uris.len()
    }

    /// Reports whether the URI or one of its parents is subscribed.
    pub fn covers(&self, uri: &str) -> bool {
        let below = |of: &str| uri.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.wanted.borrow().uris.keys().any(|wanted| below(wanted) || below(wanted.trim_end_matches('/')))
    }

    pub fn requested_changes(&self) -> watch::Receiver<RequestedResources> {
        self.wanted.subscribe()
    }

    /// Records the resources that the server confirmed for a version.
    pub fn confirm(&self, version: u64, uris: Vec<String>) {
        self.agreed.send_replace(ConfirmedResources { version, uris });
    }

    /// Returns the resources that the server confirmed last, on this or an earlier connection.
    pub fn confirmed_uris(&self) -> Vec<String> {
        self.agreed.borrow().uris.clone()
    }

    /// Waits until the server has answered this version. Reports whether it confirmed the resource.
    pub async fn wait_confirmed(&self, version: u64, uri: &str) -> bool {
        let mut agreed = self.agreed.subscribe();
        let found = agreed.wait_for(|agreed| agreed.version >= version).await;
        found.is_ok_and(|agreed| agreed.uris.iter().any(|one| one == uri))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn resource_stays_subscribed_until_last_unsubscribe() {
        let watched = ResourceSubscriptions::new();
        let first = watched.subscribe("a:x").unwrap();
        assert_eq!(watched.subscribe("a:x"), Some(first), "the second one changes nothing");
        watched.unsubscribe("a:x");
        assert!(watched.covers("a:x") && watched.covers("a:x/y") && !watched.covers("a:xy"));
        watched.confirm(first, vec!["a:x".to_owned()]);
        assert!(watched.wait_confirmed(first, "a:x").await && !watched.wait_confirmed(first, "a:y").await);
        watched.unsubscribe("a:x");
        watched.unsubscribe("a:x");
        assert_eq!(watched.len(), 0);
    }

    #[test]
    fn subscriptions_over_the_limit_are_rejected() {
        let watched = ResourceSubscriptions::new();
        assert!((0..MAX_SUBSCRIBED_RESOURCES).all(|n| watched.subscribe(&n.to_string()).is_some()));
        assert!(watched.subscribe("one more").is_none() && watched.subscribe("0").is_some());
    }
}
