//! Notifications from the server, distributed to their subscribers.
//!
//! Each subscriber has a set of changes, not a queue of messages: a flood of notifications uses no extra memory, and a
//! slow subscriber still sees every change.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use wharf_wire::{Acknowledged, Era, Id, Interest, JsonLimits, RawJson, Task, View, subscription_id};

use crate::cache::{ResultCache, uris_overlap};

/// Maximum changed resources recorded for one subscriber. Beyond that the whole list is marked as changed.
const MAX_NAMES: usize = 1024;

/// Maximum pages whose completion is recorded or awaited at once.
const MAX_PAGES: usize = 64;
/// Maximum bytes in the name of a resource or a page. Longer names are ignored.
const MAX_NAME_BYTES: usize = 8 << 10;

/// The subscribers of one connection.
#[derive(Default)]
pub(crate) struct NotificationHub {
    inboxes: Mutex<Vec<Arc<NotificationSubscriber>>>,
    /// By elicitation id: set to true when the server reports that the page is done.
    pages: Mutex<HashMap<String, watch::Sender<bool>>>,
    cache: Arc<ResultCache>,
    /// Number of times the tool list has changed.
    tools: AtomicU64,
    bounds: JsonLimits,
}

/// One subscriber and its pending changes.
pub(crate) struct NotificationSubscriber {
    interest: Interest,
    news: Mutex<PendingChanges>,
    /// Notified when changes are pending.
    pub arrived: Notify,
}

/// Changes since the subscriber last looked.
#[derive(Default)]
pub(crate) struct PendingChanges {
    /// Id of the request that opened this subscription's stream (2026-07-28).
    pub listen: Option<u64>,
    pub acknowledged: Option<Interest>,
    /// The server has lost its subscriptions.
    pub anew: bool,
    /// Notifications may have been missed.
    pub missed: bool,
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
    pub uris: BTreeSet<String>,
    pub tasks: HashMap<String, Task>,
}

/// The outcome of dispatching a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DispatchOutcome {
    /// The notification does not concern changes.
    Other,
    Heard,
    /// The notification names an unknown subscription.
    Stray,
}

/// Notification that confirms a subscription. It is not a change.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

impl NotificationHub {
    pub fn new(cache: Arc<ResultCache>, bounds: JsonLimits) -> Self {
        Self { cache, bounds, ..Self::default() }
    }

    pub fn cache(&self) -> &ResultCache {
        &self.cache
    }

    /// Adds a subscriber. [`NotificationHub::unsubscribe`] removes it.
    pub fn subscribe(&self, interest: Interest) -> Arc<NotificationSubscriber> {
        let inbox = Arc::new(NotificationSubscriber { interest, news: Mutex::default(), arrived: Notify::new() });
        lock(&self.inboxes).push(Arc::clone(&inbox));
        inbox
    }

    pub fn unsubscribe(&self, inbox: &Arc<NotificationSubscriber>) {
        lock(&self.inboxes).retain(|other| !Arc::ptr_eq(other, inbox));
    }

    /// Reports whether another subscriber is interested in the resource.
    pub fn has_other_subscriber(&self, uri: &str, but: &Arc<NotificationSubscriber>) -> bool {
        let inboxes = lock(&self.inboxes);
        inboxes.iter().any(|inbox| !Arc::ptr_eq(inbox, but) && inbox.interest.uris.iter().any(|wanted| wanted == uri))
    }

    /// Returns the subscriber whose stream has this id.
    pub fn subscriber_by_stream(&self, id: u64) -> Option<Arc<NotificationSubscriber>> {
        let inboxes = lock(&self.inboxes);
        inboxes.iter().find(|inbox| inbox.pending().listen == Some(id)).cloned()
    }

    /// Returns a receiver that changes to true when the server reports that the page is done. Several calls may wait
    /// for the same page.
    pub fn watch_page(&self, elicitation: &str) -> watch::Receiver<bool> {
        lock(&self.pages).entry(elicitation.to_owned()).or_default().subscribe()
    }

    /// Removes a page that no call waits for.
    pub fn forget_page(&self, elicitation: &str) {
        let mut pages = lock(&self.pages);
        if pages.get(elicitation).is_some_and(|page| page.receiver_count() == 0) {
            pages.remove(elicitation);
        }
    }

    /// Removes cached results covered by `interest`, because change notifications for them may have been missed.
    pub fn invalidate_interest(&self, interest: &Interest) {
        let lists = [
            (interest.tools, ServerChange::Tools),
            (interest.prompts, ServerChange::Prompts),
            (interest.resources, ServerChange::Resources),
        ];
        lists.iter().filter(|(watched, _)| *watched).for_each(|(_, change)| self.invalidate_change(change));
        interest.uris.iter().for_each(|uri| self.cache.invalidate_resource(uri));
    }

    /// Handles a server that has lost its subscriptions: clears the cache and makes every subscriber resubscribe.
    pub fn reset_subscriptions(&self) {
        self.cache.clear();
        self.tools.fetch_add(1, Ordering::Relaxed);
        for inbox in lock(&self.inboxes).iter() {
            inbox.pending().anew = true;
            inbox.arrived.notify_one();
        }
    }

    /// Handles notifications that may have been missed: clears the cache and notifies every subscriber.
    pub fn mark_missed(&self) {
        self.cache.clear();
        self.tools.fetch_add(1, Ordering::Relaxed);
        for inbox in lock(&self.inboxes).iter() {
            inbox.pending().missed = true;
            inbox.arrived.notify_one();
        }
    }

    /// Returns how many times the tool list has changed.
    pub fn tools_changes(&self) -> u64 {
        self.tools.load(Ordering::Relaxed)
    }

    /// Dispatches a notification about a change to the interested subscribers.
    pub fn dispatch(&self, era: Era, method: &str, params: Option<&RawJson>) -> DispatchOutcome {
        let Some(change) = self.parse_change(method, params) else { return DispatchOutcome::Other };
        if let ServerChange::PageDone(elicitation) = &change {
            // The notification often arrives before a call waits for the page.
            let mut pages = lock(&self.pages);
            if pages.len() < MAX_PAGES || pages.contains_key(elicitation) {
                pages.entry(elicitation.clone()).or_default().send_replace(true);
            }
            return DispatchOutcome::Heard;
        }
        let to = match era {
            Era::Handshake => self.interested_subscribers(&change),
            Era::Stateless => {
                let id = params.and_then(subscription_id);
                let id = id.as_ref().and_then(|id| match Id::parse(id.as_bytes()) {
                    Id::Integer(number) => u64::try_from(number).ok(),
                    _ => None,
                });
                let answers = matches!(change, ServerChange::Acknowledged(_));
                match id.and_then(|id| self.subscriber_by_stream(id)) {
                    // Notifications before the acknowledgement are not part of the subscription.
                    Some(inbox) if answers || (inbox.is_acknowledged() && change.concerns(&inbox.interest)) => {
                        vec![inbox]
                    }
                    _ => return DispatchOutcome::Stray,
                }
            }
        };
        self.invalidate_change(&change);
        for inbox in to {
            inbox.pending().record(&change);
            inbox.arrived.notify_one();
        }
        DispatchOutcome::Heard
    }

    fn parse_change(&self, method: &str, params: Option<&RawJson>) -> Option<ServerChange> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct NotificationNames {
            #[serde(default)]
            uri: Option<String>,
            #[serde(default)]
            elicitation_id: Option<String>,
        }
        let names = || params?.decode::<NotificationNames>(&self.bounds).ok();
        let short = |name: &String| name.len() <= MAX_NAME_BYTES;
        let method = method.strip_prefix("notifications/")?;
        Some(match method {
            "tools/list_changed" => ServerChange::Tools,
            "prompts/list_changed" => ServerChange::Prompts,
            "resources/list_changed" => ServerChange::Resources,
            "resources/updated" => ServerChange::Resource(names()?.uri.filter(short)?),
            "tasks" | "tasks/status" => {
                ServerChange::Task(Box::new(Task::from_raw(params?.clone(), &self.bounds).ok()?))
            }
            "elicitation/complete" => ServerChange::PageDone(names()?.elicitation_id.filter(short)?),
            _ if ACKNOWLEDGED.strip_prefix("notifications/") == Some(method) => {
                let Acknowledged(interest) = Acknowledged::from_raw(params?.clone(), &self.bounds).ok()?;
                ServerChange::Acknowledged(interest)
            }
            _ => return None,
        })
    }

    fn interested_subscribers(&self, change: &ServerChange) -> Vec<Arc<NotificationSubscriber>> {
        let inboxes = lock(&self.inboxes);
        inboxes.iter().filter(|inbox| change.concerns(&inbox.interest)).cloned().collect()
    }

    fn invalidate_change(&self, change: &ServerChange) {
        match change {
            ServerChange::Tools => {
                self.tools.fetch_add(1, Ordering::Relaxed);
                self.cache.invalidate_method("tools/list");
            }
            ServerChange::Prompts => self.cache.invalidate_method("prompts/list"),
            ServerChange::Resources => {
                self.cache.invalidate_method("resources/list");
                self.cache.invalidate_method("resources/templates/list");
            }
            ServerChange::Resource(uri) => self.cache.invalidate_resource(uri),
            ServerChange::Task(_) | ServerChange::PageDone(_) | ServerChange::Acknowledged(_) => {}
        }
    }
}

enum ServerChange {
    Tools,
    Prompts,
    Resources,
    Resource(String),
    Task(Box<Task>),
    PageDone(String),
    Acknowledged(Interest),
}

impl ServerChange {
    fn concerns(&self, interest: &Interest) -> bool {
        match self {
            Self::Tools => interest.tools,
            Self::Prompts => interest.prompts,
            Self::Resources => interest.resources,
            Self::Resource(uri) => interest.uris.iter().any(|wanted| uris_overlap(uri, wanted)),
            Self::Task(task) => interest.tasks.contains(&task.id),
            Self::PageDone(_) | Self::Acknowledged(_) => false,
        }
    }
}

impl NotificationSubscriber {
    pub fn interest(&self) -> &Interest {
        &self.interest
    }

    /// Reports whether the server has acknowledged the subscription (2026-07-28).
    fn is_acknowledged(&self) -> bool {
        self.pending().acknowledged.is_some()
    }

    pub fn pending(&self) -> MutexGuard<'_, PendingChanges> {
        lock(&self.news)
    }
}

impl PendingChanges {
    fn record(&mut self, change: &ServerChange) {
        match change {
            ServerChange::Tools => self.tools = true,
            ServerChange::Prompts => self.prompts = true,
            ServerChange::Resources => self.resources = true,
            ServerChange::Resource(uri) if self.uris.len() < MAX_NAMES => drop(self.uris.insert(uri.clone())),
            // Too many to record: report that the list has changed, so that the subscriber reads all of it.
            ServerChange::Resource(_) => self.resources = true,
            ServerChange::Task(task) if self.tasks.len() < MAX_NAMES || self.tasks.contains_key(&task.id) => {
                self.tasks.insert(task.id.clone(), Task::clone(task));
            }
            ServerChange::Task(_) | ServerChange::PageDone(_) => {}
            ServerChange::Acknowledged(interest) => self.acknowledged = Some(interest.clone()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
