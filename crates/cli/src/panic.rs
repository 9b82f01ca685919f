//! Reports panics on one line, without a stack trace.
//!
//! A panic message may contain a secret: only literal messages of the program are shown.

use std::io::Write as _;
use std::panic::PanicHookInfo;
use std::path::Path;

/// Installs the panic hook.
pub fn install_hook() {
    std::panic::set_hook(Box::new(|panic| {
        // `eprintln!` could panic, and a panic in the hook aborts the process.
        let _ = writeln!(std::io::stderr(), "{}", panic_report(panic));
    }));
}

fn panic_report(panic: &PanicHookInfo<'_>) -> String {
    let what = panic.payload().downcast_ref::<&'static str>().map(|what| format!(": {what}")).unwrap_or_default();
    let place = panic.location().map(|place| format!(" ({}:{})", short_path(place.file()), place.line()));
    let place = place.unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "error: this is a bug in Wharf {version}{what}{place}.\n  hint: please report this line and what you did at \
         your source of Wharf, under \"issues\"; a stack trace is not needed"
    )
}

/// Returns the last components of a path, without the build machine's directories.
fn short_path(file: &str) -> String {
    let parts: Vec<_> = Path::new(file).components().rev().take(4).collect();
    parts.into_iter().rev().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Returns the hook's output for a panic of this thread.
    fn panic_output(panics: fn()) -> String {
        let shared_output = Arc::new(Mutex::new(String::new()));
        let (output, before) = (shared_output.clone(), std::panic::take_hook());
        let before = Arc::new(before);
        let (usual, here) = (before.clone(), std::thread::current().id());
        std::panic::set_hook(Box::new(move |panic| match std::thread::current().id() == here {
            true => *output.lock().unwrap() = panic_report(panic),
            false => usual(panic),
        }));
        let _ = std::panic::catch_unwind(panics);
        let _ = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| before(panic)));
        std::mem::take(&mut *shared_output.lock().unwrap())
    }

    #[test]
    fn panic_report_has_location_but_no_values() {
        let value = panic_output(|| panic!("the token is {}", std::hint::black_box("hushhush")));
        assert!(value.contains("cli/src/panic.rs:") && value.contains("report") && !value.contains("hush"), "{value}");
        let refused = panic_output(|| {
            let _: u8 = std::hint::black_box("hushhush").parse().map_err(|_| "hushhush".to_owned()).unwrap();
        });
        assert!(refused.contains("bug in Wharf") && !refused.contains("hush"), "{refused}");
        assert!(panic_output(|| panic!("a plain reason")).contains(": a plain reason ("));
        assert_eq!(short_path("/a/b/c/d/src/x.rs"), "c/d/src/x.rs");
    }
}
