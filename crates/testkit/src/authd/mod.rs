//! An authorization server and its protected MCP server, with a switch for every fault between them (O01–O20).
//!
//! Both run on threads of this process and stop when the [`Authd`] is dropped.
//! Time is not involved: tokens expire on request or after a number of uses. Every request is recorded before it is
//! answered.

mod browser;
mod clients;
mod connections;
mod device;
mod documents;
mod exchange;
mod http;
mod key;
mod login_page;
mod proof;
mod protected;
mod random;
mod request_log;
mod switches;
mod token_store;
mod tokens;

use std::future::Future;
use std::io;
use std::sync::Arc;

pub use crate::request::Fields;
pub use browser::visit;
pub use key::SigningKey;
pub use request_log::{ListenerSite, RecordedRequest};
pub use switches::{
    AuthSwitches, ClientAuthMethod, DeviceLoginBehaviour, DeviceLoginOutcome, DocumentDefect, DpopRequirement,
    IssParameter, IssuerMetadataLocation, LoginPageBehaviour, MetadataLocation, RefreshRotation, RegistrationBehaviour,
    Resource, RevocationBehaviour, ScopeRequirement, TokenBehaviour,
};
pub use token_store::AuthCounts;

use crate::transport_faults::Endpoint;
use connections::{AuthShared, SiteOrigins};
use request_log::lock_ignoring_poison;

/// The two servers, and a second authorization server for issuer moves.
pub struct Authd {
    shared: Arc<AuthShared>,
    /// Dropped to close every connection.
    _endpoints: [Endpoint; 3],
}

impl Authd {
    /// Starts the servers on `127.0.0.1` and free ports.
    pub fn start(switches: AuthSwitches) -> io::Result<Authd> {
        let shared = Arc::new(AuthShared::new(switches));
        let open = |site| {
            let shared = Arc::clone(&shared);
            Endpoint::start(move |guest| connections::serve_connection(&shared, site, guest))
        };
        let endpoints = [open(ListenerSite::Server)?, open(ListenerSite::Issuer)?, open(ListenerSite::Second)?];
        let [server, issuer, second] = [0, 1, 2].map(|index: usize| format!("http://{}", endpoints[index].address()));
        shared.set_origins(SiteOrigins { server, issuer, second });
        Ok(Authd { shared, _endpoints: endpoints })
    }

    /// Returns the URL of the protected server.
    pub fn server_url(&self) -> String {
        self.shared.server_url()
    }

    /// Returns the issuer currently named by the server's metadata.
    pub fn issuer(&self) -> String {
        self.shared.issuer(self.shared.current_site())
    }

    /// Returns the server's `resource` identifier for token requests.
    pub fn resource(&self) -> String {
        self.shared.resource()
    }

    /// Returns all received requests, in order.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.ledger.seen()
    }

    /// Waits for the first matching request.
    pub fn wait_for_request(&self, wanted: impl Fn(&RecordedRequest) -> bool) -> impl Future<Output = RecordedRequest> {
        self.wait_for_nth_request(1, wanted)
    }

    /// Waits for the `count`-th matching request.
    pub fn wait_for_nth_request(
        &self,
        count: usize,
        wanted: impl Fn(&RecordedRequest) -> bool,
    ) -> impl Future<Output = RecordedRequest> {
        self.shared.ledger.wait_for_nth(count, wanted)
    }

    /// Returns the event counters.
    pub fn counts(&self) -> AuthCounts {
        lock_ignoring_poison(&self.shared.book).counts
    }

    /// Returns every issued code, token and secret, so that tests can search outputs for leaks.
    pub fn secrets(&self) -> Vec<String> {
        lock_ignoring_poison(&self.shared.book).secrets.clone()
    }

    /// Changes switches at run time. Takes effect with the next request.
    pub fn change_switches(&self, turn: impl FnOnce(&mut AuthSwitches)) {
        turn(&mut lock_ignoring_poison(&self.shared.switches));
    }

    /// Returns id and secret of a client pre-registered at the first issuer.
    pub fn registered_client(&self) -> (String, String) {
        (self.shared.given.id.clone(), self.shared.given.secret.clone())
    }

    /// Returns the key of that client, for [`ClientAuthMethod::Key`].
    pub fn client_key(&self) -> &SigningKey {
        &self.shared.given.key
    }

    /// Returns a workload assertion that can be exchanged for tokens (SEP-1933).
    pub fn workload_assertion(&self) -> String {
        let mut book = lock_ignoring_poison(&self.shared.book);
        let assertion = book.secret("workload");
        book.assertions.insert(assertion.clone());
        assertion
    }

    /// Returns the token-exchange URL of the enterprise identity provider (SEP-990).
    pub fn identity_provider_url(&self) -> String {
        format!("{}/idp/token", self.shared.origins().issuer)
    }

    /// Returns a user's identity token from that provider.
    pub fn id_token(&self) -> String {
        self.shared.given.id_token.clone()
    }

    /// Makes the server reject all access tokens issued so far.
    pub fn expire_access_tokens(&self) {
        self.shared.expire();
    }

    /// Revokes all tokens issued so far.
    pub fn revoke_all(&self) {
        lock_ignoring_poison(&self.shared.book).revoke_all();
        self.shared.tokens_expired.notify_all();
    }

    /// Makes the server's metadata name the second authorization server, and rejects the tokens of the first.
    pub fn move_issuer(&self) {
        self.shared.move_issuer();
    }

    /// Requires a token with this scope for calls.
    pub fn require_scope(&self, scope: &str) {
        self.change_switches(|switches| switches.step_up = ScopeRequirement::Needs(scope.to_owned()));
    }

    /// Deletes all registered clients.
    pub fn delete_client(&self) {
        lock_ignoring_poison(&self.shared.book).clients.clear();
    }

    /// Requires a new nonce in proofs from now on.
    pub fn renew_nonce(&self) {
        *lock_ignoring_poison(&self.shared.nonce) = random::random_hex(8);
    }

    /// Holds all responses of the token endpoint, before any state change, until [`Authd::open_gate`].
    pub fn close_gate(&self) {
        self.shared.gate.set(true);
    }

    /// Releases held responses.
    pub fn open_gate(&self) {
        self.shared.gate.set(false);
    }
}

impl Drop for Authd {
    /// Releases waiting requests; the endpoints then close the connections.
    fn drop(&mut self) {
        self.open_gate();
        self.revoke_all();
    }
}
