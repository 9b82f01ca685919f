//! Conversion of live and cached lists to published catalog sections.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wharf_client::{Connection, Listing};
use wharf_json::RawJson;
use wharf_spec::{Redactor, ToolId};
use wharf_wire::{ServerCapabilities, ToolDefinition};

use crate::catalog::{ListFreshness, ListName, Section, SectionInput, ServerLists, fingerprint};
use crate::catalog_publisher::PublishOutcome;
use crate::context::HostContext;
use crate::events::Event;
use crate::lister::{FetchedLists, ListingMode};
use crate::routing::LiveConnection;
use crate::server::{Server, ServerEndpoint};
use crate::state_directory;
use wharf_inspect::{inspect, is_quarantined};

/// Outcome of publishing a section, with counts.
struct PublishSummary {
    put: PublishOutcome,
    /// Numbers of tools that are offered, listed and withheld.
    tools: usize,
    found: usize,
    withheld: usize,
}

/// What a server's section is built from, beside its settings and releases: the lists that its connection has read.
#[derive(Default)]
pub(crate) struct SectionSource {
    /// The lists, and the epoch of the connection that has read them.
    lists: Mutex<(u64, Option<Arc<FetchedLists>>)>,
    /// Changes with the lists, settings and releases.
    version: AtomicU64,
}

impl SectionSource {
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Marks every section built so far as outdated.
    pub fn mark_changed(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Replaces the lists, unless a newer connection has read some.
    fn set_lists(&self, epoch: u64, lists: Arc<FetchedLists>) {
        let mut current = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 <= epoch {
            *current = (epoch, Some(lists));
            self.mark_changed();
        }
    }

    /// Returns the lists read by the connection of an epoch.
    fn lists(&self, epoch: u64) -> Option<Arc<FetchedLists>> {
        let current = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        current.1.clone().filter(|_| current.0 == epoch)
    }

    fn forget_lists(&self) {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).1 = None;
    }
}

impl HostContext {
    /// Publishes the lists of a connected server. Lists that have not been requested yet keep their previous content.
    pub async fn publish_lists(
        self: &Arc<Self>,
        server: &Arc<Server>,
        epoch: u64,
        lists: &Arc<FetchedLists>,
        connection: &Connection,
    ) {
        server.section_source.set_lists(epoch, Arc::clone(lists));
        self.publish_fetched(server, epoch, connection).await;
    }

    /// Publishes the section of the lists that a connection has read, if it has read any.
    async fn publish_fetched(self: &Arc<Self>, server: &Arc<Server>, epoch: u64, connection: &Connection) {
        let listed = || Some(self.fetched_lists(server, &*server.section_source.lists(epoch)?, connection));
        let Some(PublishSummary { put: PublishOutcome::Changed, tools, found, withheld }) =
            self.publish_section(server, Some(epoch), listed).await
        else {
            return;
        };
        tracing::info!(server = %server.name, tools, found, withheld, "listed");
        self.event_bus.publish(Event::Catalog { server: server.name.clone(), tools });
    }

    /// Returns the lists of a connection. Lists that it has not requested yet are those of an earlier connection.
    fn fetched_lists(&self, server: &Server, lists: &FetchedLists, connection: &Connection) -> ServerLists {
        let mut listed = to_server_lists(lists, connection);
        let offered = &connection.facts().capabilities;
        if let Some(before) = self.publisher.own_section(server) {
            if offered.resources {
                carry_over(&lists.resources, &mut listed.resources, &before.resources);
                carry_over(&lists.templates, &mut listed.templates, &before.templates);
            }
            if offered.prompts {
                carry_over(&lists.prompts, &mut listed.prompts, &before.prompts);
            }
            // Lists from an earlier connection are known, although possibly outdated.
            listed.unasked.retain(|list| before.unasked.contains(list));
        }
        listed
    }

    /// Unpublishes a server's section.
    pub fn unpublish(&self, server: &Server) {
        server.section_source.forget_lists();
        if self.publisher.unpublish(server) {
            self.event_bus.publish(Event::Catalog { server: server.name.clone(), tools: 0 });
        }
    }

    /// Publishes the cached lists of a server, if they exist and the server may be used.
    ///
    /// A host that lists the tools once, of a server that is not lazy, skips this because it lists the server right
    /// away. A host that lists nothing has no catalog.
    pub async fn publish_cached(self: &Arc<Self>, server: &Arc<Server>) {
        match self.options.attention {
            ListingMode::Full => {}
            ListingMode::ToolsOnce if server.settings.load().effective.lazy => {}
            ListingMode::ToolsOnce | ListingMode::Nothing => return,
        }
        let Some(listed) = self.cached_lists(server).await else { return };
        if let Some(PublishSummary { put: PublishOutcome::Changed, tools, .. }) =
            self.publish_section(server, None, || Some(listed.clone())).await
        {
            self.event_bus.publish(Event::Catalog { server: server.name.clone(), tools });
        }
    }

    /// Rebuilds a server's section after a change of its settings or releases. Afterwards no earlier section can be
    /// published.
    pub async fn republish(self: &Arc<Self>, server: &Arc<Server>) {
        server.section_source.mark_changed();
        match server.live_connection() {
            Some(LiveConnection { epoch, connection }) => self.publish_fetched(server, epoch, &connection).await,
            None => self.publish_cached(server).await,
        }
    }

    /// Builds a section and publishes it for the given epoch, or for the current one if `None`. Large sections are
    /// built one at a time on the low-priority thread. A section is built again if its input has changed meanwhile.
    async fn publish_section(
        self: &Arc<Self>,
        server: &Arc<Server>,
        epoch: Option<u64>,
        listed: impl Fn() -> Option<ServerLists>,
    ) -> Option<PublishSummary> {
        loop {
            let version = server.section_source.version();
            let listed = listed()?;
            let bytes = listed.tools.iter().map(|tool| tool.raw.as_bytes().len()).sum();
            let (context, server) = (Arc::clone(self), Arc::clone(server));
            let work = move || {
                let section = context.build_section(&server, listed);
                let (tools, found) = (section.visible_tools().count(), section.tools.len() + section.filtered);
                let withheld = section.withheld.len();
                let epoch = epoch.unwrap_or_else(|| server.snapshot.borrow().epoch);
                let put = context.publisher.publish(&server, epoch, version, section);
                PublishSummary { put, tools, found, withheld }
            };
            let published = self.run_sized(bytes, work).await?;
            if published.put != PublishOutcome::Outdated {
                return Some(published);
            }
        }
    }

    fn build_section(&self, server: &Server, listed: ServerLists) -> Section {
        let settings = server.settings.load();
        let inspector = |tool: &ToolDefinition| self.quarantine_reason(server, tool);
        Section::build(SectionInput {
            server: &server.name,
            style: self.options.names,
            filter: &settings.filter,
            trust: settings.effective.trust,
            inspector: Some(&inspector),
            listed,
        })
    }

    /// Builds the inspector's tables while the server starts, so that a single call does not wait for them.
    pub fn prepare_inspection(&self) {
        if self.options.attention == ListingMode::ToolsOnce {
            // Without a thread, the first list builds them.
            let _ = wharf_threads::start_thread("wharf-inspect", wharf_inspect::prepare);
        }
    }

    /// Returns the reason for quarantining a tool, unless a person has released this exact definition.
    fn quarantine_reason(&self, server: &Server, tool: &ToolDefinition) -> Option<String> {
        let findings = inspect(tool);
        let id = || ToolId::new(&server.name, tool.name.as_str());
        if !is_quarantined(&findings) || self.is_released(server.origin(), id(), fingerprint(tool)) {
            return None;
        }
        let told = findings.iter().take(3).map(|finding| format!("{}: {}", finding.rule.name(), finding.excerpt));
        Some(told.collect::<Vec<_>>().join("; "))
    }

    /// Caches a server's lists on disk, for the time when it is not running.
    pub fn cache_lists(&self, server: &Server, lists: &FetchedLists, connection: &Connection) {
        if let (Some(disk), ServerEndpoint::Spec(spec)) = (&self.disk, &server.endpoint)
            && lists.failed.is_empty()
        {
            let server = state_directory::CatalogCacheKey { name: &server.name, origin: &server.origin(), spec };
            let listed = || without_secrets(to_server_lists(lists, connection), connection.redactor());
            match self.options.attention {
                ListingMode::Full => disk.cache_lists(&server, &listed()),
                ListingMode::ToolsOnce => disk.cache_tools(&server, listed()),
                ListingMode::Nothing => {}
            }
        }
    }

    /// Caches complete lists on disk that were read elsewhere.
    pub fn cache_server_lists(&self, server: &Server, lists: &ServerLists) {
        if let (Some(disk), ServerEndpoint::Spec(spec)) = (&self.disk, &server.endpoint)
            && lists.failures.is_empty()
        {
            let server = state_directory::CatalogCacheKey { name: &server.name, origin: &server.origin(), spec };
            disk.cache_lists(&server, lists);
        }
    }

    async fn cached_lists(&self, server: &Server) -> Option<ServerLists> {
        match (&self.disk, &server.endpoint) {
            (Some(disk), ServerEndpoint::Spec(spec)) => {
                disk.cached_lists(&state_directory::CatalogCacheKey {
                    name: &server.name,
                    origin: &server.origin(),
                    spec,
                })
                .await
            }
            _ => None,
        }
    }
}

fn to_server_lists(lists: &FetchedLists, connection: &Connection) -> ServerLists {
    let mut listed = ServerLists { freshness: ListFreshness::Live, ..ServerLists::default() };
    listed.instructions = connection.facts().instructions.clone();
    listed.tools = take_list(&lists.tools, ListName::Tools, &mut listed.withheld);
    listed.resources = take_list(&lists.resources, ListName::Resources, &mut listed.withheld);
    listed.templates = take_list(&lists.templates, ListName::Templates, &mut listed.withheld);
    listed.prompts = take_list(&lists.prompts, ListName::Prompts, &mut listed.withheld);
    listed.failures = lists.failed.clone();
    listed.unasked = lists_not_requested(lists, &connection.facts().capabilities);
    listed
}

/// Removes the items that contain one of the server's secrets. They are listed again when the server runs.
fn without_secrets(mut listed: ServerLists, redactor: &Redactor) -> ServerLists {
    let is_clean = |raw: &RawJson| matches!(redactor.redact(raw.as_str()), Cow::Borrowed(_));
    listed.tools.retain(|item| is_clean(&item.raw));
    listed.resources.retain(|item| is_clean(&item.raw));
    listed.templates.retain(|item| is_clean(&item.raw));
    listed.prompts.retain(|item| is_clean(&item.raw));
    listed.instructions = listed.instructions.filter(|text| matches!(redactor.redact(text), Cow::Borrowed(_)));
    listed
}

/// Returns the lists that the server supports and that have not been requested yet.
fn lists_not_requested(lists: &FetchedLists, offered: &ServerCapabilities) -> Vec<ListName> {
    let all = [
        (ListName::Resources, offered.resources && lists.resources.is_none()),
        (ListName::Templates, offered.resources && lists.templates.is_none()),
        (ListName::Prompts, offered.prompts && lists.prompts.is_none()),
    ];
    let failed = |list: &ListName| lists.failed.iter().any(|(failed, _)| failed == list);
    all.into_iter().filter_map(|(list, is_missing)| is_missing.then_some(list)).filter(|list| !failed(list)).collect()
}

/// Copies the list of an earlier connection if it has not been requested on this one.
fn carry_over<T: Clone>(asked: &Option<Arc<Listing<T>>>, listed: &mut Vec<T>, before: &[T]) {
    if asked.is_none() {
        *listed = before.to_vec();
    }
}

fn take_list<T: Clone>(
    listing: &Option<Arc<Listing<T>>>,
    name: ListName,
    withheld: &mut Vec<(ListName, wharf_client::WithheldEntry)>,
) -> Vec<T> {
    let Some(listing) = listing else { return Vec::new() };
    withheld.extend(listing.withheld.iter().map(|item| (name, item.clone())));
    listing.items.clone()
}
