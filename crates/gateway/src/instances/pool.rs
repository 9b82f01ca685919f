//! Which instance of one server a call uses.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;
use tokio::time::Instant;
use wharf::RawJson;
use wharf::spec::ServerSharing;
use wharf::wire::{Era, JsonLimits};

use crate::client_class::ClientClass;
use crate::route::ClientFacts;

/// Minimum time for which an unused instance of one principal is kept: its state is the principal's.
const PRINCIPAL_IDLE_TIMEOUT: Duration = Duration::from_mins(10);

/// Maximum number of instances that only wait for answers of stateless clients, beside those that work. Such a client
/// need not return: a declined use of a model or of roots ends without a message (2026-07-28 basic/patterns/mrtr).
const MAX_WAITING_INSTANCES: usize = 8;

/// The instances of one server.
#[derive(Debug)]
pub(super) struct InstancePool {
    max_instances: usize,
    created: u64,
    entries: Vec<PoolEntry>,
}

/// The clients that may use an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InstanceOwner {
    /// All of them, one after the other.
    Anyone,
    /// Those of one principal. `None` is the user who runs the gateway.
    Principal(Option<Arc<str>>),
    /// One session, until it ends.
    Session(u64),
}

impl InstanceOwner {
    /// Returns the owner of the instances that a client uses. The clients of the user who runs the gateway share its own
    /// servers. A stateless client has no session, so it shares with its principal.
    pub fn new(sharing: ServerSharing, client: &ClientFacts) -> Self {
        match (sharing, client.era) {
            (ServerSharing::Shared, _) => Self::Anyone,
            (ServerSharing::User, _) if client.account.is_none() => Self::Anyone,
            (ServerSharing::Session, Era::Handshake) => Self::Session(client.connection),
            (ServerSharing::User, _) | (ServerSharing::Session, Era::Stateless) => {
                Self::Principal(client.account.clone())
            }
        }
    }

    /// Returns the time after which an unused instance is closed. `None` keeps it for its owner.
    fn idle_timeout(&self, usual: Duration) -> Option<Duration> {
        match self {
            Self::Anyone => Some(usual),
            Self::Principal(_) => Some(usual.max(PRINCIPAL_IDLE_TIMEOUT)),
            Self::Session(_) => None,
        }
    }
}

#[derive(Debug)]
struct PoolEntry {
    id: u64,
    owner: InstanceOwner,
    class: ClientClass,
    /// The roots that the server was told, if it asked.
    roots: Option<RootsDigest>,
    /// The connection whose calls use the instance, or one of them if it can ask nothing.
    holder: Option<u64>,
    calls: usize,
    /// The calls that wait for their client to return, by tag.
    parked: Vec<u64>,
    /// Time since all calls wait.
    waiting_since: Option<Instant>,
    /// The only connection that may use the instance from now on.
    reserved: Option<u64>,
    idle_since: Option<Instant>,
}

impl PoolEntry {
    fn is_waiting(&self) -> bool {
        self.calls > 0 && self.parked.len() == self.calls
    }
}

/// Identifies a list of roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RootsDigest([u8; 32]);

/// A call that needs an instance.
#[derive(Debug, Clone)]
pub(super) struct LeaseRequest {
    pub owner: InstanceOwner,
    /// The client's connection.
    pub holder: u64,
    pub class: ClientClass,
    /// The client's roots, if they are known.
    pub roots: Option<RootsDigest>,
    pub unknown_roots: UnknownRoots,
}

/// What to do for a client with unknown roots while there are instances for certain roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownRoots {
    /// Ask the client.
    Ask,
    /// Start another instance: a stateless client would have to repeat its call for the answer.
    Start,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum LeaseDecision {
    Use(u64),
    /// Start a new instance, and close one for it.
    Start {
        id: u64,
        evicted: Option<u64>,
    },
    /// There are instances for certain roots, so the client's roots decide.
    AskRoots,
    /// All instances are in use.
    Full,
}

impl RootsDigest {
    /// Identifies the roots of a client's answer, without regard to their order and names.
    pub fn from_answer(answer: &RawJson) -> Self {
        let answer: Value = answer.decode(&JsonLimits::default()).unwrap_or_default();
        let roots = answer["roots"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut uris: Vec<&str> = roots.iter().filter_map(|root| root["uri"].as_str()).collect();
        uris.sort_unstable();
        let digest = digest(&SHA256, uris.join("\n").as_bytes());
        Self(std::array::from_fn(|index| digest.as_ref()[index]))
    }
}

impl InstancePool {
    pub fn new(max_instances: usize) -> Self {
        Self { max_instances: max_instances.max(1), created: 0, entries: Vec::new() }
    }

    /// Sets the maximum number of instances. Those that exist are not closed.
    pub fn set_max(&mut self, max_instances: usize) {
        self.max_instances = max_instances.max(1);
    }

    /// Decides which instance a call uses. It counts as used by the call until [`InstancePool::release`].
    pub fn lease(&mut self, request: LeaseRequest) -> LeaseDecision {
        let LeaseRequest { owner, holder, class, roots, unknown_roots } = request;
        let is_kind = |entry: &PoolEntry| entry.owner == owner && entry.class == class;
        // An instance of a principal that can ask nothing serves any number of its clients at once.
        let is_shared = class.is_none() && matches!(owner, InstanceOwner::Principal(_));
        let own = |entry: &PoolEntry| is_kind(entry) && (entry.holder == Some(holder) || is_shared);
        let fits = |entry: &PoolEntry| is_kind(entry) && (entry.roots.is_none() || entry.roots == roots);
        let is_open = |entry: &PoolEntry| entry.reserved.is_none_or(|reserved| reserved == holder);
        let free = |entry: &PoolEntry| entry.holder.is_none() && is_open(entry) && fits(entry);
        let found = self.entries.iter().position(own).or_else(|| self.entries.iter().position(free));
        if let Some(index) = found {
            let entry = &mut self.entries[index];
            (entry.holder, entry.idle_since) = (Some(holder), None);
            entry.calls += 1;
            return LeaseDecision::Use(entry.id);
        }
        let is_bound = |entry: &PoolEntry| entry.holder.is_none() && is_open(entry) && is_kind(entry);
        if roots.is_none() && unknown_roots == UnknownRoots::Ask && self.entries.iter().any(is_bound) {
            return LeaseDecision::AskRoots;
        }
        let Ok(evicted) = self.make_room() else { return LeaseDecision::Full };
        self.created += 1;
        let id = self.created;
        self.entries.push(PoolEntry {
            id,
            owner,
            class,
            roots: None,
            holder: Some(holder),
            calls: 1,
            parked: Vec::new(),
            waiting_since: None,
            reserved: None,
            idle_since: None,
        });
        LeaseDecision::Start { id, evicted }
    }

    /// Removes an instance if there are too many: an unused one, or the one that waits longest for a client if too many
    /// wait.
    ///
    /// # Errors
    ///
    /// Fails if all of them work.
    fn make_room(&mut self) -> Result<Option<u64>, ()> {
        let waiting = self.entries.iter().filter(|entry| entry.is_waiting()).count();
        let is_full = self.entries.len() - waiting >= self.max_instances;
        if !is_full && waiting < MAX_WAITING_INSTANCES {
            return Ok(None);
        }
        // The state of a session's own instance is kept until the session ends.
        let may_end = |entry: &&PoolEntry| !matches!(entry.owner, InstanceOwner::Session(_));
        let entries = || self.entries.iter().filter(may_end);
        let unused = entries().filter(|entry| entry.holder.is_none()).min_by_key(|entry| entry.idle_since);
        let abandoned = entries().filter(|entry| entry.is_waiting()).min_by_key(|entry| entry.waiting_since);
        let removed = if is_full { unused } else { abandoned }.map(|entry| entry.id).ok_or(())?;
        self.entries.retain(|entry| entry.id != removed);
        Ok(Some(removed))
    }

    /// Keeps an instance for the connection that uses it: a call of it has ended without a response, and the server may
    /// still ask or log because of it.
    pub fn reserve(&mut self, id: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            entry.reserved = entry.holder;
        }
    }

    /// Notes that a call waits for its client to return.
    pub fn park(&mut self, id: u64, tag: u64, now: Instant) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            entry.parked.push(tag);
            entry.waiting_since = Some(now).filter(|_| entry.is_waiting());
        }
    }

    /// Notes that the client of a call has returned, or that the call has ended.
    pub fn resume(&mut self, id: u64, tag: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            entry.parked.retain(|parked| *parked != tag);
        }
    }

    /// Records the roots that an instance was told.
    pub fn bind_roots(&mut self, id: u64, roots: RootsDigest) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            entry.roots = Some(roots);
        }
    }

    /// Ends the use by one call. Reports whether the instance is unused now.
    pub fn release(&mut self, id: u64, now: Instant) -> bool {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) else { return false };
        entry.calls = entry.calls.saturating_sub(1);
        if entry.calls == 0 {
            (entry.holder, entry.idle_since) = (None, Some(now));
        }
        entry.calls == 0
    }

    /// Removes the instances that were not used for this time, or longer ones of principals.
    pub fn take_expired(&mut self, now: Instant, idle: Duration) -> Vec<u64> {
        let is_expired = |entry: &PoolEntry| {
            let limit = entry.owner.idle_timeout(idle);
            limit.zip(entry.idle_since).is_some_and(|(limit, since)| now.duration_since(since) >= limit)
        };
        self.take(is_expired)
    }

    /// Removes the instances of a session that has ended.
    pub fn take_of_session(&mut self, session: u64) -> Vec<u64> {
        self.take(|entry| entry.owner == InstanceOwner::Session(session))
    }

    fn take(&mut self, is_taken: impl Fn(&PoolEntry) -> bool) -> Vec<u64> {
        let taken = self.entries.iter().filter(|entry| is_taken(entry)).map(|entry| entry.id).collect();
        self.entries.retain(|entry| !is_taken(entry));
        taken
    }

    /// Returns the time until an instance that is unused now is closed.
    pub fn idle_timeout(&self, id: u64, usual: Duration) -> Option<Duration> {
        self.entries.iter().find(|entry| entry.id == id)?.owner.idle_timeout(usual)
    }

    /// Returns the instances that a connection uses.
    pub fn held_by(&self, holder: u64) -> Vec<u64> {
        self.entries.iter().filter(|entry| entry.holder == Some(holder)).map(|entry| entry.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wharf::wire::Revision;

    use super::*;

    fn class(capabilities: Value) -> ClientClass {
        ClientClass::from_capabilities(&capabilities, Revision::V2025_11_25)
    }

    fn forms(holder: u64) -> LeaseRequest {
        owned(InstanceOwner::Anyone, holder, json!({"elicitation": {}}))
    }

    fn owned(owner: InstanceOwner, holder: u64, capabilities: Value) -> LeaseRequest {
        LeaseRequest { owner, holder, class: class(capabilities), roots: None, unknown_roots: UnknownRoots::Ask }
    }

    fn with_roots(holder: u64, roots: Option<RootsDigest>) -> LeaseRequest {
        LeaseRequest { roots, ..owned(InstanceOwner::Anyone, holder, json!({"roots": {}})) }
    }

    fn digest_of(uris: &[&str]) -> RootsDigest {
        let roots: Vec<Value> = uris.iter().map(|uri| json!({"uri": uri, "name": uri.len()})).collect();
        RootsDigest::from_answer(&RawJson::new_unchecked(json!({ "roots": roots }).to_string()))
    }

    fn start(id: u64) -> LeaseDecision {
        LeaseDecision::Start { id, evicted: None }
    }

    #[test]
    fn instance_serves_one_connection_at_a_time() {
        let (mut pool, now) = (InstancePool::new(2), Instant::now());
        assert_eq!(pool.lease(forms(1)), start(1));
        assert_eq!(pool.lease(forms(1)), LeaseDecision::Use(1), "calls of one connection share it");
        assert_eq!(pool.lease(forms(2)), start(2));
        assert_eq!(pool.lease(forms(3)), LeaseDecision::Full);
        assert!(!pool.release(1, now), "another call uses it");
        assert_eq!(pool.lease(forms(3)), LeaseDecision::Full);
        assert!(pool.release(1, now));
        assert_eq!(pool.lease(forms(3)), LeaseDecision::Use(1));
        assert_eq!((pool.held_by(3), pool.held_by(1)), (vec![1], vec![]));
    }

    #[test]
    fn instance_of_a_session_is_its_own_until_it_ends() {
        let (mut pool, now, idle) = (InstancePool::new(2), Instant::now(), Duration::from_secs(60));
        let request = |session| owned(InstanceOwner::Session(session), session, json!({}));
        assert_eq!(pool.lease(request(1)), start(1));
        pool.release(1, now);
        assert_eq!(pool.lease(request(2)), start(2), "not even one after the other");
        pool.release(2, now);
        assert_eq!(pool.lease(request(3)), LeaseDecision::Full, "unused ones keep the state of their sessions");
        assert!(pool.take_expired(now + idle * 1000, idle).is_empty());
        assert_eq!(pool.lease(request(1)), LeaseDecision::Use(1));
        assert_eq!(pool.take_of_session(1), [1]);
        assert!(!pool.release(1, now), "it is gone");
        assert_eq!(pool.lease(request(3)), start(3));
    }

    #[test]
    fn instance_of_a_principal_is_shared_by_its_clients_and_kept_longer() {
        let (mut pool, now, idle) = (InstancePool::new(4), Instant::now(), Duration::from_secs(60));
        let of = |name: &str| InstanceOwner::Principal(Some(name.into()));
        assert_eq!(pool.lease(owned(of("ci"), 1, json!({}))), start(1));
        assert_eq!(pool.lease(owned(of("ci"), 2, json!({}))), LeaseDecision::Use(1), "it can ask nothing");
        assert_eq!(pool.lease(owned(of("other"), 3, json!({}))), start(2));
        assert_eq!(pool.lease(owned(of("ci"), 4, json!({"elicitation": {}}))), start(3));
        assert_eq!(pool.lease(owned(of("ci"), 5, json!({"elicitation": {}}))), start(4), "one client at a time");
        assert!(!pool.release(1, now) && pool.release(1, now));
        assert!(pool.take_expired(now + idle, idle).is_empty());
        assert_eq!(pool.take_expired(now + PRINCIPAL_IDLE_TIMEOUT, idle), [1]);
    }

    #[test]
    fn unused_instance_of_another_class_makes_room() {
        let (mut pool, now) = (InstancePool::new(1), Instant::now());
        pool.lease(forms(1));
        assert_eq!(pool.lease(with_roots(2, None)), LeaseDecision::Full);
        pool.release(1, now);
        assert_eq!(pool.lease(with_roots(2, None)), LeaseDecision::Start { id: 2, evicted: Some(1) });
    }

    #[test]
    fn clients_with_different_roots_never_share_an_instance() {
        let (mut pool, now) = (InstancePool::new(4), Instant::now());
        let (here, there) = (digest_of(&["file:///a", "file:///b"]), digest_of(&["file:///c"]));
        assert_eq!(here, digest_of(&["file:///b", "file:///a"]));
        assert_eq!(pool.lease(with_roots(1, None)), start(1));
        pool.release(1, now);
        assert_eq!(pool.lease(with_roots(2, None)), LeaseDecision::Use(1), "no client has been asked for roots");
        pool.bind_roots(1, here);
        pool.release(1, now);
        assert_eq!(pool.lease(with_roots(3, None)), LeaseDecision::AskRoots);
        assert_eq!(pool.lease(with_roots(3, Some(there))), start(2));
        pool.bind_roots(2, there);
        assert_eq!(pool.lease(with_roots(4, Some(here))), LeaseDecision::Use(1));
        assert_eq!(pool.lease(with_roots(5, None)), start(3), "all others are in use");
    }

    #[test]
    fn stateless_client_is_not_asked_for_roots_before_its_call() {
        let (mut pool, now) = (InstancePool::new(1), Instant::now());
        assert_eq!(pool.lease(with_roots(1, None)), start(1));
        pool.bind_roots(1, digest_of(&["file:///a"]));
        pool.release(1, now);
        let stateless = LeaseRequest { unknown_roots: UnknownRoots::Start, ..with_roots(2, None) };
        assert_eq!(pool.lease(stateless), LeaseDecision::Start { id: 2, evicted: Some(1) });
    }

    #[test]
    fn instance_of_a_cancelled_call_is_kept_from_others() {
        let (mut pool, now) = (InstancePool::new(2), Instant::now());
        assert_eq!(pool.lease(forms(1)), start(1));
        pool.reserve(1);
        pool.release(1, now);
        assert_eq!(pool.lease(forms(2)), start(2));
        assert_eq!(pool.lease(forms(1)), LeaseDecision::Use(1));
        pool.release(1, now);
        assert_eq!(pool.lease(forms(3)), LeaseDecision::Start { id: 3, evicted: Some(1) });
    }

    #[test]
    fn waiting_instance_makes_room_for_working_ones_until_too_many_wait() {
        let (mut pool, now) = (InstancePool::new(1), Instant::now());
        let time = |number: u64| now + Duration::from_secs(number);
        for number in 1..=MAX_WAITING_INSTANCES as u64 {
            assert_eq!(pool.lease(forms(number)), start(number));
            pool.park(number, number, time(number));
        }
        let last = MAX_WAITING_INSTANCES as u64 + 1;
        assert_eq!(pool.lease(forms(last)), LeaseDecision::Start { id: last, evicted: Some(1) });
        assert_eq!(pool.lease(forms(last + 1)), LeaseDecision::Full, "one works");
        pool.resume(2, 2);
        pool.release(last, now);
        assert_eq!(pool.lease(forms(last + 2)), LeaseDecision::Use(last), "it is free again");
        assert!(pool.release(2, now), "its only call has ended");
    }

    #[test]
    fn instance_expires_after_it_was_not_used_for_a_while() {
        let (mut pool, now) = (InstancePool::new(4), Instant::now());
        let idle = Duration::from_secs(60);
        pool.lease(forms(1));
        assert!(pool.take_expired(now + idle, idle).is_empty());
        pool.release(1, now);
        assert!(pool.take_expired(now + idle / 2, idle).is_empty());
        assert_eq!(pool.take_expired(now + idle, idle), [1]);
        assert_eq!(pool.lease(forms(1)), start(2));
        assert!(!pool.release(1, now), "it is gone");
    }
}
