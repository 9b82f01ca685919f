//! Many processes that edit one file at once, each its own keys, over and over.
//!
//! Every edit says what it replaced, and that has to be what the same process wrote there before.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use wharf_config::edit::{ConfigChange, ConfigFile, set_server};
use wharf_spec::ServerName;

use crate::page::{TEXT, whole, writer};
use crate::{Row, Tally};

const PROCESSES: usize = 16;
/// Keys of each process.
const KEYS: usize = 20;
/// Edits of each process in one run of many.
const EDITS: usize = 50;
/// Edits of each process when there is only one run.
const FEW: usize = 30;
/// Locks go to whoever asks at the right moment, and sixteen ask.
const PATIENCE: Duration = Duration::from_secs(600);

pub fn run(runs: usize) -> Row {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("config.json");
    fs::write(&path, TEXT).unwrap();
    let edits = if runs == 1 { FEW } else { EDITS * runs };
    let start = |process: usize| {
        let command = &mut writer(&["add"]);
        command.arg(&path).args([process.to_string(), edits.to_string()]).spawn().unwrap()
    };
    let children: Vec<_> = (0..PROCESSES).map(start).collect();
    let failed = children.into_iter().filter_map(|mut child| (!child.wait().unwrap().success()).then_some(())).count();
    let mut tally = look(&fs::read_to_string(&path).unwrap(), edits);
    tally.lost += failed;
    tally.left = fs::read_dir(folder.path()).unwrap().count() - 1;
    let what = format!("{PROCESSES} processes, {edits} edits each");
    Row { name: "c08-crowd", what, times: PROCESSES * edits, tally }
}

fn look(text: &str, edits: usize) -> Tally {
    let Some(found) = whole(text) else { return Tally { torn: 1, ..Tally::default() } };
    // The last of each key is there.
    let last = edits.saturating_sub(KEYS)..edits;
    let keys = (0..PROCESSES).flat_map(|process| last.clone().map(move |edit| (process.to_string(), edit)));
    let lost = keys.filter(|(process, edit)| found["mcpServers"][key(process, *edit)] != entry(*edit)).count();
    Tally { lost, ..Tally::default() }
}

fn key(process: &str, edit: usize) -> String {
    format!("p{process}-{}", edit % KEYS)
}

fn entry(edit: usize) -> serde_json::Value {
    json!({"command": "x", "args": [edit.to_string()]})
}

/// The life of one of the processes.
pub fn add(path: &Path, process: &str, count: usize) {
    let file = ConfigFile::for_user(path).with_lock_timeout(PATIENCE);
    for edit in 0..count {
        let name = ServerName::new(&key(process, edit)).unwrap();
        let entry = entry(edit);
        let change = file.edit(|text| set_server(text, &name, entry.as_object().unwrap())).unwrap();
        let expected =
            edit.checked_sub(KEYS).map_or(ConfigChange::Added, |before| ConfigChange::Replaced(self::entry(before)));
        assert_eq!(change, expected);
    }
}
