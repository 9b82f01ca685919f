//! Many processes whose tokens end at the same time, over and over: each refresh token is presented once.

use std::fs;

use tempfile::TempDir;

use crate::issuer::Issuer;
use crate::renewer::{log_in, start};
use crate::{Row, Tally};

/// Processes, and expiries that each of them sees.
const FULL: (usize, usize) = (16, 500);
/// The same when there is only one run.
const FEW: (usize, usize) = (4, 25);

pub fn run(runs: usize) -> Row {
    let (processes, expiries) = if runs == 1 { FEW } else { FULL };
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mcp-auth.json");
    let issuer = Issuer::start();
    log_in(&path, issuer.address);
    let children: Vec<_> = (0..processes).map(|_| start(&path, issuer.address, expiries)).collect();
    let mut tally = Tally::default();
    for mut child in children {
        tally.failed += usize::from(!child.wait().unwrap().success());
    }
    let ledger = issuer.ledger();
    tally.doubles = ledger.doubles + ledger.presented_more_than_once();
    // The first was needed.
    tally.logins = ledger.logins - 1;
    tally.rotations = ledger.rotations();
    tally.left = fs::read_dir(folder.path()).unwrap().count() - 1;
    // Nobody could have renewed on everybody's behalf without each having seen it end.
    tally.failed += usize::from(tally.rotations < expiries);
    let what = format!("{processes} processes see {expiries} expiries each");
    Row { name: "t47-crowd", what, times: processes * expiries, tally }
}
