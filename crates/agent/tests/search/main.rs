//! The search, held against the tools that real servers have and tasks that people have.
//!
//! The catalogs beside this are what the servers of `crates/peers` answer to `tools/list`, at the versions they name; a
//! test there holds them against the servers. The tasks of `tasks.txt` were written before anybody had looked at what the
//! tools say of themselves; which tools are right for a task was decided by their names. Every other task, from the first
//! on, was used to choose weights and synonyms; the rest was measured once those were settled, and only then: 65 of 69
//! (0.942) in either half. Whoever chose the synonyms had written all of these tasks before, though.
//!
//! `strangers.txt` is by somebody who had seen neither the search nor the tasks: 53 of 74 (0.716). Words that no tool uses
//! find none ("shift the photos over", "what do 17 and 25 make together"); this is what words alone can do so far, and what
//! is to get better.

#![allow(clippy::unwrap_used, reason = "a test gives up on the first surprise")]

mod catalog;

use std::collections::BTreeSet;

use catalog::{Catalog, Tool};
use wharf_agent::search::Index;

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

const TASKS: &str = include_str!("tasks.txt");
const STRANGERS: &str = include_str!("strangers.txt");

/// The share of a stranger's tasks that find their tools, of which none may be lost.
const LEAST_OF_STRANGERS: f64 = 0.71;

#[track_caller]
fn check(tasks: &[Task], least: f64) {
    let catalog = Catalog::real();
    let index = catalog.index();
    let missed: Vec<&str> =
        tasks.iter().filter(|task| !is_found(task, &catalog, &index)).map(|task| task.words).collect();
    let recall = 1.0 - missed.len() as f64 / tasks.len() as f64;
    assert!(recall >= least, "{recall}: {missed:#?}");
}

/// Every other task, from this one on.
fn half(first: usize) -> Vec<Task> {
    tasks(TASKS).into_iter().skip(first).step_by(2).collect()
}

fn is_found(task: &Task, catalog: &Catalog, index: &Index) -> bool {
    let hits = index.search(task.words, FIRST);
    hits.iter().any(|hit| task.tools.contains(&catalog.tools[hit.at].name.as_str()))
}

#[test]
fn tasks_find_their_tools() {
    check(&half(0), LEAST);
}

#[test]
fn tasks_that_were_held_out_find_their_tools() {
    check(&half(1), LEAST);
}

#[test]
fn tasks_of_a_stranger_find_no_less_than_they_did() {
    check(&tasks(STRANGERS), LEAST_OF_STRANGERS);
}

#[test]
fn there_are_enough_tasks_and_their_tools_exist() {
    let (mut all, catalog) = (tasks(TASKS), Catalog::real());
    assert!(all.len() >= 120, "{}", all.len());
    all.extend(tasks(STRANGERS));
    for tool in all.iter().flat_map(|task| &task.tools) {
        assert!(catalog.tools.iter().any(|known| known.name == *tool), "{tool}");
    }
    for tool in &catalog.tools {
        assert!(all.iter().any(|task| task.tools.contains(&tool.name.as_str())), "no task for {}", tool.name);
    }
}

#[test]
fn every_tool_is_first_by_every_spelling_of_its_name() {
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
fn what_no_tool_does_finds_none() {
    let index = Catalog::real().index();
    for words in ["zebra crossing", "quantum chromodynamics", "", "the of and", "🦀", "\u{1b}[31m"] {
        assert_eq!(index.search(words, FIRST), [], "{words}");
    }
}

/// A server that puts every word there is into everything it says, several times over, in as many tools as count.
#[test]
fn a_server_that_stuffs_its_tools_with_words_takes_nothing_over() {
    let mut catalog = Catalog::real();
    let (real, words) = (catalog.tools.len(), catalog.words());
    catalog.tools.extend((0..FIRST).map(|at| stuffed(at, &words)));
    let (index, tasks) = (catalog.index(), tasks(TASKS));
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
