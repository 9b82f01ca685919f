//! The gateway: a host, and how its clients see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::runtime::Handle;
use tokio::time::timeout;
use wharf::Host;
use wharf::tools::Principal;
use wharf_serve::{ClientConnection, HeaderMap, Service};

use crate::catalog_view::{CatalogView, NameScheme};
use crate::connection::GatewayConnection;

/// Maximum time that the first lists wait for servers that are starting. Later tools are announced as a change.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of a gateway.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GatewayOptions {
    /// Name to report to clients.
    pub name: String,
    /// Version to report to clients.
    pub version: String,
    /// Names of tools and prompts.
    pub names: NameScheme,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self { name: "wharf".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), names: NameScheme::Server }
    }
}

/// Serves a host to any number of clients. Cloning it shares the host.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<GatewayShared>,
}

/// What all connections share.
pub(crate) struct GatewayShared {
    pub host: Host,
    pub options: GatewayOptions,
    pub runtime: Handle,
    view: ArcSwapOption<CatalogView>,
    connections: AtomicU64,
}

impl Gateway {
    /// Creates a gateway. Must be called within the runtime that serves the clients.
    pub fn new(host: Host, options: GatewayOptions) -> Self {
        let (view, connections) = (ArcSwapOption::empty(), AtomicU64::new(0));
        Self { shared: Arc::new(GatewayShared { host, options, runtime: Handle::current(), view, connections }) }
    }

    /// Returns the host.
    pub fn host(&self) -> &Host {
        &self.shared.host
    }
}

impl GatewayShared {
    /// Returns the catalog as clients see it now.
    pub fn view(&self) -> Arc<CatalogView> {
        let catalog = self.host.catalog();
        if let Some(view) = self.view.load_full().filter(|view| view.version == catalog.version()) {
            return view;
        }
        let view = Arc::new(CatalogView::new(&catalog, self.options.names));
        self.view.store(Some(Arc::clone(&view)));
        view
    }

    /// Returns the catalog once the servers have started, or have had time to.
    pub async fn started_view(&self) -> Arc<CatalogView> {
        let _ = timeout(STARTUP_TIMEOUT, self.host.wait_for_startup()).await;
        self.view()
    }
}

impl Service for Gateway {
    fn has_sessions(&self) -> bool {
        true
    }

    fn open_session(&self) -> Option<Arc<dyn ClientConnection>> {
        let number = self.shared.connections.fetch_add(1, Ordering::Relaxed);
        let principal = Principal::client(format!("session-{number}"));
        Some(Arc::new(GatewayConnection::session(Arc::clone(&self.shared), principal)))
    }

    fn open_request(&self, _: &HeaderMap) -> Option<Arc<dyn ClientConnection>> {
        Some(Arc::new(GatewayConnection::stateless(Arc::clone(&self.shared), Principal::client("stateless"))))
    }
}
