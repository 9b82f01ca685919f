//! Questions and messages of an instance to its client.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use wharf::spec::ServerName;
use wharf::tools::BoxFuture;
use wharf::wire::{
    Elicitation, ElicitationResponse, JsonLimits, LogLevel, LogMessage, Root, SamplingRequest, UrlRequest,
};
use wharf::{CallTag, ClientServices, Elicitor, LogSink, RawJson, RequestSource, RootsSource, Sampler, SamplingError};
use wharf_serve::Outbox;

use super::Instances;
use crate::client_class::{ClientClass, QuestionMethod, SamplingSupport};
use crate::questions::{ClientAnswer, ClientQuestion, read_elicitation, unanswered};
use crate::responses::notification;
use crate::route::CallRoute;
use crate::tasks::{related_task, without_related_task};

/// Time that a page's completion is waited for before the call is repeated.
const PAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of pages that are remembered until they are done.
const MAX_SHOWN_PAGES: usize = 32;

const PAGE_DONE: &str = "notifications/elicitation/complete";

/// The calls that use an instance: all of one client, unless nothing can be asked.
pub(crate) struct InstanceClients {
    instances: Weak<Instances>,
    server: ServerName,
    id: u64,
    class: Mutex<ClientClass>,
    calls: Mutex<Vec<Arc<CallRoute>>>,
    /// The last pages that clients were sent to, oldest first.
    pages: Mutex<VecDeque<ShownPage>>,
    /// Number of questions outside of any call.
    unanswerable: AtomicU64,
}

/// A page that the client of a call was sent to.
struct ShownPage {
    id: String,
    tag: CallTag,
    /// For the time after the call.
    session: Option<Arc<dyn Outbox>>,
}

impl InstanceClients {
    pub fn new(instances: Weak<Instances>, server: ServerName, id: u64) -> Self {
        let (class, calls, pages) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { instances, server, id, class, calls, pages, unanswerable: AtomicU64::new(0) }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Arc<CallRoute>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, route: &Arc<CallRoute>) {
        *self.class.lock().unwrap_or_else(PoisonError::into_inner) = route.client.class;
        self.calls().push(Arc::clone(route));
    }

    pub fn has(&self, tag: CallTag) -> bool {
        self.calls().iter().any(|route| route.tag == tag)
    }

    pub fn remove(&self, tag: CallTag) {
        self.calls().retain(|route| route.tag != tag);
    }

    /// Returns the call that a message of the server belongs to: the one whose task or stream it names, or the newest
    /// one, if all calls are of one client.
    fn route(&self, call: Option<CallTag>, task: Option<&str>) -> Option<Arc<CallRoute>> {
        let calls = self.calls();
        let by_task = task.and_then(|task| calls.iter().find(|route| route.has_server_task(task)));
        let by_stream = || call.and_then(|tag| calls.iter().find(|route| route.tag == tag));
        let newest = calls.last()?;
        let is_only = || calls.iter().all(|route| route.client.connection == newest.client.connection);
        by_task.or_else(by_stream).or_else(|| is_only().then_some(newest)).cloned()
    }

    fn pages(&self) -> MutexGuard<'_, VecDeque<ShownPage>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the page that the client of a call is sent to.
    fn note_page(&self, source: RequestSource<'_>, id: Option<&str>) {
        let (Some(id), Some(route)) = (id, self.route(source.call, None)) else { return };
        let mut pages = self.pages();
        if pages.len() >= MAX_SHOWN_PAGES {
            pages.pop_front();
        }
        pages.push_back(ShownPage { id: id.to_owned(), tag: route.tag, session: route.session_outbox() });
    }

    /// Tells the client that was sent to a page that it is done. Other clients are not told.
    fn page_done(&self, id: &str) {
        let Some(ShownPage { tag, session, .. }) = self.take_page(id) else { return };
        let params = json!({ "elicitationId": id });
        let route = self.calls().iter().find(|route| route.tag == tag).cloned();
        match (route, session) {
            (Some(route), _) => route.send_notification(PAGE_DONE, &params),
            (None, Some(session)) => session.send(notification(PAGE_DONE, &params)),
            (None, None) => {}
        }
    }

    fn take_page(&self, id: &str) -> Option<ShownPage> {
        let mut pages = self.pages();
        let index = pages.iter().position(|page| page.id == id)?;
        pages.remove(index)
    }

    /// Asks the client whose call is in progress. Outside of a call no client can be asked.
    fn ask(
        &self,
        source: RequestSource<'_>,
        method: QuestionMethod,
        params: Option<RawJson>,
    ) -> BoxFuture<'static, ClientAnswer> {
        let related = params.as_ref().and_then(related_task);
        // A question within a task names it, and the client knows the task by another id or not at all.
        let params = if related.is_some() { params.map(|params| without_related_task(&params)) } else { params };
        let Some(route) = self.route(source.call, related.as_deref()) else {
            let count = self.unanswerable.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!("{}: `{}` outside of a call has no client ({count})", self.server, method.as_str());
            return Box::pin(std::future::ready(unanswered("no call is in progress")));
        };
        let question = ClientQuestion::from_server(method, params).named(source.request);
        Box::pin(async move { route.ask(question).await })
    }

    /// Returns the services that match the client's class.
    pub fn services(self: &Arc<Self>) -> ClientServices {
        let class = *self.class.lock().unwrap_or_else(PoisonError::into_inner);
        let client = || InstanceClient { clients: Arc::clone(self), class };
        let mut services = ClientServices::default().logs(LogLevel::Debug, client()).tasks();
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
            Elicitation::Url(page) => {
                self.clients.note_page(source, page.elicitation_id.as_deref());
                page.raw
            }
        };
        let asked = self.clients.ask(source, QuestionMethod::Elicit, Some(raw));
        Box::pin(async move { read_elicitation(asked.await) })
    }

    fn wait_for_page(&self, _: RequestSource<'_>, _: &UrlRequest) -> BoxFuture<'static, ()> {
        // A client does not report that its user is done: the repeated call finds out.
        Box::pin(tokio::time::sleep(PAGE_TIMEOUT))
    }

    fn page_done(&self, _: RequestSource<'_>, elicitation_id: &str) {
        self.clients.page_done(elicitation_id);
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
        if let Some(route) = self.clients.route(source.call, None) {
            route.log(&message);
        }
    }
}
