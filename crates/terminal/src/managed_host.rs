//! Servers of a long-running host: the loaded configuration, the entries passed to the host, and reloading when the
//! files change.

mod reload_report;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, mpsc};
use wharf::{Host, HostError};
use wharf_auth::AuthSettings;
use wharf_config::{Config, ConfigWatcher, ConfiguredServer};
use wharf_spec::{ActivationState, ServerEntry, ServerName, ServerSpec};

use crate::config_context::rules_of;
use crate::failure::Failure;
use crate::one_shot_host::OneShotHost;
use crate::session::CommandSession;
use crate::status::status_rows::{StatusInputs, StatusRow, status_rows};

pub use reload_report::ReloadReport;

/// A host together with the configuration it runs.
pub struct ManagedHost<'a> {
    pub session: &'a CommandSession,
    pub host: Host,
    /// Names of the selected servers. Empty selects all.
    ids: Vec<String>,
    /// Servers enabled for this session, overriding their files.
    switched_on: Mutex<BTreeSet<ServerName>>,
    /// Tools switched off for this session.
    tools_off: Mutex<BTreeSet<(ServerName, String)>>,
    known: Mutex<Arc<LoadedConfig>>,
    change_lock: Semaphore,
}

/// Cause of a configuration reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadTrigger {
    /// The user or a client requested it.
    Asked,
    /// The file watcher reported a change. A missing file may be about to be replaced.
    Noticed,
}

/// The loaded configuration and the result of resolving it.
pub struct LoadedConfig {
    pub config: Arc<Config>,
    pub entries: Vec<ServerEntry>,
    /// Errors of enabled servers that could not be resolved. If an earlier load resolved an identical definition, its
    /// entry is still in `entries`.
    pub failures: Vec<(String, Arc<Failure>)>,
}

impl LoadedConfig {
    /// Resolves the enabled and approved servers, or those of them that `ids` names.
    pub async fn resolve(session: &CommandSession, config: Arc<Config>, ids: &[String]) -> Self {
        let is_wanted = |server: &&ConfiguredServer| {
            server.activation() == ActivationState::Enabled
                && (ids.is_empty() || ids.iter().any(|id| server.name.as_str() == id))
        };
        let wanted: Vec<ConfiguredServer> = config.servers.iter().filter(is_wanted).cloned().collect();
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

    /// Keeps the previous entry of every server that failed to resolve although its definition is unchanged.
    fn keep_previous_entries(mut self, before: &Self) -> Self {
        let is_same = |name: &str| match (self.config.server(name), before.config.server(name)) {
            (Some(now), Some(then)) => is_same_definition(now, then),
            _ => false,
        };
        let has_failed = |entry: &&ServerEntry| self.failures.iter().any(|(name, _)| name == entry.name.as_str());
        let kept = before.entries.iter().filter(has_failed).filter(|entry| is_same(entry.name.as_str()));
        let kept: Vec<ServerEntry> = kept.cloned().collect();
        self.entries.extend(kept);
        self
    }

    /// Project servers that await approval.
    pub fn unapproved(&self) -> impl Iterator<Item = &ConfiguredServer> {
        let waits =
            |server: &&ConfiguredServer| server.activation() == ActivationState::Unapproved && server.described.is_ok();
        self.config.servers.iter().chain(&self.config.beside).filter(waits)
    }
}

/// Reports whether two entries have the same name, layer, file and text, regardless of their position in the file.
pub fn is_same_definition(one: &ConfiguredServer, other: &ConfiguredServer) -> bool {
    (&one.name, one.layer, &one.place.file, &one.written)
        == (&other.name, other.layer, &other.place.file, &other.written)
}

impl<'a> ManagedHost<'a> {
    /// Creates a managed host from a host started with `known`.
    pub fn new(session: &'a CommandSession, host: Host, known: LoadedConfig, ids: &[String]) -> Self {
        Self {
            session,
            host,
            ids: ids.to_vec(),
            switched_on: Mutex::default(),
            tools_off: Mutex::default(),
            known: Mutex::new(Arc::new(known)),
            change_lock: Semaphore::new(1),
        }
    }

    /// Returns the current configuration.
    pub fn loaded_config(&self) -> Arc<LoadedConfig> {
        Arc::clone(&self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns one status row per server.
    pub fn rows(&self) -> Vec<StatusRow> {
        let known = self.loaded_config();
        let LoadedConfig { config, entries, failures } = &*known;
        status_rows(&StatusInputs {
            session: self.session,
            config,
            host: &self.host,
            entries,
            failures,
            ids: &self.ids,
        })
    }

    /// Waits until the host has received the current configuration and tried to start every server.
    pub async fn wait_until_settled(&self) {
        self.wait_for_config().await;
        self.host.wait_until_settled().await;
    }

    /// Waits until the host has received the current configuration, and for its servers except slow ones.
    pub async fn wait_for_startup(&self) {
        self.wait_for_config().await;
        self.host.wait_for_startup().await;
    }

    /// Waits until the host has received the current configuration. Resolving a server may include secret lookups.
    pub async fn wait_for_config(&self) {
        // The semaphore is never closed.
        let _changing = self.change_lock.acquire().await;
    }

    /// Reports whether a server is not in the host yet because its configuration is still being resolved.
    pub fn is_pending(&self, server: &ConfiguredServer) -> bool {
        let (known, name) = (self.loaded_config(), server.name.as_str());
        server.activation() == ActivationState::Enabled
            && self.change_lock.available_permits() == 0
            && self.host.status_of(name).is_err()
            && !known.failures.iter().any(|(failed, _)| failed == name)
    }

    /// Reads the configuration files and applies them to the host.
    ///
    /// Reloads are serialized, so the last read wins. If the permission rules are invalid, nothing changes: servers
    /// never run without the rules configured with them.
    pub async fn reload(&self, trigger: ReloadTrigger) -> Result<ReloadReport, Failure> {
        let _changing = self.change_lock.acquire().await;
        let reader = self.session.configuration.reader.clone();
        let read = move || match trigger {
            ReloadTrigger::Asked => reader.reload(),
            ReloadTrigger::Noticed => reader.read(),
        };
        let config = wharf_threads::run_blocking(read).await.map_err(Failure::other)?;
        Ok(self.apply_config(Arc::new(config)).await)
    }

    /// Applies the current configuration to the host again without reading the files.
    pub async fn reapply_config(&self) {
        let _changing = self.change_lock.acquire().await;
        let config = Arc::clone(&self.loaded_config().config);
        self.apply_config(config).await;
    }

    async fn apply_config(&self, config: Arc<Config>) -> ReloadReport {
        let before = self.loaded_config();
        let mut known = LoadedConfig::resolve(self.session, self.with_session_overrides(config), &self.ids)
            .await
            .keep_previous_entries(&before);
        self.exclude_tools(&mut known.entries);
        if let Err(rule) = self.host.set_rules(rules_of(&known.config.settings)) {
            return ReloadReport::rejected(&before, &known, &rule);
        }
        let (entries, known) = (known.entries.clone(), Arc::new(known));
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&known);
        ReloadReport::new(&before, &known, &self.host.set_servers(entries).await)
    }

    /// Enables a server for this session, even if its file disables it.
    pub async fn enable(&self, name: &ServerName) -> Result<(), HostError> {
        if self.host.status_of(name.as_str()).is_err() {
            self.switched_on.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
            self.reapply_config().await;
        }
        self.host.enable(name.as_str()).await
    }

    /// Switches a tool on or off for this session. Reports whether that changes anything.
    pub async fn switch_tool(&self, server: &ServerName, tool: &str, is_on: bool) -> bool {
        let key = (server.clone(), tool.to_owned());
        let is_change = {
            let mut off = self.tools_off.lock().unwrap_or_else(PoisonError::into_inner);
            if is_on { off.remove(&key) } else { off.insert(key) }
        };
        if is_change {
            self.reapply_config().await;
        }
        is_change
    }

    /// Returns the tools switched off for this session.
    pub fn tools_off(&self) -> Vec<(ServerName, String)> {
        self.tools_off.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Excludes the tools switched off for this session.
    fn exclude_tools(&self, entries: &mut [ServerEntry]) {
        let off = self.tools_off();
        for entry in entries {
            let excluded = &mut entry.settings.exclude_tools;
            let names = off.iter().filter(|(server, _)| *server == entry.name).map(|(_, tool)| tool.clone());
            let new: Vec<String> = names.filter(|tool| !excluded.contains(tool)).collect();
            excluded.extend(new);
        }
    }

    /// Returns the configuration with the servers enabled for this session.
    fn with_session_overrides(&self, config: Arc<Config>) -> Arc<Config> {
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

    /// Returns the login settings of a server.
    pub fn login_settings(&self, name: &str) -> AuthSettings {
        let known = self.loaded_config();
        match known.entries.iter().find(|entry| entry.name.as_str() == name).map(|entry| &entry.spec) {
            Some(ServerSpec::Http(spec)) => (*spec.login).clone(),
            _ => AuthSettings::default(),
        }
    }

    /// Converts a host error into a failure with hints.
    pub fn failure(&self, name: &ServerName, error: HostError) -> Failure {
        OneShotHost::from_host(self.session, self.host.clone(), self.loaded_config().entries.clone())
            .failure(name, error)
    }
}

/// Spawns a task that watches the configuration files and sends a message on every change. The receiver reads the
/// files. A busy host does not delay the watcher.
pub fn watch_config_files(mut watch: ConfigWatcher) -> mpsc::Receiver<()> {
    let (sender, changes) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = watch.next_change() => {}
                () = sender.closed() => return,
            }
            if sender.send(()).await.is_err() {
                return;
            }
        }
    });
    changes
}
