//! Learns what a connected server offers, and keeps that true for as long as it is connected.

use std::future::{Future as _, pending};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use wharf_client::{CallError, Connection, Event as News, Listing, Subscription};
use wharf_wire::{Interest, PromptDefinition, Raw, Resource, ResourceTemplate, ServerCapabilities, ToolDefinition};

use crate::catalog::ListName;
use crate::context::Context;
use crate::events::Event;
use crate::server::Server;
use crate::watching::Wanted;

/// The shortest time between two looks at the same lists, however often a server says that they have changed.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// The shortest time after which lists are looked at because they have grown old.
const OLD_AT_LEAST: Duration = Duration::from_secs(10);
/// A second passes for each of so many bytes before lists are looked at again that a server says have changed.
const BYTES_PER_SECOND: usize = 256 << 10;
/// The longest a changed list waits beyond that, so that many servers do not ask at once.
const SPREAD: Duration = Duration::from_millis(200);

/// How much a host wants to know of its servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Attention {
    /// Everything they list, and every change of it.
    #[default]
    Full,
    /// Their tools, once: for a host that makes one call and is gone.
    ToolsOnce,
}

/// Which lists to look at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stale {
    tools: bool,
    resources: bool,
    prompts: bool,
}

impl Stale {
    const ALL: Self = Self { tools: true, resources: true, prompts: true };

    /// Those that the server has at all.
    fn among(self, offered: &ServerCapabilities) -> Self {
        Self {
            tools: self.tools && offered.tools,
            resources: self.resources && offered.resources,
            prompts: self.prompts && offered.prompts,
        }
    }
}

/// What one server listed, the last time each of its lists could be read.
#[derive(Default)]
pub(crate) struct Lists {
    pub tools: Option<Listing<ToolDefinition>>,
    pub resources: Option<Listing<Resource>>,
    pub templates: Option<Listing<ResourceTemplate>>,
    pub prompts: Option<Listing<PromptDefinition>>,
    /// Which lists could not be read, and why; escaped.
    pub failed: Vec<(ListName, String)>,
}

struct Attendant {
    context: Arc<Context>,
    server: Arc<Server>,
    connection: Connection,
    epoch: u64,
    lists: Lists,
    stale: Stale,
    looked: Instant,
    /// Bytes of the last look; a list that was given up counts as large as one may be.
    bytes: usize,
}

/// Attends to a connection until it is dropped.
pub(crate) async fn attend(context: Arc<Context>, server: Arc<Server>, connection: Connection, epoch: u64) {
    let (lists, stale) = (Lists::default(), Stale::ALL);
    let mut attendant =
        Attendant { context, server, connection, epoch, lists, stale, looked: Instant::now(), bytes: 0 };
    match attendant.context.options.attention {
        Attention::Full => attendant.watch().await,
        Attention::ToolsOnce => attendant.look_once().await,
    }
}

impl Attendant {
    /// Learns what the server offers and watches it, anew whenever something else is to be watched.
    async fn watch(&mut self) {
        let connection = self.connection.clone();
        let mut wanted = self.server.watched.wanted();
        // What an earlier connection told of may have changed meanwhile.
        let mut unheard = self.server.watched.agreed();
        let (mut version, first) = interest(&mut wanted);
        // Both at once: a change after the list and before the watch would go unheard.
        let (opened, ()) = tokio::join!(connection.subscribe(first), self.look());
        let mut subscription = self.opened(opened);
        loop {
            // It has not said no: it has gone, and the next connection asks again.
            if connection.is_gone() {
                return;
            }
            let agreed = subscription.as_ref().map(|subscription| subscription.honoured().uris.clone());
            let agreed = agreed.unwrap_or_default();
            self.resume(std::mem::take(&mut unheard), &agreed);
            self.server.watched.agree(version, agreed);
            self.listen(&mut subscription, &mut wanted).await;
            let (next_version, next) = interest(&mut wanted);
            let opened = connection.subscribe(next).await;
            let before = std::mem::replace(&mut subscription, self.opened(opened));
            version = next_version;
            self.take_rest(before);
        }
    }

    /// Learns which tools the server offers, and leaves it at that.
    async fn look_once(&mut self) {
        self.stale = Stale { tools: true, ..Stale::default() };
        self.look().await;
    }

    /// Tells what has become of the resources an earlier connection told of.
    fn resume(&self, unheard: Vec<String>, agreed: &[String]) {
        let (back, lost) = unheard.into_iter().partition::<Vec<_>, _>(|uri| agreed.contains(uri));
        self.context.tell_perhaps_updated(&self.server, back);
        self.context.tell_unwatched(&self.server, lost);
    }

    fn opened(&self, opened: Result<Subscription, CallError>) -> Option<Subscription> {
        match opened {
            Ok(subscription) => Some(subscription),
            // It never tells; whatever it says of its lists' age must do.
            Err(CallError::Unsupported(_)) => None,
            Err(error) => {
                self.server.turned_away(self.epoch, &error);
                self.warn(format!("it cannot be watched: {error}"));
                None
            }
        }
    }

    /// Hears news and looks at what has changed, until something else is to be watched.
    async fn listen(&mut self, subscription: &mut Option<Subscription>, wanted: &mut watch::Receiver<Wanted>) {
        loop {
            tokio::select! {
                news = next_news(subscription) => match news {
                    Ok(news) => self.note(news),
                    Err(error) => {
                        *subscription = None;
                        self.lose_watch(&error);
                    }
                },
                // Fails only with the server itself, and then this task ends as well.
                _ = wanted.changed() => return,
                () = self.server.anew.notified() => self.put_on_shelf().await,
                () = tokio::time::sleep_until(self.due()) => self.look().await,
            }
        }
    }

    /// What a watch that is given up still had to say.
    fn take_rest(&mut self, subscription: Option<Subscription>) {
        let Some(mut subscription) = subscription else { return };
        let mut rest = Vec::new();
        {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            while let Poll::Ready(Ok(news)) = pin!(subscription.next()).poll(&mut context) {
                rest.push(news);
            }
        }
        rest.into_iter().for_each(|news| self.note(news));
    }

    fn note(&mut self, news: News) {
        match news {
            News::Tools => self.stale.tools = true,
            News::Prompts => self.stale.prompts = true,
            News::Resources => self.stale.resources = true,
            News::Resource(uri) => self.context.tell_updated(&self.server, uri),
            News::Resumed => {
                self.stale = Stale::ALL;
                self.context.tell_perhaps_updated(&self.server, self.server.watched.agreed());
            }
            _ => {}
        }
    }

    /// When to look again: soon where something has changed, later where something has grown old.
    fn due(&self) -> Instant {
        if self.stale != Stale::default() {
            let seconds = (self.bytes / BYTES_PER_SECOND) as u64;
            return self.looked + BETWEEN_LOOKS.max(Duration::from_secs(seconds)) + self.context.jitter(SPREAD);
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
        self.looked + oldest.map_or(never, |age| age.max(OLD_AT_LEAST))
    }

    /// Lists what may have changed and puts it on the shelf.
    async fn look(&mut self) {
        let stale = std::mem::take(&mut self.stale);
        let stale = if stale == Stale::default() { Stale::ALL } else { stale };
        let stale = stale.among(&self.connection.facts().capabilities);
        self.lists.failed.clear();
        self.bytes = 0;
        let connection = self.connection.clone();
        if stale.tools {
            let listed = connection.list_tools().await;
            if let Err(error) = &listed {
                self.server.turned_away(self.epoch, error);
            }
            self.bytes += self.weigh(&listed, |tool| &tool.raw);
            Self::take(&mut self.lists.tools, &mut self.lists.failed, ListName::Tools, listed);
        }
        // Tools are what calls wait for; nothing else keeps them from it.
        self.looked = Instant::now();
        if stale.resources || stale.prompts {
            self.context.shelve(&self.server, self.epoch, &self.lists, &self.connection).await;
            self.reached(&self.server.listed);
            self.look_further(&connection, stale).await;
        }
        self.put_on_shelf().await;
        self.failures_told();
    }

    async fn look_further(&mut self, connection: &Connection, stale: Stale) {
        let Stale { resources, prompts, .. } = stale;
        let listed = async { if resources { Some(connection.list_resources().await) } else { None } };
        let templates = async { if resources { Some(connection.list_templates().await) } else { None } };
        let prompts = async { if prompts { Some(connection.list_prompts().await) } else { None } };
        let (listed, templates, prompts) = tokio::join!(listed, templates, prompts);
        // Many servers have resources and know nothing of templates.
        let templates = templates.map(|templates| match templates {
            Err(error) if error.is_refusal() => Ok(Listing { items: Vec::new(), withheld: Vec::new(), ttl: None }),
            listed => listed,
        });
        self.bytes += listed.as_ref().map_or(0, |listed| self.weigh(listed, |resource| &resource.raw));
        self.bytes += templates.as_ref().map_or(0, |listed| self.weigh(listed, |template| &template.raw));
        self.bytes += prompts.as_ref().map_or(0, |listed| self.weigh(listed, |prompt| &prompt.raw));
        let Lists { resources: kept, templates: kept_templates, prompts: kept_prompts, failed, .. } = &mut self.lists;
        listed.into_iter().for_each(|listed| Self::take(kept, failed, ListName::Resources, listed));
        templates.into_iter().for_each(|listed| Self::take(kept_templates, failed, ListName::Templates, listed));
        prompts.into_iter().for_each(|listed| Self::take(kept_prompts, failed, ListName::Prompts, listed));
    }

    /// How many bytes a list has cost.
    fn weigh<T>(&self, listed: &Result<Listing<T>, CallError>, raw: impl Fn(&T) -> &Raw) -> usize {
        match listed {
            Ok(listing) => listing.items.iter().map(|item| raw(item).as_bytes().len()).sum(),
            Err(CallError::Listing { .. } | CallError::TooLarge { .. } | CallError::Discarded(_)) => {
                self.context.options.limits.list
            }
            Err(_) => 0,
        }
    }

    /// Keeps a list that could be read, and what was read before where it could not.
    fn take<T>(
        kept: &mut Option<Listing<T>>,
        failed: &mut Vec<(ListName, String)>,
        what: ListName,
        listed: Result<Listing<T>, CallError>,
    ) {
        match listed {
            Ok(listing) => *kept = Some(listing),
            Err(error) => failed.push((what, error.to_string())),
        }
    }

    fn failures_told(&self) {
        for (what, why) in &self.lists.failed {
            self.warn(format!("its {what} could not be listed: {why}"));
        }
    }

    /// Puts everything on the shelf, and keeps it for the next time.
    async fn put_on_shelf(&self) {
        self.context.shelve(&self.server, self.epoch, &self.lists, &self.connection).await;
        self.context.keep_listed(&self.server, &self.lists, &self.connection);
        self.reached(&self.server.listed);
        self.reached(&self.server.listed_all);
    }

    /// Says that this connection has got so far. An attendant that is late does not take it back.
    fn reached(&self, mark: &watch::Sender<u64>) {
        mark.send_if_modified(|reached| {
            let newer = *reached < self.epoch;
            *reached = self.epoch.max(*reached);
            newer
        });
    }

    /// The server ended its watch. Where it has gone altogether, the next connection watches again.
    fn lose_watch(&self, error: &CallError) {
        self.server.turned_away(self.epoch, error);
        if !self.connection.is_gone() {
            self.warn(format!("it is not watched any longer: {error}"));
            self.context.tell_unwatched(&self.server, self.server.watched.agreed());
        }
    }

    fn warn(&self, text: String) {
        if self.connection.is_gone() {
            return;
        }
        tracing::warn!(server = %self.server.name, "{text}");
        self.context.crier.tell(Event::Warning { server: self.server.name.clone(), text });
    }
}

/// What is to be watched now, and which version of that it is.
fn interest(wanted: &mut watch::Receiver<Wanted>) -> (u64, Interest) {
    let wanted = wanted.borrow_and_update();
    let uris = wanted.uris.keys().cloned().collect();
    (wanted.version, Interest { tools: true, prompts: true, resources: true, uris, ..Interest::default() })
}

/// The next news; never, where nothing is watched.
async fn next_news(subscription: &mut Option<Subscription>) -> Result<News, CallError> {
    match subscription {
        Some(subscription) => subscription.next().await,
        None => pending().await,
    }
}
