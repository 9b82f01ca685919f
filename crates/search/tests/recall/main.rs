//! The search, held against the tools that real servers have and tasks that people have.
//!
//! The catalogs beside this are what the servers of `crates/peers` answer to `tools/list`, at the versions they name; a
//! test there holds them against the servers. Tasks are what people want done, in their words; which tools are right for one
//! was decided by the tools' names. Weights, synonyms and shapes were chosen with `tasks.txt` and `more_tasks.txt` in view:
//! 130 of 138 (0.942) and 67 of 74 (0.905) find a right tool among the first five. `held_out.txt` is by somebody who had
//! seen neither those nor the search, and was measured once all of that was settled: 72 of 78 (0.923).

#![allow(clippy::unwrap_used, reason = "a test panics on errors")]

mod catalog;

use std::collections::BTreeSet;

use catalog::{Catalog, Tool};
use wharf_search::ToolIndex;

/// How many of the tools that are found count.
const FIRST: usize = 5;
/// The share of the tasks for which one of those has to be right.
const LEAST: f64 = 0.9;

/// A task, and the tools that are right for it.
struct Task {
    words: &'static str,
    tools: Vec<&'static str>,
}

fn tasks(text: &'static str) -> Vec<Task> {
    let task = |line: &'static str| {
        let (words, tools) = line.split_once(" => ").unwrap();
        Task { words, tools: tools.split(' ').collect() }
    };
    text.lines().map(task).collect()
}

/// The tasks that were in view when weights, synonyms and shapes were chosen.
const SEEN: [&str; 2] = [include_str!("tasks.txt"), include_str!("more_tasks.txt")];
/// Those that were not.
const HELD_OUT: &str = include_str!("held_out.txt");

#[track_caller]
fn check(tasks: &[Task]) {
    let catalog = Catalog::real();
    let index = catalog.index();
    let missed: Vec<&str> =
        tasks.iter().filter(|task| !is_found(task, &catalog, &index)).map(|task| task.words).collect();
    let recall = 1.0 - missed.len() as f64 / tasks.len() as f64;
    assert!(recall >= LEAST, "{recall}: {missed:#?}");
}

fn is_found(task: &Task, catalog: &Catalog, index: &ToolIndex) -> bool {
    let hits = index.search(task.words, FIRST);
    hits.iter().any(|hit| task.tools.contains(&catalog.tools[hit.at].name.as_str()))
}

#[test]
fn known_tasks_find_their_tools() {
    SEEN.iter().for_each(|text| check(&tasks(text)));
}

#[test]
fn held_out_tasks_find_their_tools() {
    check(&tasks(HELD_OUT));
}

#[test]
fn tasks_cover_every_tool_and_name_existing_ones() {
    let catalog = Catalog::real();
    let all: Vec<Task> = SEEN.into_iter().chain([HELD_OUT]).flat_map(tasks).collect();
    assert!(all.len() >= 250 && tasks(HELD_OUT).len() >= 75, "{}", all.len());
    for tool in all.iter().flat_map(|task| &task.tools) {
        assert!(catalog.tools.iter().any(|known| known.name == *tool), "{tool}");
    }
    for tool in &catalog.tools {
        assert!(all.iter().any(|task| task.tools.contains(&tool.name.as_str())), "no task for {}", tool.name);
    }
}

#[test]
fn every_tool_ranks_first_for_every_name_spelling() {
    let catalog = Catalog::real();
    let index = catalog.index();
    for (at, Tool { server, name, .. }) in catalog.tools.iter().enumerate() {
        let dashed = name.replace('_', "-");
        let joined = name.replace(['_', '-'], "");
        for said in [
            name.clone(),
            name.to_uppercase(),
            dashed.replace('-', "_"),
            dashed.replace('-', " "),
            dashed,
            joined,
            format!("mcp__{server}__{name}"),
            format!("MCP__{server}__{name}"),
            format!("{server}.{name}"),
            format!("{server}::{name}"),
            format!("{server}/{name}"),
            format!("{name}@{server}"),
            format!("call `{server}.{name}` for me"),
        ] {
            let first = index.search(&said, 1);
            assert_eq!(first.first().map(|hit| hit.at), Some(at), "{said}");
        }
    }
}

#[test]
fn unrelated_queries_find_nothing() {
    let index = Catalog::real().index();
    for words in ["zebra crossing", "quantum chromodynamics", "", "the of and", "🦀", "\u{1b}[31m"] {
        assert_eq!(index.search(words, FIRST), [], "{words}");
    }
}

/// A server that puts every word there is into everything it says, several times over, in as many tools as count.
#[test]
fn keyword_stuffing_server_does_not_displace_other_tools() {
    let mut catalog = Catalog::real();
    let (real, words) = (catalog.tools.len(), catalog.words());
    catalog.tools.extend((0..FIRST).map(|at| stuffed(at, &words)));
    let (index, tasks) = (catalog.index(), tasks(SEEN[0]));
    let is_first = |task: &&Task| index.search(task.words, 1).iter().any(|hit| hit.at >= real);
    let first = tasks.iter().filter(is_first).count();
    let missed = tasks.iter().filter(|task| !is_found(task, &catalog, &index)).count();
    assert!(first * 50 <= tasks.len() && missed * 10 <= tasks.len(), "{first} first, {missed} missed");
}

fn stuffed(at: usize, words: &BTreeSet<String>) -> Tool {
    let stuffed = words.iter().skip(at).chain(words).map(String::as_str).collect::<Vec<_>>().join(" ");
    Tool {
        server: "best".to_owned(),
        name: format!("git_file_directory_memory_time_search_list_create_{at}"),
        title: Some(stuffed.clone()),
        text: stuffed.repeat(3),
        arguments: vec![("path".to_owned(), stuffed)],
    }
}
