//! What an instance can ask its client, or tell it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde::Deserialize;
use wharf::spec::ServerName;
use wharf::tools::BoxFuture;
use wharf::wire::{
    Elicitation, ElicitationResponse, JsonLimits, LogLevel, LogMessage, Root, SamplingRequest, UrlRequest,
};
use wharf::{CallTag, ClientServices, Elicitor, LogSink, RawJson, RequestSource, RootsSource, Sampler, SamplingError};

use super::Instances;
use crate::client_class::{ClientClass, QuestionMethod, SamplingSupport};
use crate::questions::{ClientAnswer, ClientQuestion, read_elicitation, unanswered};
use crate::route::CallRoute;

/// Time that a page's completion is waited for before the call is repeated.
const PAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// The calls that use an instance: all of one client, unless nothing can be asked.
pub(crate) struct InstanceClients {
    instances: Weak<Instances>,
    server: ServerName,
    id: u64,
    class: Mutex<ClientClass>,
    calls: Mutex<Vec<Arc<CallRoute>>>,
    /// Number of questions outside of any call.
    unanswerable: AtomicU64,
}

impl InstanceClients {
    pub fn new(instances: Weak<Instances>, server: ServerName, id: u64) -> Self {
        let (class, calls) = (Mutex::default(), Mutex::default());
        Self { instances, server, id, class, calls, unanswerable: AtomicU64::new(0) }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Arc<CallRoute>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, route: &Arc<CallRoute>) {
        *self.class.lock().unwrap_or_else(PoisonError::into_inner) = route.client.class;
        self.calls().push(Arc::clone(route));
    }

    pub fn remove(&self, tag: CallTag) {
        self.calls().retain(|route| route.tag != tag);
    }

    /// Returns the call that a message of the server belongs to: the one it names, or the newest one, if all calls are of
    /// one client.
    fn route(&self, call: Option<CallTag>) -> Option<Arc<CallRoute>> {
        let calls = self.calls();
        let named = call.and_then(|tag| calls.iter().find(|route| route.tag == tag));
        let newest = calls.last()?;
        let is_only = || calls.iter().all(|route| route.client.connection == newest.client.connection);
        named.or_else(|| is_only().then_some(newest)).cloned()
    }

    /// Asks the client whose call is in progress. Outside of a call no client can be asked.
    fn ask(
        &self,
        source: RequestSource<'_>,
        method: QuestionMethod,
        params: Option<RawJson>,
    ) -> BoxFuture<'static, ClientAnswer> {
        let Some(route) = self.route(source.call) else {
            let count = self.unanswerable.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!("{}: `{}` outside of a call has no client ({count})", self.server, method.as_str());
            return Box::pin(std::future::ready(unanswered("no call is in progress")));
        };
        Box::pin(async move { route.ask(ClientQuestion::from_server(method, params)).await })
    }

    /// Returns the services that match the client's class.
    pub fn services(self: &Arc<Self>) -> ClientServices {
        let class = *self.class.lock().unwrap_or_else(PoisonError::into_inner);
        let client = || InstanceClient { clients: Arc::clone(self), class };
        let mut services = ClientServices::default().logs(LogLevel::Debug, client());
        services.log_level = None;
        if class.forms || class.pages {
            services = services.elicitation(client());
        }
        if class.sampling != SamplingSupport::None {
            services = services.sampling(client());
        }
        if class.roots {
            services = services.roots(client());
        }
        services
    }
}

/// The client of an instance, as its server sees it.
struct InstanceClient {
    clients: Arc<InstanceClients>,
    class: ClientClass,
}

impl Elicitor for InstanceClient {
    fn supports_pages(&self) -> bool {
        self.class.pages
    }

    fn elicit(&self, source: RequestSource<'_>, question: Elicitation) -> BoxFuture<'static, ElicitationResponse> {
        let raw = match question {
            Elicitation::Form(form) => form.raw,
            Elicitation::Url(page) => page.raw,
        };
        let asked = self.clients.ask(source, QuestionMethod::Elicit, Some(raw));
        Box::pin(async move { read_elicitation(asked.await) })
    }

    fn wait_for_page(&self, _: RequestSource<'_>, _: &UrlRequest) -> BoxFuture<'static, ()> {
        // A client does not report that its user is done: the repeated call finds out.
        Box::pin(tokio::time::sleep(PAGE_TIMEOUT))
    }
}

impl Sampler for InstanceClient {
    fn supports_tools(&self) -> bool {
        self.class.sampling == SamplingSupport::Tools
    }

    fn sample(
        &self,
        source: RequestSource<'_>,
        request: SamplingRequest,
    ) -> BoxFuture<'static, Result<RawJson, SamplingError>> {
        let asked = self.clients.ask(source, QuestionMethod::Sample, Some(request.raw));
        Box::pin(async move {
            match asked.await {
                Ok(message) => Ok(message),
                Err(error) if error.code == -1 => Err(SamplingError::Declined),
                Err(error) => Err(SamplingError::Failed(error.message)),
            }
        })
    }
}

impl RootsSource for InstanceClient {
    fn roots(&self, source: RequestSource<'_>) -> BoxFuture<'static, Vec<Root>> {
        let roots = self.available_roots(source);
        Box::pin(async move { roots.await.unwrap_or_default() })
    }

    fn available_roots(&self, source: RequestSource<'_>) -> BoxFuture<'static, Option<Vec<Root>>> {
        #[derive(Deserialize)]
        struct WireRoots {
            roots: Vec<WireRoot>,
        }
        #[derive(Deserialize)]
        struct WireRoot {
            uri: String,
            #[serde(default)]
            name: Option<String>,
        }
        let (asked, clients) = (self.clients.ask(source, QuestionMethod::Roots, None), Arc::clone(&self.clients));
        Box::pin(async move {
            let answer = asked.await.ok()?;
            let roots: WireRoots = answer.decode(&JsonLimits::default()).ok()?;
            // Before the server learns them: from now on it is an instance for these roots.
            clients.instances.upgrade()?.bind_roots(&clients.server, clients.id, &answer);
            Some(roots.roots.into_iter().map(|WireRoot { uri, name }| Root { uri, name }).collect())
        })
    }
}

impl LogSink for InstanceClient {
    fn log(&self, source: RequestSource<'_>, message: LogMessage) {
        if let Some(route) = self.clients.route(source.call) {
            route.log(&message);
        }
    }
}
