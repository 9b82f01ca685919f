//! Answers to prompts that hold for later calls, apart for each principal: the "this session" of one client permits no
//! call of another.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Semaphore;
use wharf_policy::{GrantLifetime, GrantSet};
use wharf_spec::{ServerName, ServerOrigin};
use wharf_tools::Principal;

/// Maximum number of clients whose answers are remembered. A forgotten client is asked again.
const MAX_CLIENTS: usize = 4096;

/// A tool that belongs to no server, and the server that the call concerns.
pub(super) type HostToolKey = (Arc<str>, Option<(ServerOrigin, ServerName)>);

/// The answers of all principals.
#[derive(Default)]
pub(super) struct RememberedAnswers {
    local: PrincipalAnswers,
    clients: HashMap<Principal, PrincipalAnswers>,
}

/// The answers of one principal.
pub(super) struct PrincipalAnswers {
    pub grants: GrantSet,
    /// Answers about tools that belong to no server. Bounded by the number of such tools and of the servers they
    /// concern.
    pub host_tools: HashMap<HostToolKey, GrantLifetime>,
    /// Serializes the prompts of the principal: the answer to one may settle the next.
    pub prompt_permit: Arc<Semaphore>,
}

impl Default for PrincipalAnswers {
    fn default() -> Self {
        Self { grants: GrantSet::default(), host_tools: HashMap::new(), prompt_permit: Arc::new(Semaphore::new(1)) }
    }
}

impl PrincipalAnswers {
    fn is_empty(&self) -> bool {
        self.grants.is_empty() && self.host_tools.is_empty()
    }
}

impl RememberedAnswers {
    /// Returns the answers of a principal that has given some or has been prompted.
    pub fn find_mut(&mut self, principal: &Principal) -> Option<&mut PrincipalAnswers> {
        if principal.is_local() { Some(&mut self.local) } else { self.clients.get_mut(principal) }
    }

    /// Returns the answers of a principal, empty at first. Beyond the limit another client is forgotten, if possible one
    /// without answers.
    pub fn answers_mut(&mut self, principal: &Principal) -> &mut PrincipalAnswers {
        if principal.is_local() {
            return &mut self.local;
        }
        if self.clients.len() >= MAX_CLIENTS && !self.clients.contains_key(principal) {
            let idle = self.clients.iter().find(|(_, answers)| answers.is_empty()).map(|(client, _)| client);
            let other = idle.or_else(|| self.clients.keys().next()).cloned();
            other.and_then(|other| self.clients.remove(&other));
        }
        self.clients.entry(principal.clone()).or_default()
    }

    /// Forgets the answers of a client.
    pub fn forget_principal(&mut self, principal: &Principal) {
        if principal.is_local() {
            self.local = PrincipalAnswers::default();
        } else {
            self.clients.remove(principal);
        }
    }

    /// Forgets the answers about a server.
    pub fn forget_server(&mut self, server: &ServerName) {
        for answers in self.all_mut() {
            answers.grants.forget(server);
            answers.host_tools.retain(|(_, subject), _| subject.as_ref().is_none_or(|(_, other)| other != server));
        }
    }

    /// Forgets the permanent answers. For use once they are stored as rules.
    pub fn forget_permanent(&mut self) {
        for answers in self.all_mut() {
            answers.grants.forget_permanent();
            answers.host_tools.retain(|_, lifetime| *lifetime != GrantLifetime::Always);
        }
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut PrincipalAnswers> {
        std::iter::once(&mut self.local).chain(self.clients.values_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_with_answers_are_forgotten_last() {
        let mut answers = RememberedAnswers::default();
        let key: HostToolKey = ("ListMcpResources".into(), None);
        let ada = Principal::client("ada");
        for principal in [Principal::local(), ada.clone()] {
            answers.answers_mut(&principal).host_tools.insert(key.clone(), GrantLifetime::Session);
        }
        for number in 0..=MAX_CLIENTS {
            answers.answers_mut(&Principal::client(number.to_string()));
        }
        assert_eq!(answers.clients.len(), MAX_CLIENTS);
        for principal in [Principal::local(), ada] {
            assert!(answers.find_mut(&principal).unwrap().host_tools.contains_key(&key));
        }
        assert!(answers.find_mut(&Principal::client("never prompted")).is_none());
    }
}
