//! The one place that changes what is offered: the catalog, and the registry beside it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch;
use wharf_spec::ServerName;
use wharf_tools::{Registry, Tool};

use crate::catalog::{Catalog, CatalogTool, Freshness, Section};
use crate::server::Server;
use crate::supervise::Way;

/// Makes a tool of the registry from one of the catalog.
pub(crate) type Adapt = Box<dyn Fn(&Arc<CatalogTool>) -> Arc<dyn Tool> + Send + Sync>;

/// What became of something that was to be put on the shelf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is there, and is what was there.
    Same,
    /// It is there.
    Changed,
    /// Its server may not offer it any more.
    Refused,
}

/// What all servers offer. Reading takes no lock; changing it takes one for a few lines.
pub(crate) struct Shelf {
    catalog: ArcSwap<Catalog>,
    /// Which server of a name has put its section here: one that took its place is not withdrawn with it.
    owners: Mutex<HashMap<ServerName, u64>>,
    version: watch::Sender<u64>,
    registry: Arc<Registry>,
    adapt: Adapt,
}

impl Shelf {
    pub fn new(registry: Arc<Registry>, adapt: Adapt) -> Self {
        let catalog = ArcSwap::from_pointee(Catalog::default());
        Self { catalog, owners: Mutex::default(), version: watch::Sender::default(), registry, adapt }
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The catalog for a moment's look, which is cheaper still.
    pub fn peek(&self) -> arc_swap::Guard<Arc<Catalog>> {
        self.catalog.load()
    }

    /// Changes with every change of the catalog.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns what this very server has put here; what another server of its name offered is none of its own.
    pub fn section_of(&self, server: &Server) -> Option<Arc<Section>> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own = owners.get(&server.name) == Some(&server.generation);
        is_own.then(|| self.catalog.load().section(server.name.as_str()).map(Arc::clone)).flatten()
    }

    /// Puts what a server offers in the place of what it offered, if it may still offer anything.
    ///
    /// A server that is taken off is taken off first and withdrawn afterwards, so that nothing it put here can stay. What
    /// it once listed never takes the place of what it lists.
    pub fn put(&self, server: &Server, epoch: u64, section: Section) -> Put {
        let section = Arc::new(section);
        let tools: Vec<Arc<dyn Tool>> = section.offered().map(|tool| (self.adapt)(tool)).collect();
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = owners.get(&server.name).is_some_and(|owner| *owner > server.generation);
        let may = !newer && {
            let standing = server.standing.borrow();
            let old = section.freshness != Freshness::Live && matches!(standing.way, Way::Open(_));
            standing.epoch == epoch && standing.offers_tools() && !old
        };
        if !may {
            return Put::Refused;
        }
        let before = self.catalog.load().section(server.name.as_str()).map(Arc::clone);
        let same = before.is_some_and(|before| before.is_same(&section));
        owners.insert(server.name.clone(), server.generation);
        self.catalog.store(Arc::new(self.catalog.load().with(section)));
        self.registry.replace_provider(server.name.as_str(), tools);
        self.version.send_modify(|version| *version += 1);
        if same { Put::Same } else { Put::Changed }
    }

    /// Takes away what a server offered; says whether there was anything.
    pub fn withdraw(&self, server: &Server) -> bool {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.get(&server.name) != Some(&server.generation) {
            return false;
        }
        owners.remove(&server.name);
        self.catalog.store(Arc::new(self.catalog.load().without(&server.name)));
        self.registry.replace_provider(server.name.as_str(), Vec::new());
        self.version.send_modify(|version| *version += 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use wharf_spec::ServerSettings;

    use crate::host::Host;
    use crate::server::{Reach, Told};

    use super::*;

    #[tokio::test]
    async fn a_server_has_no_part_in_what_another_of_its_name_offered() {
        let name = ServerName::new("one").unwrap();
        let make = || {
            let server = wharf_client::ClosureServer::new("one", "1");
            server.resource("a:b", "b", "text/plain", || async { Ok("there".to_owned()) })
        };
        let host = Host::builder().local(name.clone(), make).start().await.unwrap();
        host.settled().await;
        let (context, first) = (host.context(), host.context().server("one").unwrap());
        assert_eq!(context.shelf.section_of(&first).unwrap().resources.len(), 1);
        let reach = Reach::Local(Arc::new(|| Err("never".to_owned())));
        let second = host.begin(name, Told { reach, settings: ServerSettings::default(), by_hand: None }).await;
        assert!(context.shelf.section_of(&second).is_none());
        host.close().await;
    }
}
