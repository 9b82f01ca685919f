//! How some clients of a gateway see its host: names, profile and principal.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::time::timeout;
use wharf::spec::{ServerName, ToolId};
use wharf::{Host, HostError};

use crate::catalog_view::{CatalogView, NameScheme};
use crate::errors::unavailability;
use crate::principal_load::{CountedRequest, PrincipalLoad};
use crate::profile::Profile;
use crate::running_requests::StartRefusal;
use crate::tasks::TASKS_EXTENSION;

/// Maximum time that the first lists wait for servers that are starting. Later tools are announced as a change.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of a view on a gateway.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ViewOptions {
    /// Names of tools and prompts.
    pub names: NameScheme,
    /// What clients may use of the host.
    pub profile: Profile,
    /// Name of the clients' principal, if they have authenticated as one. Sessions differ in a number besides.
    pub principal: Option<Arc<str>>,
    /// Tools that clients see.
    pub surface: ToolSurface,
    /// Name of the rules of the host that apply to the clients besides its others.
    pub rule_set: Option<Arc<str>>,
    /// Calls that need permission, of clients that cannot be asked.
    pub unasked: UnaskedClients,
}

/// Tools that the clients of a view see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolSurface {
    /// All of them.
    #[default]
    Tools,
    /// Two tools, `find_tools` and `call_tool`, through which they find and call the others.
    Search,
}

/// Treatment of calls that need permission if their client cannot be asked.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct UnaskedClients {
    /// Time that such a call waits for an answer by [`PendingQuestions::answer`](crate::PendingQuestions::answer). Zero
    /// refuses it at once.
    pub wait: Duration,
    /// Next step that the refusal names, besides the rule that would allow the call.
    pub hint: Option<Arc<str>>,
}

/// A view, with the lists of the newest catalog.
pub(crate) struct ClientView {
    host: Host,
    pub options: ViewOptions,
    /// The requests of the principal, if the clients have authenticated as one.
    load: Option<Arc<PrincipalLoad>>,
    catalog: ArcSwapOption<CatalogView>,
}

impl ClientView {
    pub fn new(host: Host, options: ViewOptions, load: Option<Arc<PrincipalLoad>>) -> Self {
        Self { host, options, load, catalog: ArcSwapOption::empty() }
    }

    /// Counts a request of the principal.
    ///
    /// # Errors
    ///
    /// Fails if too many requests of the principal are in progress.
    pub fn begin_request(&self) -> Result<Option<CountedRequest>, StartRefusal> {
        let begun = self.load.as_ref().map(|load| load.begin().ok_or(StartRefusal::TooManyOfPrincipal));
        begun.transpose()
    }

    /// Returns the catalog as clients see it now.
    pub fn current(&self) -> Arc<CatalogView> {
        let catalog = self.host.catalog();
        if let Some(view) = self.catalog.load_full().filter(|view| view.version == catalog.version()) {
            return view;
        }
        let servers = catalog.sections().iter().map(|section| section.server.clone());
        let task_servers: Vec<ServerName> = servers.filter(|server| self.makes_tasks(server)).collect();
        let view = Arc::new(CatalogView::new(&catalog, &self.options, &task_servers));
        self.catalog.store(Some(Arc::clone(&view)));
        view
    }

    /// Reports whether a stateless server makes tasks of calls.
    fn makes_tasks(&self, server: &ServerName) -> bool {
        let connection = self.host.connection(server.as_str());
        connection.is_ok_and(|connection| connection.facts().capabilities.has_extension(TASKS_EXTENSION))
    }

    /// Returns the catalog once the servers have started, or have had time to.
    pub async fn started(&self) -> Arc<CatalogView> {
        let _ = timeout(STARTUP_TIMEOUT, self.host.wait_for_startup()).await;
        self.current()
    }

    /// Returns why a tool is not offered now, if that is because its server is down or requires a login.
    pub fn unavailability(&self, tool: &str) -> Option<HostError> {
        if self.options.names != NameScheme::Server {
            return None;
        }
        let servers = self.host.status().into_iter().map(|status| status.name);
        let of_tool = servers.filter(|server| {
            let own = tool.strip_prefix(server.as_str()).and_then(|rest| rest.strip_prefix("__"));
            own.is_some_and(|own| self.options.profile.offers_tool(&ToolId::new(server, own)))
        });
        of_tool.into_iter().find_map(|server| unavailability(&self.host, server.as_str()))
    }

    /// Returns the server of a URI that matches one of the offered templates.
    pub fn template_server(&self, uri: &str) -> Option<ServerName> {
        self.host.catalog().template_server(uri).filter(|server| self.options.profile.offers_server(server))
    }
}
