//! Which servers there are: what is added, taken off and replaced when that changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use wharf_spec::{ServerEntry, ServerName};

use crate::host::Host;
use crate::server::{Reach, Server, Told};

/// What became of every server when the set of them was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// New ones.
    pub added: Vec<ServerName>,
    /// Those that are gone.
    pub removed: Vec<ServerName>,
    /// Those that are reached or kept in another way.
    pub changed: Vec<ServerName>,
    /// Those nothing was done about.
    pub unchanged: Vec<ServerName>,
    /// Those that could not be taken as they were given, and why.
    pub errors: Vec<(ServerName, String)>,
}

/// The servers by their names. A name that stands twice is an error, and the first one holds.
pub(crate) fn told(entries: Vec<ServerEntry>) -> (BTreeMap<ServerName, Told>, Vec<(ServerName, String)>) {
    let (mut wanted, mut errors) = (BTreeMap::new(), Vec::new());
    for ServerEntry { name, spec, settings } in entries {
        if wanted.contains_key(&name) {
            errors.push((name, "the name stands twice; the first one holds".to_owned()));
            continue;
        }
        wanted.insert(name, Told { reach: Reach::Spec(Box::new(spec)), settings, by_hand: None });
    }
    (wanted, errors)
}

/// Makes these the servers that are started or dialled. Those in this process stay.
pub(crate) async fn change(host: &Host, wanted: BTreeMap<ServerName, Told>) -> Changes {
    let context = host.context();
    let _one_at_a_time = context.changing.acquire().await;
    if context.is_closing() {
        let errors = wanted.into_keys().map(|name| (name, "the host is closed".to_owned())).collect();
        return Changes { errors, ..Changes::default() };
    }
    let (mut changes, mut leaving) = (Changes::default(), Vec::new());
    let before = context.servers.load_full();
    let mut after: HashMap<ServerName, Arc<Server>> = HashMap::new();
    for (name, server) in before.iter() {
        match (&server.reach, wanted.get(name)) {
            (Reach::Spec(_), None) => changes.removed.push(name.clone()),
            (Reach::Local(_), Some(_)) => {
                changes.errors.push((name.clone(), "a server in this process has that name".to_owned()));
                after.insert(name.clone(), Arc::clone(server));
            }
            _ => drop(after.insert(name.clone(), Arc::clone(server))),
        }
    }
    for (name, told) in wanted {
        match before.get(&name) {
            Some(server) if matches!(server.reach, Reach::Local(_)) => {}
            // A server that is defined elsewhere is another one, even if it is reached in the same way.
            Some(server) if server.reach.is_same(&told.reach) && server.origin() == told.settings.origin => {
                let same = server.kept.load().is_told(&told.settings);
                if same { &mut changes.unchanged } else { &mut changes.changed }.push(name);
                if !same {
                    let number = server.keep(told.settings);
                    // First: what may not be used offers nothing.
                    server.has_obeyed(number).await;
                    context.filter_anew(server).await;
                }
            }
            known => {
                let by_hand = known.and_then(|old| old.kept.load().by_hand(&told.settings));
                let told = Told { by_hand, ..told };
                if known.is_some() { &mut changes.changed } else { &mut changes.added }.push(name.clone());
                leaving.extend(known.cloned());
                after.insert(name.clone(), host.begin(name, told).await);
            }
        }
    }
    leaving.extend(changes.removed.iter().filter_map(|name| before.get(name).cloned()));
    leaving.iter().for_each(|server| context.rules.forget(&server.name));
    context.take_servers(after);
    // Only now: whoever finds that its server has left finds the one that took its place.
    leaving.iter().for_each(|server| server.leave());
    changes.removed.sort();
    changes
}
