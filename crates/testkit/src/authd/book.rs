//! What the authorization servers remember: clients, codes, tokens and how often each was presented.

use std::collections::{HashMap, HashSet};

use super::ledger::Site;
use super::random::hex;
use super::switches::{ClientAuth, Rotation};

/// How often things happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Clients registered.
    pub registrations: u64,
    /// Visits to the login page that ended in a code.
    pub authorizations: u64,
    /// Requests to refresh, granted or not.
    pub refreshes: u64,
    /// Refresh tokens that gave way to new ones.
    pub rotations: u64,
    /// Presentations of a refresh token that had been used up, or was just being presented by somebody else.
    pub reused: u64,
    /// Those of them that came while an earlier one, whose sender still waited, had not been answered yet.
    pub concurrent: u64,
    /// Those of them that came although the tokens of the earlier answer had been used: nobody was killed, it is a bug.
    pub stale: u64,
    /// Clients and refresh tokens shown to an authorization server that had not issued them.
    pub strays: u64,
    /// Tokens given back.
    pub revocations: u64,
    /// Requests that the protected server answered with 401.
    pub refusals: u64,
}

/// A client as an authorization server knows it.
#[derive(Clone)]
pub(super) struct Client {
    pub secret: Option<String>,
    pub auth: ClientAuth,
    /// None where any will do.
    pub redirect_uris: Option<Vec<String>>,
    pub expires_at: u64,
}

/// Whose a code or token is, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub site: Site,
    pub client: String,
    pub scope: String,
    /// The thumbprint of the key it is bound to.
    pub key: Option<String>,
    /// All that came from one login.
    pub family: u64,
}

#[derive(Clone)]
pub(super) struct Code {
    pub holder: Holder,
    pub redirect_uri: String,
    pub challenge: String,
}

/// A login on another device.
pub(super) struct DeviceLogin {
    pub holder: Holder,
    pub questions: u32,
}

struct Access {
    holder: Holder,
    is_live: bool,
    uses: u64,
}

struct Refresh {
    holder: Holder,
    /// How many presentations have not been answered yet.
    under_way: u32,
    /// How many of them count as concurrent.
    overlaps: u64,
    /// The tokens that took its place.
    successor: Option<(String, String)>,
    was_shown: bool,
}

/// A pair of tokens.
pub(super) struct Pair {
    pub access: String,
    pub refresh: Option<String>,
}

#[derive(Default)]
pub(super) struct Book {
    pub clients: HashMap<(Site, String), Client>,
    pub codes: HashMap<String, Code>,
    pub devices: HashMap<String, DeviceLogin>,
    /// Statements that may be exchanged for tokens.
    pub assertions: HashSet<String>,
    /// The ids of proofs that have been shown.
    pub proofs: HashSet<String>,
    pub counts: Counts,
    pub secrets: Vec<String>,
    /// Goes up whenever access tokens expire.
    pub expiries: u64,
    accesses: HashMap<String, Access>,
    refreshes: HashMap<String, Refresh>,
    families: u64,
    dead: HashSet<u64>,
}

impl Book {
    /// A new secret of a kind, remembered as one that must not turn up anywhere.
    pub fn secret(&mut self, kind: &str) -> String {
        let secret = format!("{kind}-{}", hex(20));
        self.secrets.push(secret.clone());
        secret
    }

    pub fn new_family(&mut self) -> u64 {
        self.families += 1;
        self.families
    }

    /// New tokens for a holder.
    pub fn issue(&mut self, holder: &Holder, with_refresh: bool) -> Pair {
        let access = self.secret("access");
        self.accesses.insert(access.clone(), Access { holder: holder.clone(), is_live: true, uses: 0 });
        let refresh = with_refresh.then(|| self.secret("refresh"));
        if let Some(refresh) = &refresh {
            let fresh =
                Refresh { holder: holder.clone(), under_way: 0, overlaps: 0, successor: None, was_shown: false };
            self.refreshes.insert(refresh.clone(), fresh);
        }
        Pair { access, refresh }
    }

    /// Notes that a refresh token has arrived; [`Book::answered`] ends it.
    pub fn presented(&mut self, token: &str) {
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

    /// Notes that whoever presented it is about to be answered. One who left without waiting for it, because it was
    /// killed, has presented nothing at the same time as anybody.
    pub fn answered(&mut self, token: &str, has_left: bool) {
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

    /// The holder of a refresh token, where it may be used by this client. One that was used up takes all that came
    /// from the same login with it.
    pub fn redeem(&mut self, token: &str, site: Site, client: &str) -> Option<Holder> {
        let refresh = self.refreshes.get(token)?;
        let holder = refresh.holder.clone();
        if refresh.successor.is_some() {
            self.dead.insert(holder.family);
        }
        self.counts.strays += u64::from(holder.site != site);
        let fits = holder.site == site && holder.client == client && !self.dead.contains(&holder.family);
        fits.then_some(holder)
    }

    /// The next tokens for a refresh token that was redeemed.
    pub fn renew(&mut self, token: &str, holder: &Holder, rotation: Rotation) -> Pair {
        let mut pair = self.issue(holder, rotation == Rotation::SingleUse);
        match (rotation, self.refreshes.get_mut(token), &pair.refresh) {
            (Rotation::SingleUse, Some(old), Some(refresh)) => {
                old.successor = Some((pair.access.clone(), refresh.clone()));
                self.counts.rotations += 1;
            }
            (Rotation::Repeated, ..) => pair.refresh = Some(token.to_owned()),
            _ => {}
        }
        pair
    }

    /// The holder of an access token that is still good, which is then used once more.
    pub fn admit(&mut self, token: &str, most_uses: Option<u64>) -> Option<Holder> {
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

    /// Takes a token back; a refresh token takes its whole family with it.
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

    fn holder(book: &mut Book) -> Holder {
        let family = book.new_family();
        Holder { site: Site::Issuer, client: "me".into(), scope: String::new(), key: None, family }
    }

    #[test]
    fn a_used_refresh_token_takes_its_family_with_it() {
        let mut book = Book::default();
        let holder = holder(&mut book);
        let first = book.issue(&holder, true).refresh.unwrap();
        assert!(book.redeem(&first, Site::Issuer, "me").is_some());
        let second = book.renew(&first, &holder, Rotation::SingleUse);
        assert!(book.admit(&second.access, None).is_some());
        assert!(book.redeem(&first, Site::Issuer, "me").is_none());
        assert!(book.admit(&second.access, None).is_none());
        assert!(book.redeem(&second.refresh.unwrap(), Site::Issuer, "me").is_none());
    }

    #[test]
    fn presentations_are_told_apart() {
        let mut book = Book::default();
        let holder = holder(&mut book);
        let first = book.issue(&holder, true).refresh.unwrap();
        book.presented(&first);
        book.presented(&first);
        assert_eq!((book.counts.reused, book.counts.concurrent, book.counts.stale), (1, 1, 0));
        book.answered(&first, false);
        book.answered(&first, false);
        let second = book.renew(&first, &holder, Rotation::SingleUse);
        book.presented(&first);
        assert_eq!((book.counts.reused, book.counts.concurrent, book.counts.stale), (2, 1, 0));
        book.answered(&first, false);
        book.admit(&second.access, None);
        book.presented(&first);
        assert_eq!((book.counts.reused, book.counts.concurrent, book.counts.stale), (3, 1, 1));
    }

    #[test]
    fn whoever_was_killed_presents_nothing_at_the_same_time() {
        for first_is_dead in [true, false] {
            let mut book = Book::default();
            let holder = holder(&mut book);
            let token = book.issue(&holder, true).refresh.unwrap();
            book.presented(&token);
            book.presented(&token);
            book.answered(&token, first_is_dead);
            book.answered(&token, !first_is_dead);
            assert_eq!((book.counts.reused, book.counts.concurrent), (1, 0));
        }
    }

    #[test]
    fn a_stranger_gets_nothing_and_is_counted() {
        let mut book = Book::default();
        let holder = holder(&mut book);
        let token = book.issue(&holder, true).refresh.unwrap();
        assert!(book.redeem(&token, Site::Second, "me").is_none());
        assert!(book.redeem(&token, Site::Issuer, "you").is_none());
        assert_eq!(book.counts.strays, 1);
        assert!(book.redeem(&token, Site::Issuer, "me").is_some());
    }
}
