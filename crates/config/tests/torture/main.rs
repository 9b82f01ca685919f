//! A configuration file that many processes edit at once, and whose writers are killed in the middle of it.
//!
//! `cargo test -p wharf-config --test torture [-- [FILTER] [--runs N] [--table FILE]]`
//!
//! The same binary is the runner and the writers (`writer …`). One run is what fits into a test; twenty are the full
//! size: 16 processes with 1,000 edits each, and 20,000 kills.

#![allow(
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test runner prints, exits, reads its environment and may panic"
)]

mod crowd;
mod kills;
mod page;

use wharf_testkit::torture::{TortureRow, TortureSuite};

/// What came of one kind of torture.
pub type Row = TortureRow<Tally>;

/// What must not have happened, all but the last.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Edits that are not in the file.
    pub lost: usize,
    /// Files that were not whole, or without their comments.
    pub torn: usize,
    /// Edits that had to wait for somebody who was dead.
    pub held_up: usize,
    /// Files beside the file after the next edit.
    pub left: usize,
    /// Ends in the middle of an edit, without which the rest proves nothing.
    pub caught: usize,
}

const SUITE: TortureSuite<Tally> = TortureSuite {
    tests: &[("c08-crowd", crowd::run), ("c10-kills", kills::run)],
    title: "Configuration files survive their writers",
    columns: &["lost", "torn", "held up by a lock", "left behind"],
    note: "Lost: an edit that was reported and is not in the file. Torn: a file that cannot be read, or lacks one of \
           the comments it began with. Held up: the next edit did not get the lock within two seconds. Left behind: \
           files beside the file after the next edit.",
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words {
        ["writer", "add", path, process, count] => crowd::add(path.as_ref(), process, count.parse().unwrap()),
        ["writer", "rewrite", path] => kills::rewrite(path.as_ref()),
        _ => std::process::exit(SUITE.run(&words)),
    }
}

impl wharf_testkit::torture::Tally for Tally {
    fn is_good(&self) -> bool {
        *self == Self { caught: self.caught, ..Self::default() }
    }

    fn cells(&self) -> Vec<usize> {
        vec![self.lost, self.torn, self.held_up, self.left]
    }
}
