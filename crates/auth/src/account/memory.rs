//! What an account knows without looking anything up. Decisions only: no clock, no file, no network.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::carrying::can_be_shown;
use crate::challenge::Challenge;
use crate::dpop::DpopKey;
use crate::error::LoginError;
use crate::scope;
use crate::token::Tokens;
use crate::vault::Kept;

/// Tokens are renewed this long before they end, in milliseconds; those that do not last as long, when half of it is over.
const AHEAD: u64 = 30_000;
/// How many tokens in a row are refused right after they were got before no more are.
const MOST_STRIKES: u32 = 2;
/// How many nonces in a row are taken without the server being content.
const MOST_NONCES: u32 = 3;
/// How often a person is asked for more within the time below.
const MOST_STEP_UPS: usize = 2;
const STEP_UP_WINDOW: Duration = Duration::from_secs(600);
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What an account knows.
#[derive(Default)]
pub(super) struct Memory {
    knowledge: Knowledge,
    /// Counts what is carried.
    serial: u64,
    /// Counts logouts: whatever was begun before one is not kept.
    pub(super) epoch: u64,
    /// Whether the server has taken what is carried now.
    is_proven: bool,
    strikes: u32,
    /// What was counted last.
    struck: Option<u64>,
    nonces: u32,
    pause: Option<Pause>,
    step_ups: VecDeque<Instant>,
    /// What the next login has to cover besides, because the server wanted it.
    wanted: Option<String>,
    /// What the server said the last time it wanted a login.
    pub(super) challenge: Option<Challenge>,
}

#[derive(Default)]
enum Knowledge {
    #[default]
    Unread,
    Nothing,
    Held(Arc<Held>),
}

/// A login in memory.
pub(super) struct Held {
    pub(super) kept: Kept,
    pub(super) serial: u64,
    /// The key that the tokens are bound to.
    pub(super) key: Option<Arc<DpopKey>>,
    source: Source,
}

/// Where a login in memory comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// It was kept, by us or another process.
    Vault,
    /// The authorization server, just now.
    Issuer,
    /// As before, but it could not be kept: the vault still has these, which are spent.
    Unkept(Option<Tokens>),
}

/// Renewing failed, and is not tried again before its time.
struct Pause {
    length: Duration,
    until: Instant,
    error: LoginError,
}

/// What a request is to carry.
pub(super) enum Look {
    Unread,
    Nothing,
    Live(Arc<Held>),
    /// It ends soon or has ended, and can be renewed.
    Due(Arc<Held>),
}

/// What a renewal starts from, now that nobody else renews.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Another process has done it.
    Adopt(Kept),
    /// This is to be renewed.
    Renew(Kept),
    /// There is nothing left to renew.
    Nothing,
}

impl Memory {
    pub(super) fn look(&self, now: u64, is_unattended: bool) -> Look {
        match &self.knowledge {
            Knowledge::Unread => Look::Unread,
            Knowledge::Nothing => Look::Nothing,
            Knowledge::Held(held) => match &held.kept.tokens {
                None => Look::Nothing,
                Some(tokens) if is_due(&held.kept, now) && (is_unattended || tokens.refresh.is_some()) => {
                    Look::Due(held.clone())
                }
                Some(_) if !can_be_shown(held) => Look::Nothing,
                Some(_) => Look::Live(held.clone()),
            },
        }
    }

    pub(super) fn held(&self) -> Option<Arc<Held>> {
        if let Knowledge::Held(held) = &self.knowledge { Some(held.clone()) } else { None }
    }

    /// The serial of what is carried, where anything is.
    pub(super) fn carried(&self) -> Option<u64> {
        self.held().filter(|held| can_be_shown(held)).map(|held| held.serial)
    }

    pub(super) fn is_unread(&self) -> bool {
        matches!(self.knowledge, Knowledge::Unread)
    }

    /// Whether a refusal is of something that is not carried any more.
    pub(super) fn is_stale(&self, serial: Option<u64>) -> bool {
        self.carried().is_some_and(|current| serial != Some(current))
    }

    pub(super) fn hold(&mut self, kept: Kept, source: Source) {
        self.serial += 1;
        self.is_proven = false;
        let key = kept.dpop_key.as_ref().and_then(|key| DpopKey::load(key).ok()).map(Arc::new);
        self.knowledge = Knowledge::Held(Arc::new(Held { kept, serial: self.serial, key, source }));
    }

    /// Notes that nothing is kept.
    pub(super) fn hold_nothing(&mut self) {
        self.knowledge = Knowledge::Nothing;
    }

    /// Forgets everything: a logout. Says which.
    pub(super) fn forget(&mut self) -> u64 {
        self.epoch += 1;
        self.strikes = 0;
        self.pause = None;
        (self.wanted, self.challenge) = (None, None);
        self.hold_nothing();
        self.epoch
    }

    /// Notes what the next login has to cover, besides what was noted before.
    pub(super) fn want(&mut self, more: Option<&str>) {
        self.wanted = scope::union(self.wanted.as_deref(), more);
    }

    /// What was asked for before and has been wanted since; nothing where nothing is wanted.
    pub(super) fn wanted(&self) -> Option<String> {
        let wanted = self.wanted.as_deref()?;
        scope::union(self.asked().as_deref(), Some(wanted))
    }

    /// What was asked for, or granted where that is not known.
    pub(super) fn asked(&self) -> Option<String> {
        let Kept { asked, tokens, .. } = &self.held()?.kept;
        asked.clone().or_else(|| tokens.as_ref()?.scope.clone())
    }

    /// Somebody has logged in for this: what it covers is not wanted any more.
    pub(super) fn agree(&mut self, asked: Option<&str>) {
        let is_covered = |word: &str| asked.is_some_and(|asked| asked.split_whitespace().any(|other| other == word));
        let wanted = self.wanted.take().unwrap_or_default();
        let left: Vec<_> = wanted.split_whitespace().filter(|word| !is_covered(word)).collect();
        self.wanted = (!left.is_empty()).then(|| left.join(" "));
        self.challenge = None;
    }

    /// Takes over what another process has kept, if it is something else, and what was held is still held. What ends soon
    /// is of use only where it can be renewed, and nothing that is held can.
    pub(super) fn adopt(&mut self, over: Option<u64>, stored: Option<&Kept>, now: u64) -> bool {
        let holds_renewable = self.held().is_some_and(|held| is_renewable(&held.kept));
        let is_of_use = |stored: &&Kept| {
            stored.tokens.is_some() && (!is_due(stored, now) || (is_renewable(stored) && !holds_renewable))
        };
        let Some(stored) = stored.filter(is_of_use) else { return false };
        let is_news = match self.held() {
            held if held.as_ref().map(|held| held.serial) != over => false,
            Some(held) => held.kept.tokens != stored.tokens && !held.is_older(stored),
            None => true,
        };
        if is_news {
            self.agree(stored.asked.as_deref());
            self.hold(stored.clone(), Source::Vault);
            self.pause = None;
        }
        is_news
    }

    /// The server took what it was shown.
    pub(super) fn prove(&mut self) {
        (self.is_proven, self.strikes, self.nonces) = (true, 0, 0);
    }

    /// Counts that what is carried was refused, once; says how many tokens were refused in a row right after they were got.
    pub(super) fn strike(&mut self) -> u32 {
        let is_fresh = |held: &Arc<Held>| held.source != Source::Vault && held.kept.tokens.is_some();
        let fresh = self.held().filter(is_fresh).map(|held| held.serial);
        if fresh.is_some() && fresh != self.struck && !self.is_proven {
            self.strikes += 1;
            self.struck = fresh;
        }
        self.strikes
    }

    /// Forgives what was refused before: a person has logged in since.
    pub(super) fn forgive(&mut self) {
        (self.strikes, self.pause) = (0, None);
    }

    /// Carries the same with another nonce, if the server does not ask for one again and again.
    pub(super) fn take_nonce(&mut self) -> bool {
        let Knowledge::Held(held) = &self.knowledge else { return false };
        if held.key.is_none() || self.nonces >= MOST_NONCES {
            return false;
        }
        self.nonces += 1;
        self.serial += 1;
        self.struck = self.struck.map(|struck| if struck == held.serial { self.serial } else { struck });
        let Held { kept, key, source, .. } = &**held;
        let (kept, key, source) = (kept.clone(), key.clone(), source.clone());
        self.knowledge = Knowledge::Held(Arc::new(Held { kept, serial: self.serial, key, source }));
        true
    }

    /// Counts that a person is asked for more; refuses when that was often enough lately, and says how often.
    pub(super) fn step_up(&mut self, now: Instant) -> Result<(), usize> {
        self.step_ups.retain(|asked| now.duration_since(*asked) < STEP_UP_WINDOW);
        if self.step_ups.len() >= MOST_STEP_UPS {
            return Err(self.step_ups.len());
        }
        self.step_ups.push_back(now);
        Ok(())
    }

    /// Why renewing is not tried now.
    pub(super) fn paused(&self, now: Instant) -> Option<LoginError> {
        self.pause.as_ref().filter(|pause| now < pause.until).map(|pause| pause.error.clone())
    }

    /// Renewing has failed: the next time is after a while, and that doubles.
    pub(super) fn pause(&mut self, error: LoginError, now: Instant) {
        let doubled = self.pause.as_ref().map(|pause| (pause.length * 2).min(LONGEST_PAUSE));
        let length = doubled.unwrap_or(SHORTEST_PAUSE);
        self.pause = Some(Pause { length, until: now + length, error });
    }

    pub(super) fn resume(&mut self) {
        self.pause = None;
    }
}

impl Held {
    /// Where a renewal starts, given what is in the vault while nobody else may change it.
    pub(super) fn start(&self, stored: Option<Kept>, now: u64) -> Start {
        match stored {
            Some(stored) if self.is_older(&stored) => Start::Renew(self.kept.clone()),
            Some(stored) => match &stored.tokens {
                None => Start::Nothing,
                tokens if *tokens == self.kept.tokens => Start::Renew(stored),
                Some(_) if !is_due(&stored, now) => Start::Adopt(stored),
                Some(_) => Start::Renew(stored),
            },
            None if self.is_only_here() => Start::Renew(self.kept.clone()),
            None => Start::Nothing,
        }
    }

    /// Whether there is nothing in the vault because this could not be written to it.
    pub(super) fn is_only_here(&self) -> bool {
        self.source == Source::Unkept(None)
    }

    /// Whether what is in the vault is only what this could not be written over.
    pub(super) fn is_older(&self, stored: &Kept) -> bool {
        matches!(&self.source, Source::Unkept(spent) if *spent == stored.tokens)
    }
}

/// Whether tokens end soon or have ended. Those of which nobody knows are good until the server says otherwise (O17).
fn is_due(kept: &Kept, now: u64) -> bool {
    let end = kept.tokens.as_ref().and_then(|tokens| tokens.expires_at);
    end.is_some_and(|end| {
        let ahead = (end.saturating_sub(kept.renewed_at) / 2).min(AHEAD);
        now.saturating_add(ahead) >= end
    })
}

fn is_renewable(kept: &Kept) -> bool {
    kept.tokens.as_ref().is_some_and(|tokens| tokens.refresh.is_some())
}

/// Whether tokens have ended.
pub(super) fn has_ended(tokens: &Tokens, now: u64) -> bool {
    tokens.expires_at.is_some_and(|end| now >= end)
}

/// Whether the server is never going to be content.
pub(super) fn is_hopeless(strikes: u32) -> bool {
    strikes >= MOST_STRIKES
}
