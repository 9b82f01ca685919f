//! Changes of the set of servers: additions, removals and replacements.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use wharf_spec::{ServerEntry, ServerName};

use crate::host::Host;
use crate::server::{Server, ServerEndpoint, Told};

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
pub(crate) fn configs_by_name(entries: Vec<ServerEntry>) -> (BTreeMap<ServerName, Told>, Vec<(ServerName, String)>) {
    let (mut wanted, mut errors) = (BTreeMap::new(), Vec::new());
    for ServerEntry { name, spec, settings } in entries {
        if wanted.contains_key(&name) {
            errors.push((name, "duplicate name: the first entry is used".to_owned()));
            continue;
        }
        wanted.insert(name, Told { reach: ServerEndpoint::Spec(Box::new(spec)), settings, by_hand: None });
    }
    (wanted, errors)
}

/// Replaces the set of configured servers. In-process servers stay.
pub(crate) async fn change_servers(host: &Host, wanted: BTreeMap<ServerName, Told>) -> ServerSetChanges {
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
        match (&server.reach, wanted.get(name)) {
            (ServerEndpoint::Spec(_), None) => changes.removed.push(name.clone()),
            (ServerEndpoint::Local(_), Some(_)) => {
                changes.errors.push((name.clone(), "an in-process server has this name".to_owned()));
                after.insert(name.clone(), Arc::clone(server));
            }
            _ => drop(after.insert(name.clone(), Arc::clone(server))),
        }
    }
    for (name, told) in wanted {
        match before.get(&name) {
            Some(server) if matches!(server.reach, ServerEndpoint::Local(_)) => {}
            // A server defined in another place is a different one, even if its spec is equal.
            Some(server) if server.reach.is_same(&told.reach) && server.origin() == told.settings.origin => {
                let same = server.kept.load().is_configured_as(&told.settings);
                if same { &mut changes.unchanged } else { &mut changes.changed }.push(name);
                if !same {
                    let number = server.apply_settings(told.settings);
                    // Wait first: a disabled server must not publish tools.
                    server.wait_for_command(number).await;
                    context.republish(server).await;
                }
            }
            known => {
                let by_hand = known.and_then(|old| old.kept.load().override_for(&told.settings));
                let told = Told { by_hand, ..told };
                if known.is_some() { &mut changes.changed } else { &mut changes.added }.push(name.clone());
                leaving.extend(known.cloned());
                after.insert(name.clone(), host.start_server(name, told).await);
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
