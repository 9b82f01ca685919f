//! Clients over HTTP: the local token, and the keys of `wharf key`.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::sleep;
use wharf_gateway::{ClientKey, KeyTable, key_digest};
use wharf_serve::{AuthenticatedClient, Authenticator, HttpSessions};
use wharf_spec::UntrustedText;
use wharf_store::Document;
use wharf_terminal::console::Console;
use wharf_terminal::gateway_socket::ViewRequest;

use super::gateway_process::GatewayProcess;
use super::project::ProjectLease;
use super::view::ServedView;
use crate::command::key;

/// Interval at which the file of keys is read. A revoked key is valid no longer than this.
const KEY_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The clients by the digest of their token.
pub struct ClientKeys {
    local: (String, AuthenticatedClient),
    clients: RwLock<HashMap<String, AuthenticatedClient>>,
}

impl ClientKeys {
    /// Knows the client with the local token.
    pub fn new(token: &str, client: AuthenticatedClient) -> Self {
        Self { local: (key_digest(token), client), clients: RwLock::default() }
    }
}

impl Authenticator for ClientKeys {
    fn authenticate(&self, token: &str) -> Option<AuthenticatedClient> {
        let digest = key_digest(token);
        let (local, client) = &self.local;
        if digest == *local {
            return Some(client.clone());
        }
        self.clients.read().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned()
    }
}

/// Follows the file of keys.
pub struct KeyFollower<'a> {
    pub clients: Arc<ClientKeys>,
    pub file: Document,
    pub process: &'a GatewayProcess,
    pub lease: &'a ProjectLease,
    /// View of clients whose key has no profile.
    pub view: &'a ViewRequest,
    pub console: &'a Console,
}

impl KeyFollower<'_> {
    /// Reads the keys once, and returns them.
    pub async fn load(&self) -> KeyTable {
        let table = self.read().await;
        self.apply(&table).await;
        table
    }

    /// Applies changes of the file, and ends the sessions of keys that are revoked. Never returns.
    pub async fn follow(&self, mut known: KeyTable, sessions: HttpSessions) {
        loop {
            sleep(KEY_POLL_INTERVAL).await;
            let table = self.read().await;
            if table != known {
                self.apply(&table).await;
                let gone = known.keys().iter().filter(|key| !table.keys().contains(key));
                gone.for_each(|key| sessions.end_of_principal(&principal(key)));
                known = table;
            }
        }
    }

    /// Reads the file. If that fails, no key is valid.
    async fn read(&self) -> KeyTable {
        let file = self.file.clone();
        let read = wharf_threads::run_blocking(move || key::read_keys(&file)).await;
        match read {
            Ok(Ok(table)) => table,
            Ok(Err(failure)) => {
                self.console.warn(format_args!("no key is valid: {}", UntrustedText::new(failure.error.message)));
                KeyTable::default()
            }
            Err(_) => KeyTable::default(),
        }
    }

    async fn apply(&self, table: &KeyTable) {
        let mut clients = HashMap::new();
        for key in table.keys() {
            let mut view = self.view.clone();
            view.profile = key.profile.clone().or(view.profile);
            let view = ServedView { request: view, principal: Some(principal(key)) };
            match self.lease.open_view(&view).await {
                Ok(gateway) => {
                    let service = self.process.drainable(gateway);
                    let client = AuthenticatedClient { principal: principal(key).into(), service };
                    clients.insert(key.digest.clone(), client);
                }
                Err(failure) => {
                    let (name, reason) = (&key.name, UntrustedText::new(failure.error.message));
                    self.console.warn(format_args!("the key {name} is not valid: {reason}"));
                }
            }
        }
        *self.clients.clients.write().unwrap_or_else(PoisonError::into_inner) = clients;
    }
}

fn principal(key: &ClientKey) -> String {
    format!("key:{}", key.name)
}
