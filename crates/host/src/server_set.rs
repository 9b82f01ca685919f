//! Changes of the set of servers: additions, removals and replacements.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use wharf_spec::{ServerEntry, ServerName, ServerSettings};

use crate::host::Host;
use crate::server::{DesiredServer, LocalFactory, Server, ServerEndpoint};

/// Result of a change of the server set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSetChanges {
    /// Added servers.
    pub added: Vec<ServerName>,
    /// Removed servers.
    pub removed: Vec<ServerName>,
    /// Servers with a different command, address or settings.
    pub changed: Vec<ServerName>,
    /// Servers left as they were.
    pub unchanged: Vec<ServerName>,
    /// Servers with invalid entries, and the reasons.
    pub errors: Vec<(ServerName, String)>,
}

/// Returns the configurations by name. A duplicate name is an error; the first entry applies.
pub(crate) fn configs_by_name(
    entries: Vec<ServerEntry>,
) -> (BTreeMap<ServerName, DesiredServer>, Vec<(ServerName, String)>) {
    let (mut wanted, mut errors) = (BTreeMap::new(), Vec::new());
    for ServerEntry { name, spec, settings } in entries {
        if wanted.contains_key(&name) {
            errors.push((name, "duplicate name: the first entry is used".to_owned()));
            continue;
        }
        wanted.insert(
            name,
            DesiredServer { endpoint: ServerEndpoint::Spec(Box::new(spec)), settings, manual_override: None },
        );
    }
    (wanted, errors)
}

/// An in-process server, as passed to [`Host::set_all_servers`].
#[derive(Clone)]
#[non_exhaustive]
pub struct LocalEntry {
    /// Name of the server.
    pub name: ServerName,
    /// Settings of the server.
    pub settings: ServerSettings,
    /// Makes the server for each connection. A clone of the same factory is the same server.
    pub make: LocalFactory,
}

impl LocalEntry {
    /// Creates an entry with default settings.
    pub fn new(name: ServerName, make: LocalFactory) -> Self {
        Self { name, settings: ServerSettings::default(), make }
    }
}

/// Adds in-process servers to the configurations. A duplicate name is an error; the configured entry applies.
pub(crate) fn add_local(
    wanted: &mut BTreeMap<ServerName, DesiredServer>,
    errors: &mut Vec<(ServerName, String)>,
    local: Vec<LocalEntry>,
) {
    for LocalEntry { name, settings, make } in local {
        if wanted.contains_key(&name) {
            errors.push((name, "duplicate name: the first entry is used".to_owned()));
            continue;
        }
        wanted.insert(name, DesiredServer { endpoint: ServerEndpoint::Local(make), settings, manual_override: None });
    }
}

/// What happens to in-process servers that a change does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalServers {
    Keep,
    Replace,
}

/// Replaces the set of servers. In-process servers stay unless they are replaced, too.
pub(crate) async fn change_servers(
    host: &Host,
    wanted: BTreeMap<ServerName, DesiredServer>,
    local: LocalServers,
) -> ServerSetChanges {
    let context = host.context();
    let _one_at_a_time = context.changing.acquire().await;
    if context.is_closing() {
        let errors = wanted.into_keys().map(|name| (name, "the host is closed".to_owned())).collect();
        return ServerSetChanges { errors, ..ServerSetChanges::default() };
    }
    let (mut changes, mut leaving) = (ServerSetChanges::default(), Vec::new());
    let before = context.servers.load_full();
    let mut after: HashMap<ServerName, Arc<Server>> = HashMap::new();
    for (name, server) in before.iter() {
        match (&server.endpoint, wanted.get(name)) {
            (ServerEndpoint::Spec(_), None) => changes.removed.push(name.clone()),
            (ServerEndpoint::Local(_), None) if local == LocalServers::Replace => changes.removed.push(name.clone()),
            (ServerEndpoint::Local(_), Some(_)) if local == LocalServers::Keep => {
                changes.errors.push((name.clone(), "an in-process server has this name".to_owned()));
                after.insert(name.clone(), Arc::clone(server));
            }
            _ => drop(after.insert(name.clone(), Arc::clone(server))),
        }
    }
    for (name, desired) in wanted {
        match before.get(&name) {
            Some(server) if local == LocalServers::Keep && matches!(server.endpoint, ServerEndpoint::Local(_)) => {}
            // A server defined in another place is a different one, even if its spec is equal.
            Some(server)
                if server.endpoint.is_same(&desired.endpoint) && server.origin() == desired.settings.origin =>
            {
                let same = server.settings.load().is_configured_as(&desired.settings);
                if same { &mut changes.unchanged } else { &mut changes.changed }.push(name);
                if !same {
                    let number = server.apply_settings(desired.settings);
                    // Wait first: a disabled server must not publish tools.
                    server.wait_for_command(number).await;
                    context.republish(server).await;
                }
            }
            known => {
                let manual_override = known.and_then(|old| old.settings.load().override_for(&desired.settings));
                let desired = DesiredServer { manual_override, ..desired };
                if known.is_some() { &mut changes.changed } else { &mut changes.added }.push(name.clone());
                leaving.extend(known.cloned());
                after.insert(name.clone(), host.start_server(name, desired).await);
            }
        }
    }
    leaving.extend(changes.removed.iter().filter_map(|name| before.get(name).cloned()));
    leaving.iter().for_each(|server| context.rules.forget_grants(&server.name));
    context.publish_servers(after);
    // Last: a caller that finds its server leaving then finds the replacement.
    leaving.iter().for_each(|server| server.leave());
    changes.removed.sort();
    changes
}
