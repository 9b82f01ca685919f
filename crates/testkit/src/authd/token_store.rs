//! State of the authorization servers: clients, codes, tokens and the use of each.

use std::collections::{HashMap, HashSet};

use super::random::random_hex;
use super::request_log::ListenerSite;
use super::switches::{ClientAuthMethod, RefreshRotation};

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuthCounts {
    /// Clients registered.
    pub registrations: u64,
    /// Visits to the login page that resulted in a code.
    pub authorizations: u64,
    /// Refresh requests, granted or not.
    pub refreshes: u64,
    /// Refresh tokens replaced by new ones.
    pub rotations: u64,
    /// Presentations of a refresh token that was already used, or that another request was presenting.
    pub reused: u64,
    /// Reuses during a pending presentation with a sender that was still connected.
    pub concurrent: u64,
    /// Reuses although the tokens of the earlier response were used: a client bug, not explained by a killed process.
    pub stale: u64,
    /// Clients and refresh tokens presented to an authorization server that did not issue them.
    pub strays: u64,
    /// Tokens revoked.
    pub revocations: u64,
    /// Requests the protected server answered with 401.
    pub refusals: u64,
}

/// A client registered at an authorization server.
#[derive(Clone)]
pub(super) struct RegisteredClient {
    pub secret: Option<String>,
    pub auth: ClientAuthMethod,
    /// `None` accepts any address.
    pub redirect_uris: Option<Vec<String>>,
    pub expires_at: u64,
}

/// The owner of a code or token, and its scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TokenOwner {
    pub site: ListenerSite,
    pub client: String,
    pub scope: String,
    /// Thumbprint of the key the token is bound to.
    pub key: Option<String>,
    /// Id shared by all tokens of one login.
    pub family: u64,
}

#[derive(Clone)]
pub(super) struct AuthorizationCode {
    pub holder: TokenOwner,
    pub redirect_uri: String,
    pub challenge: String,
}

/// A pending device login.
pub(super) struct DeviceLogin {
    pub holder: TokenOwner,
    pub questions: u32,
}

struct AccessToken {
    holder: TokenOwner,
    is_live: bool,
    uses: u64,
}

struct RefreshToken {
    holder: TokenOwner,
    /// Number of presentations that are not yet answered.
    under_way: u32,
    /// Number of them counted as concurrent.
    overlaps: u64,
    /// The tokens that replaced this one.
    successor: Option<(String, String)>,
    was_shown: bool,
}

/// An access token and an optional refresh token.
pub(super) struct TokenPair {
    pub access: String,
    pub refresh: Option<String>,
}

#[derive(Default)]
pub(super) struct AuthTokenStore {
    pub clients: HashMap<(ListenerSite, String), RegisteredClient>,
    pub codes: HashMap<String, AuthorizationCode>,
    pub devices: HashMap<String, DeviceLogin>,
    /// Assertions that may be exchanged for tokens.
    pub assertions: HashSet<String>,
    /// Ids of proofs already used.
    pub proofs: HashSet<String>,
    pub counts: AuthCounts,
    pub secrets: Vec<String>,
    /// Incremented when access tokens expire.
    pub expiries: u64,
    accesses: HashMap<String, AccessToken>,
    refreshes: HashMap<String, RefreshToken>,
    families: u64,
    dead: HashSet<u64>,
}

impl AuthTokenStore {
    /// Creates a secret of a kind and records it as one that must not leak.
    pub fn secret(&mut self, kind: &str) -> String {
        let secret = format!("{kind}-{}", random_hex(20));
        self.secrets.push(secret.clone());
        secret
    }

    pub fn new_family(&mut self) -> u64 {
        self.families += 1;
        self.families
    }

    /// Issues tokens for an owner.
    pub fn issue(&mut self, holder: &TokenOwner, with_refresh: bool) -> TokenPair {
        let access = self.secret("access");
        self.accesses.insert(access.clone(), AccessToken { holder: holder.clone(), is_live: true, uses: 0 });
        let refresh = with_refresh.then(|| self.secret("refresh"));
        if let Some(refresh) = &refresh {
            let fresh =
                RefreshToken { holder: holder.clone(), under_way: 0, overlaps: 0, successor: None, was_shown: false };
            self.refreshes.insert(refresh.clone(), fresh);
        }
        TokenPair { access, refresh }
    }

    /// Records the arrival of a refresh token; [`AuthTokenStore::end_presentation`] ends the presentation.
    pub fn begin_presentation(&mut self, token: &str) {
        self.counts.refreshes += 1;
        let Some(refresh) = self.refreshes.get_mut(token) else { return };
        refresh.was_shown = true;
        refresh.under_way += 1;
        refresh.overlaps += u64::from(refresh.under_way > 1);
        let (at_once, successor) = (refresh.under_way > 1, refresh.successor.clone());
        self.counts.reused += u64::from(at_once || successor.is_some());
        self.counts.concurrent += u64::from(at_once);
        self.counts.stale += u64::from(successor.is_some_and(|successor| self.was_used(&successor)));
    }

    /// Records that a presentation is about to be answered. A sender that disconnected early, because it was killed, is
    /// not counted as concurrent.
    pub fn end_presentation(&mut self, token: &str, has_left: bool) {
        let Some(refresh) = self.refreshes.get_mut(token) else { return };
        refresh.under_way -= 1;
        if has_left && refresh.overlaps > 0 {
            refresh.overlaps -= 1;
            self.counts.concurrent -= 1;
        }
        if refresh.under_way == 0 {
            refresh.overlaps = 0;
        }
    }

    /// Returns the owner of a refresh token if this client may use it. A token that was already used invalidates its
    /// whole family.
    pub fn redeem(&mut self, token: &str, site: ListenerSite, client: &str) -> Option<TokenOwner> {
        let refresh = self.refreshes.get(token)?;
        let holder = refresh.holder.clone();
        if refresh.successor.is_some() {
            self.dead.insert(holder.family);
        }
        self.counts.strays += u64::from(holder.site != site);
        let fits = holder.site == site && holder.client == client && !self.dead.contains(&holder.family);
        fits.then_some(holder)
    }

    /// Issues the next tokens for a redeemed refresh token.
    pub fn renew(&mut self, token: &str, holder: &TokenOwner, rotation: RefreshRotation) -> TokenPair {
        let mut pair = self.issue(holder, rotation == RefreshRotation::SingleUse);
        match (rotation, self.refreshes.get_mut(token), &pair.refresh) {
            (RefreshRotation::SingleUse, Some(old), Some(refresh)) => {
                old.successor = Some((pair.access.clone(), refresh.clone()));
                self.counts.rotations += 1;
            }
            (RefreshRotation::Repeated, ..) => pair.refresh = Some(token.to_owned()),
            _ => {}
        }
        pair
    }

    /// Returns the owner of a valid access token and counts the use.
    pub fn use_access_token(&mut self, token: &str, most_uses: Option<u64>) -> Option<TokenOwner> {
        let access = self.accesses.get_mut(token)?;
        let is_good = access.is_live && most_uses.is_none_or(|most| access.uses < most);
        let fits = is_good && !self.dead.contains(&access.holder.family);
        access.uses += 1;
        fits.then(|| access.holder.clone())
    }

    pub fn expire(&mut self) {
        self.expiries += 1;
        self.accesses.values_mut().for_each(|access| access.is_live = false);
    }

    pub fn revoke_all(&mut self) {
        self.expire();
        self.dead.extend(1..=self.families);
    }

    /// Revokes a token; a refresh token revokes its whole family.
    pub fn revoke(&mut self, token: &str) {
        self.counts.revocations += 1;
        if let Some(access) = self.accesses.get_mut(token) {
            access.is_live = false;
        }
        if let Some(refresh) = self.refreshes.get(token) {
            self.dead.insert(refresh.holder.family);
        }
    }

    fn was_used(&self, (access, refresh): &(String, String)) -> bool {
        self.accesses.get(access).is_some_and(|access| access.uses > 0)
            || self.refreshes.get(refresh).is_some_and(|refresh| refresh.was_shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(book: &mut AuthTokenStore) -> TokenOwner {
        let family = book.new_family();
        TokenOwner { site: ListenerSite::Issuer, client: "me".into(), scope: String::new(), key: None, family }
    }

    #[test]
    fn reuse_of_a_refresh_token_revokes_its_family() {
        let mut book = AuthTokenStore::default();
        let holder = holder(&mut book);
        let first = book.issue(&holder, true).refresh.unwrap();
        assert!(book.redeem(&first, ListenerSite::Issuer, "me").is_some());
        let second = book.renew(&first, &holder, RefreshRotation::SingleUse);
        assert!(book.use_access_token(&second.access, None).is_some());
        assert!(book.redeem(&first, ListenerSite::Issuer, "me").is_none());
        assert!(book.use_access_token(&second.access, None).is_none());
        assert!(book.redeem(&second.refresh.unwrap(), ListenerSite::Issuer, "me").is_none());
    }

    #[test]
    fn reused_concurrent_and_stale_presentations_are_counted() {
        let mut book = AuthTokenStore::default();
        let holder = holder(&mut book);
        let first = book.issue(&holder, true).refresh.unwrap();
        book.begin_presentation(&first);
        book.begin_presentation(&first);
        assert_eq!((book.counts.reused, book.counts.concurrent, book.counts.stale), (1, 1, 0));
        book.end_presentation(&first, false);
        book.end_presentation(&first, false);
        let second = book.renew(&first, &holder, RefreshRotation::SingleUse);
        book.begin_presentation(&first);
        assert_eq!((book.counts.reused, book.counts.concurrent, book.counts.stale), (2, 1, 0));
        book.end_presentation(&first, false);
        book.use_access_token(&second.access, None);
        book.begin_presentation(&first);
        assert_eq!((book.counts.reused, book.counts.concurrent, book.counts.stale), (3, 1, 1));
    }

    #[test]
    fn disconnected_clients_do_not_count_as_concurrent() {
        for first_is_dead in [true, false] {
            let mut book = AuthTokenStore::default();
            let holder = holder(&mut book);
            let token = book.issue(&holder, true).refresh.unwrap();
            book.begin_presentation(&token);
            book.begin_presentation(&token);
            book.end_presentation(&token, first_is_dead);
            book.end_presentation(&token, !first_is_dead);
            assert_eq!((book.counts.reused, book.counts.concurrent), (1, 0));
        }
    }

    #[test]
    fn foreign_clients_are_rejected_and_counted() {
        let mut book = AuthTokenStore::default();
        let holder = holder(&mut book);
        let token = book.issue(&holder, true).refresh.unwrap();
        assert!(book.redeem(&token, ListenerSite::Second, "me").is_none());
        assert!(book.redeem(&token, ListenerSite::Issuer, "you").is_none());
        assert_eq!(book.counts.strays, 1);
        assert!(book.redeem(&token, ListenerSite::Issuer, "me").is_some());
    }
}
