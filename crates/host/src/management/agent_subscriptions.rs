//! Resource subscriptions of the agent. Each is held by its server's
//! [`ResourceSubscriptions`](crate::resource_subscriptions::ResourceSubscriptions), which carries it from one connection
//! to the next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wharf_spec::UntrustedText;

use crate::context::HostContext;
use crate::routing::CallDeadline;
use crate::server::Server;

/// The agent's subscriptions.
#[derive(Default)]
pub(crate) struct AgentSubscriptions(Mutex<SubscriptionTable>);

#[derive(Default)]
struct SubscriptionTable {
    /// Number of subscriptions made so far, which is the number of the last one.
    made: u64,
    watching: BTreeMap<u64, AgentSubscription>,
}

struct AgentSubscription {
    server: Arc<Server>,
    uri: String,
}

/// A selector of subscriptions: those that match all of the given values.
#[derive(Debug, Default)]
pub(super) struct SubscriptionSelector<'a> {
    pub id: Option<&'a str>,
    pub server: Option<&'a str>,
    pub uri: Option<&'a str>,
}

/// Errors of subscribing to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubscribeError {
    TooMany,
    /// The server has not answered before the deadline.
    NotInTime,
    /// The server does not report changes of this resource.
    NotAgreed,
    /// The server was removed in the meantime.
    TakenOff,
}

impl AgentSubscriptions {
    /// Subscribes to a resource and returns the subscription's ID. An existing subscription keeps its ID, if the server
    /// still confirms it.
    ///
    /// Dropping the future cancels the subscription.
    pub(super) async fn subscribe(
        &self,
        context: &HostContext,
        server: &Arc<Server>,
        uri: &str,
        deadline: CallDeadline,
    ) -> Result<String, SubscribeError> {
        let known = self.lock().find(server, uri);
        if let Some(number) = known.filter(|_| server.watched.confirmed_uris().iter().any(|agreed| agreed == uri)) {
            return Ok(subscription_id(number));
        }
        let (wanting, version) = self.request_resource(server, uri).ok_or(SubscribeError::TooMany)?;
        match tokio::time::timeout_at(deadline.at, server.watched.wait_confirmed(version, uri)).await {
            Ok(true) => {}
            Ok(false) => return Err(SubscribeError::NotAgreed),
            Err(_) => return Err(SubscribeError::NotInTime),
        }
        let mut table = self.lock();
        // Under the lock, so that a server removed from now on finds this subscription.
        let outcome = match table.find(server, uri) {
            _ if !context.is_current(server) => Err(SubscribeError::TakenOff),
            Some(number) => Ok(subscription_id(number)),
            None => {
                table.made += 1;
                let number = table.made;
                table.watching.insert(number, wanting.into_subscription());
                return Ok(subscription_id(number));
            }
        };
        drop(table);
        outcome
    }

    fn request_resource<'a>(&'a self, server: &'a Arc<Server>, uri: &'a str) -> Option<(PendingSubscription<'a>, u64)> {
        let _table = self.lock();
        let version = server.watched.subscribe(uri)?;
        server.usage.set_holds(server.watched.len());
        Some((PendingSubscription { watches: self, server, uri, kept: false }, version))
    }

    /// Counts a subscriber of a resource. Returns the version of the request that includes it, or `None` if the limit is
    /// reached.
    pub(crate) fn hold(&self, server: &Server, uri: &str) -> Option<u64> {
        let _table = self.lock();
        let version = server.watched.subscribe(uri)?;
        server.usage.set_holds(server.watched.len());
        Some(version)
    }

    /// Ends what [`AgentSubscriptions::hold`] has counted.
    pub(crate) fn release(&self, server: &Server, uri: &str) {
        let _table = self.lock();
        release_resource(server, uri);
    }

    /// Ends the selected subscriptions and returns their number.
    pub(super) fn end_matching(&self, which: &SubscriptionSelector<'_>) -> usize {
        self.end_where(|number, watch| which.matches(number, watch)).len()
    }

    fn end_where(&self, wanted: impl Fn(u64, &AgentSubscription) -> bool) -> Vec<(u64, AgentSubscription)> {
        let mut table = self.lock();
        let ended: Vec<_> = table.watching.extract_if(.., |number, watch| wanted(*number, watch)).collect();
        ended.iter().for_each(|(_, watch)| release_resource(&watch.server, &watch.uri));
        ended
    }

    /// Returns one line per subscription, escaped.
    pub(super) fn describe_all(&self) -> Vec<String> {
        let told = |(number, watch): (&u64, &AgentSubscription)| {
            format!(
                "{} ({} of {})",
                subscription_id(*number),
                UntrustedText::new(&*watch.uri).truncate(100),
                watch.server.name
            )
        };
        self.lock().watching.iter().map(told).collect()
    }

    fn lock(&self) -> MutexGuard<'_, SubscriptionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostContext {
    /// Ends all subscriptions of a removed server and notifies the agent.
    pub fn end_subscriptions(&self, server: &Server) {
        for (number, watch) in self.watches.end_where(|_, watch| watch.server.generation == server.generation) {
            let uri = UntrustedText::new(watch.uri);
            let text =
                format!("{} ({}) ended because the server was removed", subscription_id(number), uri.truncate(500));
            self.push_note(server.name.as_str(), &text);
        }
    }
}

impl SubscriptionTable {
    fn find(&self, server: &Server, uri: &str) -> Option<u64> {
        let same = |watch: &AgentSubscription| watch.server.generation == server.generation && watch.uri == uri;
        self.watching.iter().find(|(_, watch)| same(watch)).map(|(number, _)| *number)
    }
}

impl SubscriptionSelector<'_> {
    fn matches(&self, number: u64, watch: &AgentSubscription) -> bool {
        self.id.is_none_or(|wanted| wanted == subscription_id(number))
            && self.server.is_none_or(|wanted| wanted == watch.server.name.as_str())
            && self.uri.is_none_or(|wanted| wanted == watch.uri)
    }
}

/// A pending subscription, which is ended on drop unless it is kept.
struct PendingSubscription<'a> {
    watches: &'a AgentSubscriptions,
    server: &'a Arc<Server>,
    uri: &'a str,
    kept: bool,
}

impl PendingSubscription<'_> {
    fn into_subscription(mut self) -> AgentSubscription {
        self.kept = true;
        AgentSubscription { server: Arc::clone(self.server), uri: self.uri.to_owned() }
    }
}

impl Drop for PendingSubscription<'_> {
    fn drop(&mut self) {
        if !self.kept {
            let _table = self.watches.lock();
            release_resource(self.server, self.uri);
        }
    }
}

/// Ends one subscription. Called under the lock, so that the hold count stays correct.
fn release_resource(server: &Server, uri: &str) {
    server.watched.unsubscribe(uri);
    server.usage.set_holds(server.watched.len());
}

fn subscription_id(number: u64) -> String {
    format!("watch-{number}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::host::Host;

    /// The server never starts; the test confirms the subscriptions itself.
    async fn subscribe_confirmed(
        host: &Host,
        server: &Arc<Server>,
        uri: &str,
        agreed: &[&str],
    ) -> Result<String, SubscribeError> {
        let context = host.context();
        let agree = async {
            let version = server.watched.requested_changes().borrow().version;
            server.watched.confirm(version, agreed.iter().map(|&uri| uri.to_owned()).collect());
        };
        let begun = context.watches.subscribe(context, server, uri, CallDeadline::after(Duration::from_secs(1)));
        tokio::join!(begun, agree).0
    }

    #[tokio::test(start_paused = true)]
    async fn subscriptions_hold_their_server_until_they_end() {
        let mut settings = wharf_spec::ServerSettings::default();
        settings.lazy = true;
        let name = wharf_spec::ServerName::new("one").unwrap();
        let host =
            Host::builder().local_with(name, settings, Arc::new(|| Err("never".to_owned()))).start().await.unwrap();
        let context = host.context();
        let server = context.server("one").unwrap();
        let held = || server.usage.activity().held;
        for (uri, agreed, expected, count) in [
            ("a:x", &[][..], Err(SubscribeError::NotAgreed), 0),
            ("a:x", &["a:x"], Ok("watch-1"), 1),
            ("a:x", &[], Ok("watch-1"), 1),
            // By now the server has stopped confirming the resource.
            ("a:x", &[], Err(SubscribeError::NotAgreed), 1),
            ("a:y", &["a:x", "a:y"], Ok("watch-2"), 2),
        ] {
            let begun = subscribe_confirmed(&host, &server, uri, agreed).await;
            assert_eq!((begun.as_deref(), held()), (expected.as_ref().copied(), count), "{uri}");
        }
        let late =
            context.watches.subscribe(context, &server, "a:z", CallDeadline::after(Duration::from_secs(1))).await;
        assert_eq!((late, held()), (Err(SubscribeError::NotInTime), 2));
        assert_eq!(
            context.watches.end_matching(&SubscriptionSelector { uri: Some("a:x"), ..SubscriptionSelector::default() }),
            1
        );
        assert_eq!((held(), context.watches.describe_all()), (1, vec!["watch-2 (a:y of one)".to_owned()]));
        context.servers.store(Arc::default());
        assert_eq!(subscribe_confirmed(&host, &server, "a:z", &["a:y", "a:z"]).await, Err(SubscribeError::TakenOff));
        server.leave();
        let mut snapshot = server.snapshot.clone();
        while snapshot.changed().await.is_ok() {}
        assert_eq!((held(), context.watches.describe_all().len()), (0, 0));
        let told = host.registry().notes().take_all().pop().unwrap();
        assert_eq!(&*told.text, "watch-2 (a:y) ended because the server was removed");
    }
}
