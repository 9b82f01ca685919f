//! Lists a connected server's tools, resources and prompts, and keeps those lists current while it is connected.

use std::future::{Future as _, pending};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use wharf_client::{CallError, Connection, Event as News, Listing, Subscription};
use wharf_wire::{Interest, PromptDefinition, RawJson, Resource, ResourceTemplate, ServerCapabilities, ToolDefinition};

use crate::catalog::ListName;
use crate::context::HostContext;
use crate::events::Event;
use crate::resource_subscriptions::RequestedResources;
use crate::server::Server;

/// Minimum interval between two refreshes, regardless of the number of change notifications.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum age at which lists are refreshed because their TTL has expired.
const MIN_LIST_TTL: Duration = Duration::from_secs(10);
/// Bytes listed per second of minimum refresh interval: large lists are refreshed less often after a change.
const BYTES_PER_SECOND: usize = 256 << 10;
/// Maximum jitter added to a refresh, so that many servers are not queried at the same moment.
const MAX_REFRESH_JITTER: Duration = Duration::from_millis(200);

/// The lists that a host requests from its servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListingMode {
    /// All lists, refreshed on every change.
    #[default]
    Full,
    /// The tools only, listed once: for a host that makes a single call.
    ToolsOnce,
    /// None: for a host whose connections are used directly.
    Nothing,
}

/// The lists that need a refresh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DirtyLists {
    tools: bool,
    resources: bool,
    prompts: bool,
}

impl DirtyLists {
    const ALL: Self = Self { tools: true, resources: true, prompts: true };

    /// Keeps only the lists that the server's capabilities include.
    fn restrict_to(self, offered: &ServerCapabilities) -> Self {
        Self {
            tools: self.tools && offered.tools,
            resources: self.resources && offered.resources,
            prompts: self.prompts && offered.prompts,
        }
    }
}

/// The last readable version of each of a server's lists. Cloning it copies no list.
#[derive(Clone, Default)]
pub(crate) struct FetchedLists {
    pub tools: Option<Arc<Listing<ToolDefinition>>>,
    pub resources: Option<Arc<Listing<Resource>>>,
    pub templates: Option<Arc<Listing<ResourceTemplate>>>,
    pub prompts: Option<Arc<Listing<PromptDefinition>>>,
    /// Lists that could not be read, with the error (escaped).
    pub failed: Vec<(ListName, String)>,
}

struct ServerLister {
    context: Arc<HostContext>,
    server: Arc<Server>,
    connection: Connection,
    epoch: u64,
    lists: Arc<FetchedLists>,
    stale: DirtyLists,
    looked: Instant,
    /// Bytes of the last refresh. A list that was abandoned counts as the maximum list size.
    bytes: usize,
}

/// Lists a server's offer and keeps it current until the future is dropped.
pub(crate) async fn run_lister(context: Arc<HostContext>, server: Arc<Server>, connection: Connection, epoch: u64) {
    let (lists, stale) = (Arc::new(FetchedLists::default()), DirtyLists::ALL);
    let mut attendant =
        ServerLister { context, server, connection, epoch, lists, stale, looked: Instant::now(), bytes: 0 };
    match attendant.context.options.attention {
        ListingMode::Full => attendant.run().await,
        ListingMode::ToolsOnce => attendant.list_tools_once().await,
        ListingMode::Nothing => attendant.mark_listed(),
    }
}

impl ServerLister {
    /// Subscribes to the server and refreshes its lists. Subscribes again when the requested resources change.
    async fn run(&mut self) {
        let connection = self.connection.clone();
        let mut wanted = self.server.watched.requested_changes();
        // Resources confirmed on an earlier connection may have changed since.
        let mut unheard = self.server.watched.confirmed_uris();
        let (mut version, first) = current_interest(&mut wanted);
        // Concurrent: a change between the list and the subscription would be missed.
        let (opened, ()) = tokio::join!(connection.subscribe(first), self.refresh());
        let mut subscription = self.accept_subscription(opened);
        loop {
            // The server has not declined the subscription: the connection is gone, and the next one subscribes again.
            if connection.is_gone() {
                return;
            }
            let agreed = subscription.as_ref().map(|subscription| subscription.confirmed_interest().uris.clone());
            let agreed = agreed.unwrap_or_default();
            self.report_interrupted(std::mem::take(&mut unheard), &agreed);
            self.server.watched.confirm(version, agreed);
            self.handle_notifications(&mut subscription, &mut wanted).await;
            let (next_version, next) = current_interest(&mut wanted);
            let opened = connection.subscribe(next).await;
            let before = std::mem::replace(&mut subscription, self.accept_subscription(opened));
            version = next_version;
            self.drain_subscription(before);
        }
    }

    /// Lists the server's tools once.
    async fn list_tools_once(&mut self) {
        self.stale = DirtyLists { tools: true, ..DirtyLists::default() };
        self.refresh().await;
    }

    /// Reports the resources of an earlier subscription as possibly updated or as no longer watched.
    fn report_interrupted(&self, unheard: Vec<String>, agreed: &[String]) {
        let (back, lost) = unheard.into_iter().partition::<Vec<_>, _>(|uri| agreed.contains(uri));
        self.context.report_possibly_updated(&self.server, back);
        self.context.report_unsubscribed(&self.server, lost);
    }

    fn accept_subscription(&self, opened: Result<Subscription, CallError>) -> Option<Subscription> {
        match opened {
            Ok(subscription) => Some(subscription),
            // The server sends no notifications; the lists' TTL has to suffice.
            Err(CallError::Unsupported(_)) => None,
            Err(error) => {
                self.server.report_rejected(self.epoch, &error);
                self.warn(format!("subscribing to changes failed: {error}"));
                None
            }
        }
    }

    /// Handles notifications and refreshes lists until the requested resources change.
    async fn handle_notifications(
        &mut self,
        subscription: &mut Option<Subscription>,
        wanted: &mut watch::Receiver<RequestedResources>,
    ) {
        loop {
            tokio::select! {
                news = next_notification(subscription) => match news {
                    Ok(news) => self.on_notification(news),
                    Err(error) => {
                        *subscription = None;
                        self.on_subscription_lost(&error);
                    }
                },
                // Fails only if the server itself is dropped, and then this task ends as well.
                _ = wanted.changed() => return,
                () = tokio::time::sleep_until(self.next_refresh()) => self.refresh().await,
            }
        }
    }

    /// Handles the notifications still queued in a replaced subscription.
    fn drain_subscription(&mut self, subscription: Option<Subscription>) {
        let Some(mut subscription) = subscription else { return };
        let mut rest = Vec::new();
        {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            while let Poll::Ready(Ok(news)) = pin!(subscription.next()).poll(&mut context) {
                rest.push(news);
            }
        }
        rest.into_iter().for_each(|news| self.on_notification(news));
    }

    fn on_notification(&mut self, news: News) {
        match news {
            News::Tools => self.stale.tools = true,
            News::Prompts => self.stale.prompts = true,
            News::Resources => self.stale.resources = true,
            News::Resource(uri) => self.context.report_updated(&self.server, uri),
            News::Resumed => {
                self.stale = DirtyLists::ALL;
                self.context.report_possibly_updated(&self.server, self.server.watched.confirmed_uris());
            }
            _ => {}
        }
    }

    /// Returns the time of the next refresh: soon after a change notification, otherwise when a TTL expires.
    fn next_refresh(&self) -> Instant {
        if self.stale != DirtyLists::default() {
            let seconds = (self.bytes / BYTES_PER_SECOND) as u64;
            return self.looked
                + MIN_REFRESH_INTERVAL.max(Duration::from_secs(seconds))
                + self.context.jitter(MAX_REFRESH_JITTER);
        }
        let lists = &self.lists;
        let ages = [
            lists.tools.as_ref().and_then(|list| list.ttl),
            lists.resources.as_ref().and_then(|list| list.ttl),
            lists.templates.as_ref().and_then(|list| list.ttl),
            lists.prompts.as_ref().and_then(|list| list.ttl),
        ];
        let oldest = ages.into_iter().flatten().min();
        let never = Duration::from_secs(30 * 24 * 3600);
        self.looked + oldest.map_or(never, |age| age.max(MIN_LIST_TTL))
    }

    /// Lists everything that may have changed and publishes it.
    async fn refresh(&mut self) {
        let stale = std::mem::take(&mut self.stale);
        let stale = if stale == DirtyLists::default() { DirtyLists::ALL } else { stale };
        let stale = stale.restrict_to(&self.connection.facts().capabilities);
        Arc::make_mut(&mut self.lists).failed.clear();
        self.bytes = 0;
        let connection = self.connection.clone();
        if stale.tools {
            let listed = connection.list_tools().await;
            if let Err(error) = &listed {
                self.server.report_rejected(self.epoch, error);
            }
            self.bytes += self.list_cost(&listed, |tool| &tool.raw);
            let FetchedLists { tools, failed, .. } = Arc::make_mut(&mut self.lists);
            Self::store_list(tools, failed, ListName::Tools, listed);
        }
        // Calls wait for the tools: publish them before listing anything else.
        self.looked = Instant::now();
        if stale.resources || stale.prompts {
            self.context.publish_lists(&self.server, self.epoch, &self.lists, &self.connection).await;
            self.raise_epoch(&self.server.listed);
            self.refresh_rest(&connection, stale).await;
        }
        self.publish_all().await;
        self.report_failures();
    }

    async fn refresh_rest(&mut self, connection: &Connection, stale: DirtyLists) {
        let DirtyLists { resources, prompts, .. } = stale;
        let listed = async { if resources { Some(connection.list_resources().await) } else { None } };
        let templates = async { if resources { Some(connection.list_templates().await) } else { None } };
        let prompts = async { if prompts { Some(connection.list_prompts().await) } else { None } };
        let (listed, templates, prompts) = tokio::join!(listed, templates, prompts);
        // Many servers have resources and do not implement templates.
        let templates = templates.map(|templates| match templates {
            Err(error) if error.is_error_response() => {
                Ok(Listing { items: Vec::new(), withheld: Vec::new(), ttl: None })
            }
            listed => listed,
        });
        self.bytes += listed.as_ref().map_or(0, |listed| self.list_cost(listed, |resource| &resource.raw));
        self.bytes += templates.as_ref().map_or(0, |listed| self.list_cost(listed, |template| &template.raw));
        self.bytes += prompts.as_ref().map_or(0, |listed| self.list_cost(listed, |prompt| &prompt.raw));
        let FetchedLists { resources: kept, templates: kept_templates, prompts: kept_prompts, failed, .. } =
            Arc::make_mut(&mut self.lists);
        listed.into_iter().for_each(|listed| Self::store_list(kept, failed, ListName::Resources, listed));
        templates.into_iter().for_each(|listed| Self::store_list(kept_templates, failed, ListName::Templates, listed));
        prompts.into_iter().for_each(|listed| Self::store_list(kept_prompts, failed, ListName::Prompts, listed));
    }

    /// Returns the number of bytes that a list cost.
    fn list_cost<T>(&self, listed: &Result<Listing<T>, CallError>, raw: impl Fn(&T) -> &RawJson) -> usize {
        match listed {
            Ok(listing) => listing.items.iter().map(|item| raw(item).as_bytes().len()).sum(),
            Err(CallError::Listing { .. } | CallError::TooLarge { .. } | CallError::Discarded(_)) => {
                self.context.options.limits.list
            }
            Err(_) => 0,
        }
    }

    /// Stores a list that was read, or records the error and keeps the previous list.
    fn store_list<T>(
        kept: &mut Option<Arc<Listing<T>>>,
        failed: &mut Vec<(ListName, String)>,
        what: ListName,
        listed: Result<Listing<T>, CallError>,
    ) {
        match listed {
            Ok(listing) => *kept = Some(Arc::new(listing)),
            Err(error) => failed.push((what, error.to_string())),
        }
    }

    fn report_failures(&self) {
        for (what, why) in &self.lists.failed {
            self.warn(format!("listing its {what} failed: {why}"));
        }
    }

    /// Publishes all lists and saves them for the next start.
    async fn publish_all(&self) {
        self.context.publish_lists(&self.server, self.epoch, &self.lists, &self.connection).await;
        self.context.cache_lists(&self.server, &self.lists, &self.connection);
        self.mark_listed();
    }

    /// Marks the lists of this connection as read.
    fn mark_listed(&self) {
        if let Some(started) = self.server.snapshot.borrow().started {
            // Only the first start counts.
            let _ = self.server.startup_time.set(started.elapsed());
        }
        self.raise_epoch(&self.server.listed);
        self.raise_epoch(&self.server.listed_all);
    }

    /// Raises the watched epoch to this connection's. A late lister never lowers it.
    fn raise_epoch(&self, mark: &watch::Sender<u64>) {
        mark.send_if_modified(|reached| {
            let newer = *reached < self.epoch;
            *reached = self.epoch.max(*reached);
            newer
        });
    }

    /// Reports that the server ended its subscription. If the connection is gone, the next one subscribes again.
    fn on_subscription_lost(&self, error: &CallError) {
        self.server.report_rejected(self.epoch, error);
        if !self.connection.is_gone() {
            self.warn(format!("its subscription ended: {error}"));
            self.context.report_unsubscribed(&self.server, self.server.watched.confirmed_uris());
        }
    }

    fn warn(&self, text: String) {
        if self.connection.is_gone() {
            return;
        }
        tracing::warn!(server = %self.server.name, "{text}");
        self.context.event_bus.publish(Event::Warning { server: self.server.name.clone(), text });
    }
}

/// Returns the resources to watch and the version of that set.
fn current_interest(wanted: &mut watch::Receiver<RequestedResources>) -> (u64, Interest) {
    let wanted = wanted.borrow_and_update();
    let uris = wanted.uris.keys().cloned().collect();
    (wanted.version, Interest { tools: true, prompts: true, resources: true, uris, ..Interest::default() })
}

/// Returns the next notification. Pends forever without a subscription.
async fn next_notification(subscription: &mut Option<Subscription>) -> Result<News, CallError> {
    match subscription {
        Some(subscription) => subscription.next().await,
        None => pending().await,
    }
}
