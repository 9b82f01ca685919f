//! A command at a terminal, with its answer in a pipe.

use std::process::Command;

pub use wharf_testkit::pty::{Ended, Terminal};
use wharf_testkit::pty::{Layout, StdoutTarget};

/// Starts a command whose questions are on a terminal of 80 columns, and whose stdout is kept apart.
#[track_caller]
pub fn at_terminal(command: &Command) -> Terminal {
    Terminal::start_with(command, Layout { columns: 80, stdout: StdoutTarget::Pipe, ..Layout::default() })
}
