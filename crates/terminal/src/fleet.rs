//! The servers of a host that stays: what is configured, what of it the host keeps, and how that follows the files.

mod reloaded;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, mpsc};
use wharf::{Host, HostError};
use wharf_auth::AuthSettings;
use wharf_config::{Config, Configured, Watch};
use wharf_spec::{Admission, ServerEntry, ServerName, ServerSpec};

use crate::configured::rules_of;
use crate::failure::Failure;
use crate::hosting::Hosted;
use crate::session::Session;
use crate::status::gathered::{Gathered, Row, gather};

pub use reloaded::Reloaded;

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

/// Why the files are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Somebody wants it.
    Asked,
    /// Something has changed; a file that is gone may be about to be replaced.
    Noticed,
}

/// What is configured, and what came of it.
pub struct Known {
    pub config: Arc<Config>,
    pub entries: Vec<ServerEntry>,
    /// Why servers that are switched on cannot be had as they are written. One that could be had before, and is written
    /// as it was, is among the entries all the same.
    pub failures: Vec<(String, Arc<Failure>)>,
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

    /// The same; a server that is written as it was before and cannot be had now stays what it was.
    fn keeping(mut self, before: &Self) -> Self {
        let is_same = |name: &str| match (self.config.server(name), before.config.server(name)) {
            (Some(now), Some(then)) => is_written_alike(now, then),
            _ => false,
        };
        let has_failed = |entry: &&ServerEntry| self.failures.iter().any(|(name, _)| name == entry.name.as_str());
        let kept = before.entries.iter().filter(has_failed).filter(|entry| is_same(entry.name.as_str()));
        let kept: Vec<ServerEntry> = kept.cloned().collect();
        self.entries.extend(kept);
        self
    }

    /// The project's servers that wait for somebody to look at them.
    pub fn unapproved(&self) -> impl Iterator<Item = &Configured> {
        let waits = |server: &&Configured| server.admission() == Admission::Unapproved && server.described.is_ok();
        self.config.servers.iter().chain(&self.config.beside).filter(waits)
    }
}

/// Whether two entries say the same of the same server at the same place, wherever in its file that is.
pub fn is_written_alike(one: &Configured, other: &Configured) -> bool {
    (&one.name, one.layer, &one.place.file, &one.written)
        == (&other.name, other.layer, &other.place.file, &other.written)
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

    /// Waits until servers that are configured are what the host keeps, and have been tried.
    pub async fn settled(&self) {
        self.caught_up().await;
        self.host.settled().await;
    }

    /// Waits until the host was told of everything that is configured: of some servers, secrets are looked up first.
    pub async fn caught_up(&self) {
        // Never closed.
        let _changing = self.changing.acquire().await;
    }

    /// Whether a server is still to come, since its secrets are being looked up.
    pub fn awaits(&self, server: &Configured) -> bool {
        let (known, name) = (self.known(), server.name.as_str());
        server.admission() == Admission::Enabled
            && self.changing.available_permits() == 0
            && self.host.status_of(name).is_err()
            && !known.failures.iter().any(|(failed, _)| failed == name)
    }

    /// Looks at the files and makes what they say what the host keeps.
    ///
    /// One look after the other, so that what was read last holds. Where the rules cannot hold, nothing changes: servers
    /// are not brought up without the rules that came with them.
    pub async fn reload(&self, look: Look) -> Result<Reloaded, Failure> {
        let _changing = self.changing.acquire().await;
        let reader = self.session.configuration.reader.clone();
        let read = move || match look {
            Look::Asked => reader.read_anew(),
            Look::Noticed => reader.read(),
        };
        let config = tokio::task::spawn_blocking(read).await.map_err(Failure::other)?;
        Ok(self.take_over(Arc::new(config)).await)
    }

    /// Makes what is known to be configured what the host keeps, without another look at the files.
    pub async fn bring_up(&self) {
        let _changing = self.changing.acquire().await;
        let config = Arc::clone(&self.known().config);
        self.take_over(config).await;
    }

    async fn take_over(&self, config: Arc<Config>) -> Reloaded {
        let before = self.known();
        let known = Known::resolve(self.session, self.switched(config), &self.ids).await.keeping(&before);
        if let Err(rule) = self.host.set_rules(rules_of(&known.config.settings)) {
            return Reloaded::refused(&before, &known, &rule);
        }
        let (entries, known) = (known.entries.clone(), Arc::new(known));
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&known);
        Reloaded::new(&before, &known, &self.host.set_servers(entries).await)
    }

    /// Switches a server on for this session, also one that its file switches off.
    pub async fn enable(&self, name: &ServerName) -> Result<(), HostError> {
        if self.host.status_of(name.as_str()).is_err() {
            self.switched_on.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
            self.bring_up().await;
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

    /// How a server wants to be logged in at.
    pub fn login_of(&self, name: &str) -> AuthSettings {
        let known = self.known();
        match known.entries.iter().find(|entry| entry.name.as_str() == name).map(|entry| &entry.spec) {
            Some(ServerSpec::Http(spec)) => (*spec.login).clone(),
            _ => AuthSettings::default(),
        }
    }

    /// What a person is told of an error of the host.
    pub fn failure(&self, name: &ServerName, error: HostError) -> Failure {
        Hosted::over(self.session, self.host.clone(), self.known().entries.clone()).failure(name, error)
    }
}

/// Looks after the files, in a task of its own: a look is not put off by what happens in the host. Says when they have
/// changed; what they say is for whoever looks then.
pub fn follow(mut watch: Watch) -> mpsc::Receiver<()> {
    let (sender, changes) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = watch.next() => {}
                () = sender.closed() => return,
            }
            if sender.send(()).await.is_err() {
                return;
            }
        }
    });
    changes
}
