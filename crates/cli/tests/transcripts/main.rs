//! The transcripts in the documentation, replayed against the built binary.
//!
//! A block that begins with ```` ```console ```` is a transcript: `$ ` begins a command, which a shell runs, `> ` continues
//! it, and the lines below are everything it prints, to stdout and stderr, up to the next command. `[exit 3]` as the last
//! line stands for an exit code that is not zero, and a line that is only `…` for any lines or none. All blocks of a page
//! follow each other in one new home (`~`) and one new project (`~/harbour`, where they run) with nothing in the
//! environment. Times, process ids and ports may be others than those in the page.
//!
//! Every block is replayed in a pipe and in a terminal of 120 columns, but one in which somebody types (`‹yes›`): that
//! needs a terminal. In a terminal words are compared, since lines may break elsewhere; of a ```` ```console words ````
//! block, whose columns move with the times in them, in a pipe as well. `UPDATE_TRANSCRIPTS=1` writes what was
//! printed into the pages.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "in a test, that is how things fail; and it is told by the environment to write instead of comparing"
)]

mod compare;
mod completing;
mod page;
mod place;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use compare::{difference, flows, kept, matches};
use page::{Likeness, Page};
use place::Place;

/// The pages whose transcripts are replayed.
const PAGES: [&str; 2] = ["README.md", "docs/guide.md"];

#[test]
fn readme_transcripts_match_the_output() {
    replay(PAGES[0]);
}

#[test]
fn guide_transcripts_match_the_output() {
    replay(PAGES[1]);
}

#[test]
fn every_command_has_a_transcript() {
    let pages = PAGES.map(|page| Page::read(&path(page)));
    // Those of blocks that nobody has to answer, so that each is seen in a pipe as well as in a terminal.
    let shown: BTreeSet<String> = pages.iter().flat_map(Page::commands).collect();
    let help = Command::new(place::WHARF).arg("--help").env_clear().output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let listed = listed_commands(&help);
    assert!(listed.len() > 10, "{help}");
    let missing: Vec<&str> = listed.into_iter().filter(|command| !shown.contains(*command)).collect();
    assert!(missing.is_empty(), "commands without a transcript: {missing:?}");
}

fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join(page)
}

/// Replays a page twice, each time in a new place: in a pipe and in a terminal.
#[track_caller]
fn replay(name: &str) {
    let file = path(name);
    let mut page = Page::read(&file);
    assert!(!page.blocks.is_empty(), "{name} has no transcripts");
    let mut differences = Vec::new();
    for pass in [Pass::Pipe, Pass::Terminal] {
        differences.extend(replay_in(pass, &mut page, name));
    }
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        std::fs::write(&file, page.text()).unwrap();
    } else {
        assert!(
            differences.is_empty(),
            "{}\n\nif that is how it should be: UPDATE_TRANSCRIPTS=1 cargo test -p wharf-cli --test transcripts",
            differences.join("\n")
        );
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pass {
    Pipe,
    Terminal,
}

/// Gives what differs, and puts what was printed into the page.
fn replay_in(pass: Pass, page: &mut Page, name: &str) -> Vec<String> {
    let place = Place::new();
    let mut differences = Vec::new();
    for block in &mut page.blocks {
        let on_terminal = pass == Pass::Terminal || block.is_answered();
        for step in &mut block.steps {
            let expected = step.expected();
            let printed = match on_terminal {
                true => place.on_terminal(&step.command, &step.typed()),
                false => place.in_pipe(&step.command),
            };
            let by_words = on_terminal || block.likeness == Likeness::Words;
            let same = if by_words { flows(&expected, &printed) } else { matches(&expected, &printed) };
            if !same {
                let head = format!("{name}:{}, {pass:?}: $ {}", step.line, step.command);
                differences.push(format!("{head}\n{}", difference(&expected, &printed)));
                step.output = kept(&step.output, &printed);
            }
        }
    }
    differences
}

/// Returns the names of the commands that the help lists, in all of its groups.
fn listed_commands(help: &str) -> Vec<&str> {
    let (_, after) = help.split_once("\nUse:\n").unwrap();
    let (groups, _) = after.split_once("\nOptions:\n").unwrap();
    groups
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}
