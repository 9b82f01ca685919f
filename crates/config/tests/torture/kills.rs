//! Writers that are killed at any moment.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use wharf_config::edit::{ConfigFile, EditError, set_server, set_setting};
use wharf_spec::ServerName;
use wharf_store::{DocumentSaveError, LockError};

use crate::page::{TEXT, whole, writer};
use crate::{Row, Tally};

/// Kills in one run.
const KILLS: usize = 1000;
/// Files that are tortured at once.
const LANES: usize = 4;
/// How long the next edit may have to wait for a lock that nobody holds.
const PATIENCE: Duration = Duration::from_secs(2);

pub fn run(runs: usize) -> Row {
    let kills = KILLS * runs;
    let lanes: Vec<_> = (0..LANES).map(|_| thread::spawn(move || lane(kills / LANES))).collect();
    let tally = lanes.into_iter().map(|lane| lane.join().unwrap()).fold(Tally::default(), Tally::plus);
    assert!(tally.caught > kills / 20, "only {} ends in the middle of an edit", tally.caught);
    let what = format!("a writer is killed, {} of them in the middle of an edit", tally.caught);
    Row { name: "c10-kills", what, times: kills, tally }
}

fn lane(kills: usize) -> Tally {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("config.json");
    fs::write(&path, TEXT).unwrap();
    (0..kills).fold(Tally::default(), |tally, kill| tally.plus(kill_one(folder.path(), &path, kill)))
}

/// Kills a writer some time after it has reported some edits, then looks and makes an edit.
fn kill_one(folder: &Path, path: &Path, kill: usize) -> Tally {
    let reported = write_until_killed(path, 1 + kill % 3);
    let mut tally = Tally { caught: usize::from(beside(folder) > 0), ..Tally::default() };
    match whole(&fs::read_to_string(path).unwrap()) {
        Some(found) if !is_one_edit(&found) => tally.torn += 1,
        Some(found) => tally.lost += usize::from(round(&found) < reported),
        None => tally.torn += 1,
    }
    let next = ConfigFile::for_user(path).with_lock_timeout(PATIENCE);
    match next.edit(|text| set_setting(text, &["kills"], &json!(kill))) {
        Err(EditError::Store(DocumentSaveError::Locked(LockError::Held { .. }))) => tally.held_up += 1,
        outcome => drop(outcome.unwrap()),
    }
    tally.left += beside(folder);
    tally
}

/// How many other files there are: a lock or a draft, until the next edit.
fn beside(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count() - 1
}

/// The last round that was reported before the end.
fn write_until_killed(path: &Path, reports: usize) -> u64 {
    let mut child = writer(&["rewrite", path.to_str().unwrap()]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reported = lines.by_ref().take(reports).last().unwrap().unwrap().parse().unwrap();
    // Not to wait for anything, but to be killed elsewhere each time.
    let somewhere = RandomState::new().build_hasher().finish() % 200_000;
    (0..somewhere).for_each(|_| std::hint::spin_loop());
    child.kill().unwrap();
    child.wait().unwrap();
    reported
}

/// Whether what the writers wrote is all of one edit.
fn is_one_edit(found: &Value) -> bool {
    found["mcpServers"]["own"] == Value::Null || found["mcpServers"]["own"] == entry(round(found))
}

fn round(found: &Value) -> u64 {
    found["mcpServers"]["own"]["args"][0].as_str().and_then(|round| round.parse().ok()).unwrap_or(0)
}

fn entry(round: u64) -> Value {
    let fill = usize::try_from(round % 5 * 8_000).unwrap();
    json!({"args": [round.to_string()], "command": "x".repeat(fill)})
}

/// The life of a writer: it goes on from the last round for ever and reports each.
pub fn rewrite(path: &Path) {
    let file = ConfigFile::for_user(path).with_lock_timeout(PATIENCE);
    let name = ServerName::new("own").unwrap();
    let mut number = whole(&fs::read_to_string(path).unwrap()).map_or(0, |found| round(&found));
    loop {
        number += 1;
        let entry = entry(number);
        file.edit(|text| set_server(text, &name, entry.as_object().unwrap())).unwrap();
        println!("{number}");
    }
}

impl Tally {
    fn plus(self, other: Self) -> Self {
        Self {
            lost: self.lost + other.lost,
            torn: self.torn + other.torn,
            held_up: self.held_up + other.held_up,
            left: self.left + other.left,
            caught: self.caught + other.caught,
        }
    }
}
