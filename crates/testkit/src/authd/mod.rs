//! An authorization server and the protected MCP server behind it, with a switch for everything that can go wrong
//! between them (O01–O20).
//!
//! Both run on threads of this process and end when the [`Authd`] is dropped; [`run`] puts them into a process of their
//! own. Time plays no part: tokens are refused when a test says so, or after so many uses. Every request is recorded
//! before it is answered.

mod book;
mod clients;
mod device;
mod documents;
mod exchange;
mod http;
mod key;
mod ledger;
mod page;
mod process;
mod proof;
mod protected;
mod random;
mod serving;
mod switches;
mod tokens;
mod visit;

use std::future::Future;
use std::io;
use std::sync::Arc;

pub use crate::request::Fields;
pub use book::Counts;
pub use key::Key;
pub use ledger::{Seen, Site};
pub use process::run;
pub use serving::{Rotated, Stage};
pub use switches::{
    ClientAuth, Description, Device, DeviceEnd, Document, Dpop, Iss, Metadata, Page, Refresh, Registration, Resource,
    Revocation, Rotation, StepUp, Switches,
};
pub use visit::visit;

use crate::below::Endpoint;
use ledger::locked;
use serving::{Origins, Shared};

/// The two servers, and a second authorization server that users can be moved to.
pub struct Authd {
    shared: Arc<Shared>,
    /// Dropped to end every connection.
    _endpoints: [Endpoint; 3],
}

impl Authd {
    /// Starts them on `127.0.0.1` and ports of the system's choice.
    pub fn start(switches: Switches) -> io::Result<Authd> {
        let shared = Arc::new(Shared::new(switches));
        let open = |site| {
            let shared = Arc::clone(&shared);
            Endpoint::start(move |guest| serving::attend(&shared, site, guest))
        };
        let endpoints = [open(Site::Server)?, open(Site::Issuer)?, open(Site::Second)?];
        let [server, issuer, second] = [0, 1, 2].map(|index: usize| format!("http://{}", endpoints[index].address()));
        shared.settle(Origins { server, issuer, second });
        Ok(Authd { shared, _endpoints: endpoints })
    }

    /// The address of the protected server.
    pub fn server_url(&self) -> String {
        self.shared.server_url()
    }

    /// The issuer that the server's description names now.
    pub fn issuer(&self) -> String {
        self.shared.issuer(self.shared.current_site())
    }

    /// What the server calls itself: the `resource` that tokens are asked for.
    pub fn resource(&self) -> String {
        self.shared.resource()
    }

    /// Everything that has arrived, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.ledger.seen()
    }

    /// The first request of this kind, once it has arrived.
    pub fn await_seen(&self, wanted: impl Fn(&Seen) -> bool) -> impl Future<Output = Seen> {
        self.await_count(1, wanted)
    }

    /// The request of this kind that makes so many of them, once it has arrived.
    pub fn await_count(&self, count: usize, wanted: impl Fn(&Seen) -> bool) -> impl Future<Output = Seen> {
        self.shared.ledger.nth(count, wanted)
    }

    /// How often things happened.
    pub fn counts(&self) -> Counts {
        locked(&self.shared.book).counts
    }

    /// Every code, token and secret that was given out, so that outputs can be searched for them.
    pub fn secrets(&self) -> Vec<String> {
        locked(&self.shared.book).secrets.clone()
    }

    /// Turns switches while the servers run. Takes effect with the next request.
    pub fn change(&self, turn: impl FnOnce(&mut Switches)) {
        turn(&mut locked(&self.shared.switches));
    }

    /// The id and secret of a client that was registered beforehand, at the first issuer.
    pub fn given_client(&self) -> (String, String) {
        (self.shared.given.id.clone(), self.shared.given.secret.clone())
    }

    /// The key of that client, for [`ClientAuth::Key`].
    pub fn client_key(&self) -> &Key {
        &self.shared.given.key
    }

    /// A statement about the machine this runs on, which is good for tokens (SEP-1933).
    pub fn workload_assertion(&self) -> String {
        let mut book = locked(&self.shared.book);
        let assertion = book.secret("workload");
        book.assertions.insert(assertion.clone());
        assertion
    }

    /// Where the enterprise's identity provider exchanges tokens (SEP-990).
    pub fn identity_provider_url(&self) -> String {
        format!("{}/idp/token", self.shared.origins().issuer)
    }

    /// A person's identity token from there.
    pub fn id_token(&self) -> String {
        self.shared.given.id_token.clone()
    }

    /// The server refuses every access token that was given out so far.
    pub fn expire_access_tokens(&self) {
        self.shared.expire();
    }

    /// No token that was given out so far is good for anything.
    pub fn revoke_all(&self) {
        locked(&self.shared.book).revoke_all();
        self.shared.tokens_expired.notify_all();
    }

    /// The server's description names the second authorization server, and the tokens of the first are refused.
    pub fn move_issuer(&self) {
        self.shared.move_issuer();
    }

    /// Calls need a token of this scope.
    pub fn require_scope(&self, scope: &str) {
        self.change(|switches| switches.step_up = StepUp::Needs(scope.to_owned()));
    }

    /// The authorization servers forget every client.
    pub fn delete_client(&self) {
        locked(&self.shared.book).clients.clear();
    }

    /// Proofs need another nonce from now on.
    pub fn renew_nonce(&self) {
        *locked(&self.shared.nonce) = random::hex(8);
    }

    /// Holds back every answer of the token endpoint, before anything is changed, until [`Authd::open_gate`].
    pub fn close_gate(&self) {
        self.shared.gate.set(true);
    }

    /// Lets them go.
    pub fn open_gate(&self) {
        self.shared.gate.set(false);
    }

    /// Is told when a refresh token has been used up, and again when the answer has been written. The server waits for
    /// it both times.
    pub fn on_rotation(&self, hook: impl Fn(&Rotated) + Send + Sync + 'static) {
        *locked(&self.shared.hook) = Some(Arc::new(hook));
    }
}

impl Drop for Authd {
    /// Lets everybody go who waits inside; the endpoints then end the connections.
    fn drop(&mut self) {
        self.open_gate();
        self.revoke_all();
    }
}
