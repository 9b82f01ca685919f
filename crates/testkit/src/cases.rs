//! All stdio faults by name, with the applicable phases and eras.
//!
//! The expected client behaviour is defined by the test harness, not here.

pub use crate::faultd::{FaultPhase, ServerEra};

/// One fault, with the phases and eras it applies to.
#[derive(Clone, Copy, Debug)]
pub struct StdioCase {
    /// Unique name.
    pub name: &'static str,
    /// Argument of `faultd stdio`.
    pub fault: &'static str,
    /// Applicable phases; the first one is the default of `--phase`.
    pub phases: &'static [FaultPhase],
    pub eras: &'static [ServerEra],
    /// Additional arguments.
    pub args: &'static [&'static str],
    pub about: &'static str,
}

/// Returns the case of a fault, if any.
pub fn find(fault: &str) -> Option<&'static StdioCase> {
    CASES.iter().find(|case| case.fault == fault)
}

use FaultPhase::{After, Before, During, Ready};

const ALL: &[FaultPhase] = &[During, Before, After];
const IDLE: &[FaultPhase] = &[During, Before, Ready, After];
const ANSWERS: &[FaultPhase] = &[During, Before];
const CALLS: &[FaultPhase] = &[During];
const OPENING: &[FaultPhase] = &[Before];
const QUIET: &[FaultPhase] = &[After];
const BOTH: &[ServerEra] = &[ServerEra::Modern, ServerEra::Legacy];
const MODERN: &[ServerEra] = &[ServerEra::Modern];
const LEGACY: &[ServerEra] = &[ServerEra::Legacy];
const EVERY: &[ServerEra] = &[
    ServerEra::Modern,
    ServerEra::Legacy,
    ServerEra::Revision("2025-06-18"),
    ServerEra::Revision("2025-03-26"),
    ServerEra::Revision("2024-11-05"),
];

/// The catalogue of `faults.md`, 2.1, S02 to S44, with additions from practice.
pub const CASES: &[StdioCase] = &[
    row("ok", CALLS, EVERY, "a healthy server"),
    row("S02", OPENING, BOTH, "exits 0 before any byte"),
    row("S03", &[Before, After, During], BOTH, "exits 1 on the opening request, or right after answering it"),
    row("S03-list", QUIET, BOTH, "exits 1 when tools/list arrives"),
    row("S04", IDLE, BOTH, "SIGABRT"),
    row("S04-segv", IDLE, BOTH, "SIGSEGV"),
    row("S05", ANSWERS, BOTH, "exits after the response but before its newline"),
    row("S06", ANSWERS, BOTH, "exits right after a complete response"),
    row("S07", IDLE, BOTH, "closes stdout and keeps running"),
    row("S08", IDLE, BOTH, "closes stdin, and answers the requests it has read"),
    row("S08-mute", CALLS, BOTH, "closes stdin and never answers"),
    row("S09", ALL, BOTH, "stops reading stdin and sends nothing"),
    row("deaf", QUIET, BOTH, "stops reading stdin once ready, before any call"),
    row("deaf-babbling", QUIET, BOTH, "stops reading stdin once ready, and sends 100,000 malformed requests"),
    row("S10", OPENING, LEGACY, "ignores server/discover but answers initialize"),
    row("S10-mute", OPENING, BOTH, "reads everything and never answers"),
    row("S11-valid", OPENING, MODERN, "answers discover once initialize has come, then refuses initialize"),
    row("S11-both", OPENING, MODERN, "answers discover once initialize has come, then accepts initialize too"),
    row("S11-error", OPENING, LEGACY, "answers initialize, then refuses discover"),
    row("S11-slow", OPENING, BOTH, "starts reading after 40 s, then answers everything in order"),
    row("S12", CALLS, BOTH, "hangs until cancelled, then answers late"),
    row("S12-mute", CALLS, BOTH, "hangs and never answers"),
    row("S13", CALLS, BOTH, "hangs with progress every second until cancelled"),
    row("S14", ANSWERS, BOTH, "answers with one byte a second"),
    row("S15", ALL, BOTH, "half a line, then no output for an hour"),
    row("S16", &[Before, During, After], BOTH, "noise lines on stdout; --count of them"),
    row("S17", ALL, BOTH, "noise prepended to a line"),
    row("S18", ALL, BOTH, "invalid UTF-8 inside a string"),
    row("S19-bom", OPENING, BOTH, "a UTF-8 byte order mark before everything"),
    row("S19-crlf", &[Before, During], BOTH, "lines end with CRLF"),
    row("S19-cr", &[Before, During], BOTH, "lone CR as whitespace"),
    row("S19-blank", &[Before, During], BOTH, "blank lines between frames"),
    row("S19-spaces", &[Before, During], BOTH, "spaces and tabs around frames"),
    row("S20-le", &[Before, During], BOTH, "UTF-16, little-endian"),
    row("S20-be", &[Before, During], BOTH, "UTF-16, big-endian"),
    row("S21", ALL, BOTH, "a raw newline inside a string"),
    row("S22-raw", ALL, BOTH, "a raw NUL inside a string"),
    row("S22-key", ANSWERS, BOTH, "keys that differ from the real ones by an escaped NUL"),
    row("S23-100m", ANSWERS, BOTH, "a line of --bytes (100 MB), its id last"),
    row("S23-idfirst", ANSWERS, BOTH, "a line of --bytes (100 MB), its id first"),
    row("S23-endless", ALL, BOTH, "a line that never ends"),
    row("S24-minus", ANSWERS, BOTH, "a line of --max - 1 bytes"),
    row("S24-exact", ANSWERS, BOTH, "a line of --max bytes"),
    row("S24-plus", ANSWERS, BOTH, "a line of --max + 1 bytes"),
    row("S25-two", ANSWERS, BOTH, "several frames in one write"),
    row("S25-split", ANSWERS, BOTH, "one frame in 10,000 writes"),
    row("S26", ALL, BOTH, "responses with unknown ids"),
    row("S27", ALL, BOTH, "the same response twice, the second marked duplicate"),
    row("S28", CALLS, BOTH, "collects --count (1,000) responses and sends them out of order"),
    row("S29-string", ANSWERS, BOTH, "the id echoed as a string"),
    row("S29-float", ANSWERS, BOTH, "the id echoed as a float"),
    row("S29-null", ANSWERS, BOTH, "a result with a null id"),
    row("S29-missing", ANSWERS, BOTH, "a result without an id"),
    row("S29-bool", ANSWERS, BOTH, "a result whose id is true"),
    row("S29-huge", ANSWERS, BOTH, "a result whose id is 2^64"),
    row("S29-null-error", ALL, BOTH, "an error with a null id, and no answer"),
    row("S29-missing-error", ALL, BOTH, "an error without an id, and no answer"),
    row("S30-both", ANSWERS, BOTH, "result and error at once"),
    row("S30-neither", ANSWERS, BOTH, "neither result nor error"),
    row(
        "S31",
        ANSWERS,
        &[ServerEra::Modern, ServerEra::Legacy, ServerEra::Revision("2025-03-26")],
        "a batch array with the answer in it",
    ),
    row("S32", ALL, MODERN, "the server sends requests in the modern era"),
    row("S33-ping", ALL, LEGACY, "ping; the answer waits for the reply"),
    row("S33-roots", ALL, LEGACY, "roots/list; the answer waits for the reply"),
    row("S33-sampling", ALL, LEGACY, "sampling/createMessage; the answer waits for the reply"),
    row("S34", ANSWERS, MODERN, "an unknown resultType"),
    row("S34-absent", ANSWERS, MODERN, "no resultType"),
    row("S35", ANSWERS, BOTH, "unknown notifications, members and fields"),
    row("S36", ALL, BOTH, "--count (1e6) notifications, the answer among them"),
    row("S37", ALL, BOTH, "--bytes (64 MiB) on stderr without a newline, then the answer"),
    row("S38", &[Before, During, After], BOTH, "ignores SIGTERM and the end of stdin"),
    row("S39", IDLE, BOTH, "stops itself with SIGSTOP"),
    row("S40", ALL, BOTH, "exits; a grandchild in its group holds the pipes"),
    row("S40-wait", OPENING, BOTH, "a wrapper that waits for the real server, which keeps running after stdin ends"),
    row("S41", ALL, BOTH, "leaves a setsid grandchild and a double-forked daemon"),
    row("S42", ALL, BOTH, "exits; a grandchild in its own session keeps stdout open"),
    row("S43", ALL, BOTH, "exits 1 leaving --count (5) zombies"),
    row("S44", ALL, BOTH, "allocates --bytes (400 MiB)"),
    row("dies-on-probe", OPENING, LEGACY, "exits unless the first message is initialize"),
    row("success-not-discover", OPENING, LEGACY, "answers discover with an empty object"),
    row("32022-legacy", OPENING, LEGACY, "answers discover with -32022 naming handshake revisions"),
    row("32022-modern", OPENING, MODERN, "answers the first discover with -32022 naming 2026-07-28"),
    row("32022-disjoint", OPENING, MODERN, "answers everything with -32022 naming 2031-01-01"),
    row("discover-no-overlap", OPENING, LEGACY, "a valid DiscoverResult offering 2031-01-01; initialize works"),
    row("bomb-nodes", CALLS, BOTH, "a result of --bytes (6 MiB) of tiny objects"),
    row("bomb-depth", CALLS, BOTH, "a result nested --count (1e6) deep"),
    row("bad-tool", CALLS, BOTH, "tools/list with malformed tools among good ones"),
    row("fidelity", CALLS, BOTH, "a schema and a result that must survive byte for byte"),
    row("cursor-repeat", CALLS, BOTH, "every page has the same next cursor"),
    row("cursor-empty", CALLS, BOTH, "the next cursor is the empty string; two pages"),
    row("pages-endless", CALLS, BOTH, "always another page"),
    row("env", CALLS, BOTH, "tools that report the environment and the open descriptors"),
];

const fn row(
    name: &'static str,
    phases: &'static [FaultPhase],
    eras: &'static [ServerEra],
    about: &'static str,
) -> StdioCase {
    StdioCase { name, fault: name, phases, eras, args: &[], about }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faultd;

    #[test]
    fn faultd_supports_every_case() {
        for case in CASES {
            assert!(faultd::knows(case.fault), "{}", case.fault);
            assert!(!case.phases.is_empty() && !case.eras.is_empty(), "{}", case.name);
        }
        assert!(!faultd::knows("S99"));
    }

    #[test]
    fn names_are_unique_and_rows_complete() {
        let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        for number in 2..=44 {
            let row = format!("S{number:02}");
            assert!(names.iter().any(|name| name.starts_with(&row)), "{row}");
        }
    }
}
