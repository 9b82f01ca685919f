//! Processes that are killed at any moment of a renewal. A login is needed only where the kill fell between the
//! exchange and its being kept.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::Child;

use tempfile::TempDir;
use wharf_auth::{FileVault, Vault};

use crate::issuer::Issuer;
use crate::renewer::{key, log_in, start};
use crate::{Row, Tally};

/// Kills in one run of many.
const KILLS: usize = 200;
/// Kills when there is only one run.
const FEW: usize = 60;
const PROCESSES: usize = 4;
/// More than anybody lives to see.
const EXPIRIES: usize = 1_000_000;

struct Torture {
    folder: TempDir,
    issuer: Issuer,
    children: Vec<Child>,
    tally: Tally,
}

pub fn run(runs: usize) -> Row {
    let kills = if runs == 1 { FEW } else { KILLS * runs };
    let mut torture = Torture::begin();
    for kill in 0..kills {
        torture.kill(kill % PROCESSES);
    }
    let tally = torture.end();
    assert!(runs == 1 || tally.caught > 0, "no kill fell between an exchange and its being kept");
    let what = format!("one of {PROCESSES} processes is killed, {} times between exchange and keeping", tally.caught);
    Row { name: "o05-kills", what, times: kills, tally }
}

impl Torture {
    fn begin() -> Self {
        let (folder, issuer) = (TempDir::new().unwrap(), Issuer::start());
        let path = folder.path().join("mcp-auth.json");
        log_in(&path, issuer.address);
        let children = (0..PROCESSES).map(|_| start(&path, issuer.address, EXPIRIES)).collect();
        Self { folder, issuer, children, tally: Tally::default() }
    }

    /// Kills one of them soon after the server was asked for something, then starts another in its place.
    fn kill(&mut self, which: usize) {
        self.issuer.await_requests(1 + random() % 3);
        // Not to wait for anything, but to be killed elsewhere each time.
        (0..random() % 400_000).for_each(|_| std::hint::spin_loop());
        self.end_one(which);
        self.tally.torn += usize::from(!is_whole(&self.path()));
        self.children[which] = start(&self.path(), self.issuer.address, EXPIRIES);
    }

    fn end_one(&mut self, which: usize) {
        let mut ledger = self.issuer.ledger();
        self.children[which].kill().unwrap();
        let status = self.children[which].wait().unwrap();
        ledger.killed();
        // One that has a code has ended by itself.
        self.tally.failed += usize::from(status.code().is_some());
    }

    fn end(mut self) -> Tally {
        (0..PROCESSES).for_each(|which| self.end_one(which));
        let last = start(&self.path(), self.issuer.address, 2).wait().unwrap();
        let ledger = self.issuer.ledger();
        // The first was needed.
        let logins = ledger.logins - 1;
        Tally {
            doubles: ledger.doubles,
            logins: logins.saturating_sub(ledger.caught()),
            accounted: logins.min(ledger.caught()),
            rotations: ledger.rotations(),
            caught: ledger.caught(),
            failed: self.tally.failed + usize::from(!last.success()),
            left: fs::read_dir(self.folder.path()).unwrap().count() - 1,
            ..self.tally
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("mcp-auth.json")
    }
}

fn is_whole(path: &Path) -> bool {
    FileVault::new(path).load(&key()).is_ok_and(|kept| kept.is_some())
}

fn random() -> usize {
    usize::try_from(RandomState::new().build_hasher().finish() >> 33).unwrap()
}
