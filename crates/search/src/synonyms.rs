//! Synonyms for tool descriptions and queries.
//!
//! Contains general English and computing vocabulary, and no terms specific to one server.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use super::words::stem;

/// Groups of synonyms.
const SYNONYMS: &[&str] = &[
    "directory folder",
    "subdirectory subfolder",
    "repository repo",
    "image picture photo photograph screenshot",
    "environment env",
    "configuration config",
    "information info",
    "database db",
    "delete remove erase",
    "create make",
    "find search locate lookup",
    "edit modify alter",
    "run execute",
    "get fetch retrieve",
    "list enumerate",
    "show display",
    "difference diff",
    "several multiple",
    "small tiny little",
    "big large huge",
    "begin start",
    "sum plus total",
    "allowed permitted",
    "compress zip gzip",
    "repeat echo",
    "message msg",
    "parameter argument",
    "authenticate login",
    "telephone phone",
    "mail email",
];

/// Groups of related words.
const RELATED_WORDS: &[&str] = &[
    "list show view print browse overview",
    "read get open load content print show",
    "download fetch url web page",
    "create new add insert generate start open",
    "delete drop destroy clear forget cancel discard",
    "find look query match",
    "edit change update replace fix correct rename",
    "move rename relocate",
    "copy duplicate clone",
    "write save store put record create",
    "remember memory recall knowledge note store",
    "run launch start trigger invoke perform",
    "stop cancel end abort kill",
    "toggle switch enable disable activate start stop",
    "send post publish deliver",
    "undo revert reset restore back",
    "switch checkout select change",
    "compare difference change",
    "history log past previous last",
    "commit snapshot save record",
    "state status condition",
    "convert translate transform",
    "compress archive pack",
    "ask request question input prompt",
    "llm model sample completion",
    "connect relate relation link connection",
    "notify notification update subscribe",
    "directory subdirectory path disk place location",
    "recursive tree subdirectory nested",
    "structure tree hierarchy overview",
    "file document text",
    "media image audio video sound movie",
    "size big space byte length",
    "long slow",
    "detail information metadata property attribute",
    "permission allowed access right",
    "current now today",
    "time clock date hour zone",
    "sum add calculate number math",
    "person people user somebody",
    "fact observation remark note",
    "environment variable",
    "configuration setting option preference",
    "address url link",
    "error failure problem exception",
    "database table sql query",
    "website site page web url",
    "message text chat",
    "issue ticket bug",
    "merge pull",
    "meeting event calendar appointment",
    "move shift transfer drag",
    "replace swap substitute exchange edit overwrite",
    "write overwrite rewrite fill replace",
    "content contain inside hold sit",
    "touch modify last information",
    "listen hear audio sound voice music song recording media",
    "watch video movie film clip media",
    "branch line development fork feature",
    "stage ready prepare add include",
    "commit change revision version hash",
    "tag release version checkout branch",
    "compare against versus between difference",
    "convert mean equivalent translate",
    "midnight noon morning evening afternoon night oclock time hour",
    "work employ job company belong relation",
    "like love prefer enjoy hobby observation fact",
    "dump all everything entire whole export graph read",
    "relation tie relationship connection between",
    "jot note write add record observation detail",
    "detail fact observation attribute",
    "together sum add plus combine number",
    "lengthy long slow last duration progress operation job task",
    "progress far along percent",
    "kick start launch trigger begin run",
    "remember know store memory recall knowledge",
    "person somebody anyone colleague friend customer entity node",
    "thing object item entity concept node",
    "undo unstage reset revert rollback",
    "author who history log",
    "yesterday recent latest last history log",
    "file document letter memo report essay invoice spreadsheet",
    "desktop download drive folder directory",
    "line word phrase typo text edit",
    "json structured data object schema",
    "question ask confirm form user elicitation",
    "model llm ai sampling generate",
    "say repeat echo parrot",
];

/// Weights of a synonym and of a related word.
const SYNONYM_WEIGHT: f32 = 0.9;
const RELATED_WEIGHT: f32 = 0.5;

/// Related words of each word, with their weights.
static WEIGHTED_SYNONYMS: LazyLock<HashMap<String, BTreeMap<String, f32>>> = LazyLock::new(|| {
    let same: Vec<Vec<String>> = SYNONYMS.iter().map(|group| stems(group)).collect();
    let mut related = HashMap::new();
    for group in RELATED_WORDS {
        let near: Vec<String> = stems(group).iter().flat_map(|word| with_synonyms(word, &same)).collect();
        relate(&mut related, &near, RELATED_WEIGHT);
    }
    for group in &same {
        relate(&mut related, group, SYNONYM_WEIGHT);
    }
    related
});

fn stems(group: &str) -> Vec<String> {
    group.split(' ').map(stem).collect()
}

/// Returns a word and its synonyms.
fn with_synonyms(word: &str, same: &[Vec<String>]) -> Vec<String> {
    let group = same.iter().find(|group| group.iter().any(|other| other == word));
    group.cloned().unwrap_or_else(|| vec![word.to_owned()])
}

fn relate(related: &mut HashMap<String, BTreeMap<String, f32>>, group: &[String], worth: f32) {
    for word in group {
        let others = group.iter().filter(|other| *other != word);
        related.entry(word.clone()).or_default().extend(others.map(|other| (other.clone(), worth)));
    }
}

/// Returns the synonyms and related words of a stem, with their weights relative to the stem itself.
pub(super) fn synonyms(word: &str) -> impl Iterator<Item = (&'static str, f32)> {
    let related = WEIGHTED_SYNONYMS.get(word).into_iter().flatten();
    related.map(|(other, worth)| (other.as_str(), *worth))
}
