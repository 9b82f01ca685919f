//! Many servers as one: the handle an embedder holds.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use wharf_client::{Answer, Connection};
use wharf_json::Raw;
use wharf_spec::{ServerEntry, ServerName, ToolId};
use wharf_tools::{Caller, Refusal, RefusalReason, Registry};

use crate::access::{self, Access};
use crate::account::{Membership, ServerAccount};
use crate::builder::HostBuilder;
use crate::call::{CallOptions, Reply};
use crate::catalog::Catalog;
use crate::context::Context;
use crate::error::HostError;
use crate::events::Events;
use crate::permit::Permit;
use crate::roster::{self, Changes};
use crate::server::{Kept, Server, Told};
use crate::stats::{Stats, ToolStats};
use crate::status::{ServerStatus, status};
use crate::supervise::{Closing, Command, Keeper, Standing, Supervisor, moment, supervise};
use crate::usage::Usage;
use crate::watching::Watched;

/// What closing takes beyond what the servers themselves are given.
const CLOSE_MARGIN: Duration = Duration::from_secs(1);

/// How long accounts have to finish what must not be broken off; they see to it themselves that it takes less.
const FINISH: Duration = Duration::from_secs(15);

/// A set of servers kept connected, and what they can do. Cheap to clone.
///
/// When the last clone is dropped every server is ended, without waiting; [`Host::close`] ends them politely.
#[derive(Clone)]
pub struct Host {
    owner: Arc<Owner>,
}

/// Owns every supervisor's task: dropped, it stops them, and each of them ends its server.
struct Owner {
    context: Arc<Context>,
    tasks: Mutex<JoinSet<()>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.context.closing.send_replace(true);
        // A call under way keeps the context, and that must not keep the servers.
        self.context.servers.store(Arc::default());
        // A poll under way keeps the context, and with it the set it is in.
        self.context.background.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

impl Host {
    /// A host to be made.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    pub(crate) fn over(context: Arc<Context>) -> Self {
        Self { owner: Arc::new(Owner { context, tasks: Mutex::default() }) }
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.owner.context
    }

    /// Calls a tool, if the gate lets it pass. Its server is started or waited for where need be.
    ///
    /// Dropping the future withdraws the call.
    pub async fn call(&self, tool: &ToolId, arguments: &Raw, options: CallOptions) -> Result<Reply, HostError> {
        self.context().call(tool, arguments, options).await
    }

    /// Sends any method to a server, raw in and raw out. A `tools/call` passes the gate like any other call, and so do
    /// requests for resources and prompts.
    ///
    /// Dropping the future withdraws it.
    pub async fn request(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<&Raw>,
        options: CallOptions,
    ) -> Result<Answer, HostError> {
        self.context().request(server, method, params, options).await
    }

    /// Permits a call, if the gate lets it pass, for somebody who makes it on the server's own connection. Waits for the
    /// server where need be.
    pub async fn permit(&self, tool: &ToolId, arguments: &Raw, options: CallOptions) -> Result<Permit, HostError> {
        Permit::ask(self.context(), tool, arguments, &options).await
    }

    /// Puts the reading of a resource before the gate, for somebody who reads it on the server's own connection. A model
    /// needs permission for a URI that the server lists neither itself nor by a template.
    pub async fn permit_read(&self, server: &ServerName, uri: &str, caller: &Caller) -> Result<(), HostError> {
        let context = self.context();
        let server = context.server(server.as_str())?;
        let arguments = access::arguments(&server, uri);
        let access = Access { tool: access::READ, server: &server, arguments: &arguments, caller };
        context.permit_uri(access, uri, None).await.map(|_| ())
    }

    /// Returns the refusal if a rule denies everything a server offers: its tools, resources and prompts.
    pub fn denial_of(&self, server: &str) -> Option<Refusal> {
        let context = self.context();
        context.server(server).ok().and_then(|server| context.denial_of(&server))
    }

    /// The tool a name stands for, in whichever way somebody spelt it.
    pub fn resolve(&self, name: &str) -> Result<ToolId, HostError> {
        let catalog = self.context().shelf.peek();
        match catalog.resolve(name) {
            Ok(tool) => Ok(tool.id.clone()),
            Err(unresolved) => Err(HostError::Unresolved(unresolved.to_string())),
        }
    }

    /// What all servers offer now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.context().shelf.catalog()
    }

    /// Changes with every change of the catalog.
    pub fn catalog_changes(&self) -> watch::Receiver<u64> {
        self.context().shelf.changes()
    }

    /// The tools an agent may call: those of the servers, and whatever else is registered. Calls pass the same gate.
    pub fn registry(&self) -> &Arc<Registry> {
        self.context().shelf.registry()
    }

    /// What is known of every server, in the order of their names.
    pub fn status(&self) -> Vec<ServerStatus> {
        let servers = self.context().servers.load();
        let mut all: Vec<ServerStatus> = servers.values().map(|server| status(self.context(), server)).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// What is known of one server.
    pub fn status_of(&self, server: &str) -> Result<ServerStatus, HostError> {
        Ok(status(self.context(), &*self.context().server(server)?))
    }

    /// How often its tools were called, and how long that took.
    pub fn stats_of(&self, server: &str) -> Result<Vec<ToolStats>, HostError> {
        Ok(self.context().server(server)?.stats.read())
    }

    /// What is wrong with the rules: those that can never match, those that could mean two servers.
    pub fn rule_problems(&self) -> Vec<wharf_policy::Problem> {
        self.context().rules.problems()
    }

    /// Makes these the rules; what people have said before holds as far as no rule denies it. Where one of them cannot
    /// hold, all stays as it was, and that one comes back.
    pub fn set_rules(&self, rules: Vec<wharf_policy::SourcedRule>) -> Result<(), wharf_policy::Problem> {
        self.context().rules.rules_changed(rules)
    }

    /// Lets a tool out of quarantine, with the definition that a person has seen and no other. Refused where the tool
    /// is defined differently by now.
    pub async fn release(&self, tool: &ToolId, seen: wharf_spec::Fingerprint) -> Result<(), HostError> {
        let context = self.context();
        let server = context.server(tool.server.as_str())?;
        let found = context.shelf.peek().tool(tool).map(|tool| tool.fingerprint);
        let Some(fingerprint) = found else {
            return Err(HostError::UnknownTool {
                server: tool.server.clone(),
                tool: tool.tool.to_string(),
                nearest: None,
                because: None,
            });
        };
        if fingerprint != seen {
            return Err(HostError::Refused(Refusal::new(RefusalReason::ApprovalStale)));
        }
        context.release((server.origin(), tool.clone()), seen);
        context.filter_anew(&server).await;
        Ok(())
    }

    /// What happens from now on.
    pub fn events(&self) -> Events {
        self.context().crier.listen()
    }

    /// The connection to a server that is ready, for whatever the host itself has no words for. Does not wait.
    pub fn connection(&self, server: &str) -> Result<Connection, HostError> {
        let server = self.context().server(server)?;
        let passage = server.passage();
        passage.map(|passage| passage.connection).ok_or_else(|| server.unavailable(&server.standing.borrow()))
    }

    /// Waits until every server that is not lazy is ready, with its lists read, or is not going to be.
    pub async fn settled(&self) {
        let servers = self.context().servers.load_full();
        for server in servers.values() {
            server.settled().await;
        }
    }

    /// Waits until a server is ready and its tools are in the catalog; one that is idle is started. It has the time its
    /// start may take, and that of a call for its list.
    pub async fn ready(&self, server: &str) -> Result<Connection, HostError> {
        let context = self.context();
        let server = context.server(server)?;
        let patience = context.patience_at_start(&server);
        let learned = server.travel(patience, |passage| {
            let server = Arc::clone(&server);
            async move { server.learned(&passage, patience).await.map(|()| passage.connection) }
        });
        learned.await
    }

    /// Brings a server up and waits for the first attempt to end, whatever it was before.
    pub async fn connect(&self, server: &str) -> Result<(), HostError> {
        self.bring_up(server, Command::Connect).await
    }

    /// Takes a server off and brings it up again.
    pub async fn reconnect(&self, server: &str) -> Result<(), HostError> {
        self.bring_up(server, Command::Reconnect).await
    }

    async fn bring_up(&self, server: &str, command: Command) -> Result<(), HostError> {
        let server = self.context().server(server)?;
        server.membership.may_ask();
        let number = server.command(command);
        server.has_obeyed(number).await;
        server.attempted().await
    }

    /// Takes a server off until somebody connects it. Calls of it err from now on.
    pub async fn disconnect(&self, server: &str) -> Result<(), HostError> {
        let server = self.context().server(server)?;
        let number = server.command(Command::Disconnect);
        server.has_obeyed(number).await;
        Ok(())
    }

    /// Switches a server on for as long as this host runs, or until [`Host::set_servers`] says otherwise than before. One
    /// that is not approved stays so.
    pub async fn enable(&self, server: &str) -> Result<(), HostError> {
        self.admit(server, wharf_spec::Admission::Enabled).await
    }

    /// Switches a server off for as long as this host runs, or until [`Host::set_servers`] says otherwise than before.
    pub async fn disable(&self, server: &str) -> Result<(), HostError> {
        self.admit(server, wharf_spec::Admission::Disabled).await
    }

    async fn admit(&self, server: &str, admission: wharf_spec::Admission) -> Result<(), HostError> {
        let context = self.context();
        let changing = context.changing.acquire().await;
        let server = context.server(server)?;
        if server.kept.load().settings.admission == wharf_spec::Admission::Unapproved {
            return Err(server.unavailable(&server.standing.borrow()));
        }
        let number = server.admit(admission);
        drop(changing);
        server.has_obeyed(number).await;
        context.filter_anew(&server).await;
        Ok(())
    }

    /// Makes these the servers, beside those in this process: what is new is added, what is missing is taken off, what
    /// has changed is replaced, and everything else stays as it is. Calls under way on what is taken off have a moment
    /// to end.
    ///
    /// Dropped while it waits, the change is made all the same.
    pub async fn set_servers(&self, servers: Vec<ServerEntry>) -> Changes {
        let (wanted, errors) = roster::told(servers);
        let host = self.clone();
        // A task, so that nobody can drop it half done: a server that has begun must get its place.
        let changed = tokio::spawn(async move { roster::change(&host, wanted).await }).await;
        let mut changes = changed.unwrap_or_else(|broken| {
            tracing::error!("the set of servers could not be changed: {broken}");
            Changes::default()
        });
        changes.errors.extend(errors);
        changes
    }

    /// Starts to keep a server. The name must be free, and nobody else may change the set of servers.
    pub(crate) async fn add(&self, name: ServerName, told: Told) {
        let server = self.begin(name, told).await;
        let context = self.context();
        let mut servers = HashMap::clone(&context.servers.load());
        servers.insert(server.name.clone(), server);
        context.take_servers(servers);
    }

    /// Makes a server and its supervisor, which begins to keep it.
    pub(crate) async fn begin(&self, name: ServerName, told: Told) -> Arc<Server> {
        let context = Arc::clone(self.context());
        let (words, inbox) = mpsc::unbounded_channel();
        let kept = Kept::new(told.settings, told.by_hand);
        let seed = u64::from(context.jitter(Duration::from_secs(1)).subsec_nanos()) + 1;
        let supervisor = Supervisor::new(kept.keeping(), seed, moment());
        let (standing, published) = watch::channel(Standing::of(&supervisor));
        let server = Arc::new(Server {
            name,
            generation: context.generations.fetch_add(1, Ordering::Relaxed) + 1,
            reach: told.reach,
            kept: ArcSwap::from_pointee(kept),
            words,
            wanted: tokio::sync::Notify::new(),
            standing: published,
            listed: watch::Sender::default(),
            listed_all: watch::Sender::default(),
            sent: Mutex::default(),
            obeyed: watch::Sender::default(),
            anew: tokio::sync::Notify::new(),
            usage: Usage::new(),
            stats: Stats::default(),
            results: crate::results::KeptResults::default(),
            watched: Watched::new(),
            membership: Membership::default(),
        });
        context.recall(&server).await;
        let mut keeper = Keeper {
            context,
            server: Arc::clone(&server),
            supervisor,
            words: inbox,
            standing,
            closing: Closing::default(),
            check: None,
            login: None,
        };
        keeper.begin();
        let mut tasks = self.owner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(supervise(keeper));
        drop(tasks);
        self.context().prepare_inspection();
        server
    }

    /// Ends everything: no new calls, those under way withdrawn, every server ended, with one deadline for all of it.
    ///
    /// Dropped while it waits, the servers go on ending.
    pub async fn close(&self) {
        let context = self.context();
        let limits = &context.options.limits;
        let deadline = Instant::now() + limits.stop_grace + limits.term_grace + CLOSE_MARGIN;
        context.closing.send_replace(true);
        let mut accounts = self.dismiss();
        let mut background = std::mem::take(&mut *context.background.lock().unwrap_or_else(PoisonError::into_inner));
        background.abort_all();
        // Servers that are being added just now are to be ended as well; none is added after that.
        let _none_added = tokio::time::timeout_at(deadline, context.changing.acquire()).await;
        accounts.extend(self.dismiss());
        let mut tasks = std::mem::take(&mut *self.owner.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while let Ok(Some(_)) = tokio::time::timeout_at(deadline, tasks.join_next()).await {}
        tasks.abort_all();
        while let Ok(Some(_)) = tokio::time::timeout_at(deadline, background.join_next()).await {}
        finish(accounts).await;
        let written = async {
            if let Some(audit) = &context.audit {
                audit.flush().await;
            }
            if let Some(disk) = &context.disk {
                disk.flush().await;
            }
            if let Some(logs) = &context.logs {
                logs.flush().await;
            }
        };
        if tokio::time::timeout_at(deadline.max(Instant::now() + CLOSE_MARGIN), written).await.is_err() {
            tracing::error!("what was to be kept could not be written in time");
        }
        context.crier.end();
    }

    /// Tells every server to leave, and hands back their accounts.
    fn dismiss(&self) -> Vec<Arc<dyn ServerAccount>> {
        let servers = self.context().servers.swap(Arc::default());
        servers.values().for_each(|server| server.leave());
        servers.values().filter_map(|server| server.known_account().map(Arc::clone)).collect()
    }
}

/// Waits for what accounts must not break off, of all at once.
async fn finish(accounts: Vec<Arc<dyn ServerAccount>>) {
    let mut all: JoinSet<()> = accounts.iter().map(|account| account.finish()).collect();
    let finished = async { while all.join_next().await.is_some() {} };
    if tokio::time::timeout(FINISH, finished).await.is_err() {
        tracing::warn!("the renewal of a login was broken off");
    }
}
