//! The servers of a host that stays: what is configured, what of it the host keeps, and how that follows the files.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, mpsc};
use wharf::{Changes, Host, HostError};
use wharf_config::{Config, Configured, Problem, Watch};
use wharf_spec::{Admission, ServerEntry, ServerName};

use crate::command::status::gathered::{Gathered, Row, gather};
use crate::configured::rules_of;
use crate::failure::Failure;
use crate::hosting::Hosted;
use crate::session::Session;

/// A host and what it was told to keep.
pub struct Fleet<'a> {
    pub session: &'a Session,
    pub host: Host,
    /// The servers that are wanted; all where there are none.
    ids: Vec<String>,
    /// The servers that are on for this session, whatever their files say.
    switched_on: Mutex<BTreeSet<ServerName>>,
    known: Mutex<Arc<Known>>,
    changing: Semaphore,
}

/// What is configured, and what came of it.
pub struct Known {
    pub config: Arc<Config>,
    pub entries: Vec<ServerEntry>,
    /// Why servers that are switched on are not in the host.
    pub failures: Vec<(String, Arc<Failure>)>,
}

/// What a look at the files has changed.
pub struct Reloaded {
    pub changes: Changes,
    /// What is wrong with the configuration and was not before.
    pub problems: Vec<Problem>,
    /// Why the rules stay as they were, if they do.
    pub refused: Option<wharf_policy::Problem>,
}

impl Known {
    /// Expands what is configured: all that is switched on and approved, or of that the servers of these names.
    pub async fn resolve(session: &Session, config: Arc<Config>, ids: &[String]) -> Self {
        let is_wanted = |server: &&Configured| {
            server.admission() == Admission::Enabled
                && (ids.is_empty() || ids.iter().any(|id| server.name.as_str() == id))
        };
        let wanted: Vec<Configured> = config.servers.iter().filter(is_wanted).cloned().collect();
        let names: Vec<String> = wanted.iter().map(|server| server.name.to_string()).collect();
        let (mut entries, mut failures) = (Vec::new(), Vec::new());
        for (name, resolved) in names.into_iter().zip(session.configuration.resolve(wanted, config.clone()).await) {
            match resolved {
                Ok(mut entry) => {
                    entry.settings.lazy &= ids.is_empty();
                    if let Some(time) = session.timeout() {
                        (entry.settings.timeout, entry.settings.startup_timeout) = (Some(time), Some(time));
                    }
                    entries.push(entry);
                }
                Err(failure) => failures.push((name, Arc::new(failure))),
            }
        }
        Self { config, entries, failures }
    }
}

impl<'a> Fleet<'a> {
    /// A host that was made with what is known.
    pub fn new(session: &'a Session, host: Host, known: Known, ids: &[String]) -> Self {
        Self {
            session,
            host,
            ids: ids.to_vec(),
            switched_on: Mutex::default(),
            known: Mutex::new(Arc::new(known)),
            changing: Semaphore::new(1),
        }
    }

    /// What is configured now.
    pub fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A row for each server, as it is now.
    pub fn rows(&self) -> Vec<Row> {
        let known = self.known();
        let Known { config, entries, failures } = &*known;
        gather(&Gathered { session: self.session, config, host: &self.host, entries, failures, ids: &self.ids })
    }

    /// Makes what is configured now what the host keeps.
    ///
    /// Where the rules cannot hold, nothing changes: servers are not brought up without the rules that came with them.
    pub async fn reload(&self, config: Arc<Config>) -> Reloaded {
        // Never closed; one after the other.
        let _changing = self.changing.acquire().await;
        let config = self.switched(config);
        let before = Arc::clone(&self.known().config);
        let problems = config.problems.iter().filter(|problem| !before.problems.contains(problem)).cloned().collect();
        let known = Arc::new(Known::resolve(self.session, config, &self.ids).await);
        let (entries, rules) = (known.entries.clone(), rules_of(&known.config.settings));
        if let Err(refused) = self.host.set_rules(rules) {
            return Reloaded { changes: Changes::default(), problems, refused: Some(refused) };
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
        Reloaded { changes: self.host.set_servers(entries).await, problems, refused: None }
    }

    /// Switches a server on for this session, also one that its file switches off.
    pub async fn enable(&self, name: &ServerName) -> Result<(), HostError> {
        if self.host.status_of(name.as_str()).is_err() {
            self.switched_on.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
            let config = Arc::clone(&self.known().config);
            self.reload(config).await;
        }
        self.host.enable(name.as_str()).await
    }

    /// What is configured, with what was switched on for this session.
    fn switched(&self, config: Arc<Config>) -> Arc<Config> {
        let switched_on = self.switched_on.lock().unwrap_or_else(PoisonError::into_inner);
        if switched_on.is_empty() {
            return config;
        }
        let mut config = Arc::unwrap_or_clone(config);
        for server in config.servers.iter_mut().filter(|server| switched_on.contains(&server.name)) {
            server.enabled = true;
        }
        Arc::new(config)
    }

    /// What a person is told of an error of the host.
    pub fn failure(&self, name: &ServerName, error: HostError) -> Failure {
        Hosted::over(self.session, self.host.clone(), self.known().entries.clone()).failure(name, error)
    }
}

/// Looks after the files, in a task of its own: a look is not put off by what happens in the host.
pub fn follow(mut watch: Watch) -> mpsc::Receiver<Arc<Config>> {
    let (sender, configs) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let config = tokio::select! {
                config = watch.next() => config,
                () = sender.closed() => return,
            };
            if sender.send(config).await.is_err() {
                return;
            }
        }
    });
    configs
}
