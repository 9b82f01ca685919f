//! One login that many processes renew at once, at an authorization server that takes every refresh token once; and the
//! same with processes that are killed in the middle of it.
//!
//! `cargo test -p wharf-auth --test torture [-- [FILTER] [--runs N] [--table FILE]]`
//!
//! The same binary is the runner, the authorization server and the processes (`renewer …`). One run is what fits into a
//! test; more are the full size: 16 processes that see 500 expiries each, and 200 kills per run.

#![allow(
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test runner exits, reads its environment and may panic"
)]

mod crowd;
mod issuer;
mod kills;
mod renewer;

use wharf_testkit::torture::{TortureRow, TortureSuite};

/// What came of one kind of torture.
pub type Row = TortureRow<Tally>;

/// What must not have happened, all but the last three.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Refresh tokens that were presented again though what came of the first time had been kept, or while the first
    /// time was still under way.
    pub doubles: usize,
    /// Logins that were needed beyond those that a kill accounts for.
    pub logins: usize,
    /// Files that could not be read.
    pub torn: usize,
    /// Processes that failed in another way.
    pub failed: usize,
    /// Files beside the file in the end.
    pub left: usize,
    /// Exchanges of a refresh token.
    pub rotations: usize,
    /// Kills between the exchange and its being kept, without which the rest proves nothing.
    pub caught: usize,
    /// Logins that such kills made necessary.
    pub accounted: usize,
}

const SUITE: TortureSuite<Tally> = TortureSuite {
    tests: &[("t47-crowd", crowd::run), ("o05-kills", kills::run)],
    title: "Logins survive being renewed",
    columns: &["exchanges", "presented twice", "logins", "of those accounted for", "torn", "failed", "left behind"],
    note: "The authorization server takes every refresh token once. Presented twice: a refresh token that was shown \
           again while the first time was under way, or after what came of it had been kept. Accounted for: logins \
           that were needed because a process was killed after the server had exchanged its refresh token and \
           before the new one was on the disk, by the server's own count. Torn: a file that could not be read \
           after a kill. Left behind: files beside the file in the end.",
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words {
        ["renewer", path, address, expiries] => {
            renewer::live(path.as_ref(), address.parse().unwrap(), expiries.parse().unwrap());
        }
        _ => std::process::exit(SUITE.run(&words)),
    }
}

impl wharf_testkit::torture::Tally for Tally {
    fn is_good(&self) -> bool {
        let Self { rotations, caught, accounted, .. } = *self;
        rotations > 0 && *self == Self { rotations, caught, accounted, ..Self::default() }
    }

    fn cells(&self) -> Vec<usize> {
        let logins = self.logins + self.accounted;
        vec![self.rotations, self.doubles, logins, self.accounted, self.torn, self.failed, self.left]
    }
}
