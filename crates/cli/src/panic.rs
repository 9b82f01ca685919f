//! What a bug of ours looks like to the person in front of it: one line, and never a stack trace.

use std::panic::PanicHookInfo;

/// Replaces the usual report of a panic.
pub fn explain() {
    std::panic::set_hook(Box::new(|panic| eprintln!("{}", told(panic))));
}

fn told(panic: &PanicHookInfo<'_>) -> String {
    let what = panic.payload_as_str().unwrap_or("no reason given");
    let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
    format!("error: this is a bug in Wharf: {what}{place}. Please report it.")
}
