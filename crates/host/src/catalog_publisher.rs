//! Publication of the catalog, and of the servers' tools in the registry. Only this module changes the catalog.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch;
use wharf_spec::ServerName;
use wharf_tools::{Registry, Tool};

use crate::catalog::{Catalog, CatalogTool, ListFreshness, Section};
use crate::server::Server;
use crate::supervise::Availability;

/// Adapts a catalog tool to a registry tool.
pub(crate) type ToolAdapter = Box<dyn Fn(&Arc<CatalogTool>) -> Arc<dyn Tool> + Send + Sync>;

/// Outcome of publishing a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublishOutcome {
    /// Published, and equal to the previous section.
    Same,
    /// Published, and different from the previous section.
    Changed,
    /// Not published: the server may not offer tools any more, or it has another connection.
    Refused,
    /// Not published: the settings, lists or releases of the server have changed while the section was built.
    Outdated,
}

/// The published catalog of all servers. Reading takes no lock; a change takes a short one.
pub(crate) struct CatalogPublisher {
    catalog: ArcSwap<Catalog>,
    /// Generation of the server that published each name's section. A replaced server cannot unpublish its
    /// replacement's section.
    owners: Mutex<HashMap<ServerName, u64>>,
    version: watch::Sender<u64>,
    registry: Arc<Registry>,
    adapt: ToolAdapter,
}

impl CatalogPublisher {
    pub fn new(registry: Arc<Registry>, adapt: ToolAdapter) -> Self {
        let catalog = ArcSwap::from_pointee(Catalog::default());
        Self { catalog, owners: Mutex::default(), version: watch::Sender::default(), registry, adapt }
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Returns a guard on the catalog, which is cheaper than [`Self::catalog`] for a short read.
    pub fn peek(&self) -> arc_swap::Guard<Arc<Catalog>> {
        self.catalog.load()
    }

    /// Returns a receiver of the catalog's version, which changes with every publication.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns the section published by this server, ignoring that of an earlier server of the same name.
    pub fn own_section(&self, server: &Server) -> Option<Arc<Section>> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own = owners.get(&server.name) == Some(&server.generation);
        is_own.then(|| self.catalog.load().section(server.name.as_str()).map(Arc::clone)).flatten()
    }

    /// Replaces a server's section, if the server may still offer tools and the section is built from its current
    /// input.
    ///
    /// A server that is removed changes its state first and is unpublished afterwards, so that none of its sections can
    /// remain. A cached section never replaces a live one.
    pub fn publish(&self, server: &Server, epoch: u64, version: u64, section: Section) -> PublishOutcome {
        let section = Arc::new(section);
        let tools: Vec<Arc<dyn Tool>> = section.visible_tools().map(|tool| (self.adapt)(tool)).collect();
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = owners.get(&server.name).is_some_and(|owner| *owner > server.generation);
        let may = !newer && {
            let snapshot = server.snapshot.borrow();
            let old =
                section.freshness != ListFreshness::Live && matches!(snapshot.availability, Availability::Open(_));
            snapshot.epoch == epoch && snapshot.offers_tools() && !old
        };
        if !may {
            return PublishOutcome::Refused;
        }
        if server.section_source.version() != version {
            return PublishOutcome::Outdated;
        }
        let before = self.catalog.load().section(server.name.as_str()).map(Arc::clone);
        let same = before.is_some_and(|before| before.has_same_content(&section));
        owners.insert(server.name.clone(), server.generation);
        let catalog = self.catalog.load().with(section);
        self.store(server, catalog, tools);
        if same { PublishOutcome::Same } else { PublishOutcome::Changed }
    }

    /// Removes a server's section. Returns whether there was one.
    pub fn unpublish(&self, server: &Server) -> bool {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.get(&server.name) != Some(&server.generation) {
            return false;
        }
        owners.remove(&server.name);
        let catalog = self.catalog.load().without(&server.name);
        self.store(server, catalog, Vec::new());
        true
    }

    /// Stores a catalog with a changed section, and the tools of that section.
    fn store(&self, server: &Server, catalog: Catalog, tools: Vec<Arc<dyn Tool>>) {
        let has_lists = |catalog: &Catalog| (catalog.has_resources(), catalog.has_prompts());
        let has_now = has_lists(&catalog);
        let before = self.catalog.swap(Arc::new(catalog));
        self.registry.replace_provider(server.name.as_str(), tools);
        if has_lists(&before) != has_now {
            // The management tools for resources and prompts depend on it.
            self.registry.republish();
        }
        self.version.send_modify(|version| *version += 1);
    }
}

#[cfg(test)]
mod tests {
    use wharf_spec::ServerSettings;

    use crate::host::Host;
    use crate::server::{DesiredServer, ServerEndpoint};

    use super::*;

    #[tokio::test]
    async fn replacement_server_does_not_inherit_a_section() {
        let name = ServerName::new("one").unwrap();
        let make = || {
            let server = wharf_client::ClosureServer::new("one", "1");
            server.resource("a:b", "b", "text/plain", || async { Ok("there".to_owned()) })
        };
        let host = Host::builder().local(name.clone(), make).start().await.unwrap();
        host.wait_until_settled().await;
        let (context, first) = (host.context(), host.context().server("one").unwrap());
        assert_eq!(context.publisher.own_section(&first).unwrap().resources.len(), 1);
        let endpoint = ServerEndpoint::Local(Arc::new(|| Err("never".to_owned())));
        let second = host
            .start_server(name, DesiredServer { endpoint, settings: ServerSettings::default(), manual_override: None })
            .await;
        assert!(context.publisher.own_section(&second).is_none());
        host.close().await;
    }
}
