//! What must come of each fault over HTTP, by case, phase and era.
//!
//! A row holds the words for connecting, for a call with an effect, for something that may be read again, and for a call
//! after that. Unlike over stdio a fault usually costs the one request it strikes: in phase `during` that is the call
//! with the effect, in phase `after` the reading.

use std::time::Duration;

use wharf_testkit::cases::FaultPhase;
use wharf_testkit::http_cases::Form;
use wharf_testkit::oracle::{self, Ledger};

use crate::cell::Cell;
use crate::exercise::Observed;

use FaultPhase::{After, Before, During, Ready};

type Row = (&'static [&'static str], FaultPhase, Side, [&'static str; 4]);

/// Which eras a row is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Any,
    Stateless,
    Handshake,
}

use Side::{Any, Handshake, Stateless};

/// Stands for the era the server was told to speak.
const ERA: &str = "era";
const FINE: [&str; 4] = [ERA, "result", "result", "result"];
/// Connecting fails, so nothing else is tried.
const fn never(word: &'static str) -> [&'static str; 4] {
    [word, "-", "-", "-"]
}
const fn call_ends(word: &'static str) -> [&'static str; 4] {
    [ERA, word, "result", "result"]
}
const fn reading_ends(word: &'static str) -> [&'static str; 4] {
    [ERA, "result", word, "result"]
}
/// The probe says nothing that a stateless server would say, and the server also speaks the other era.
const OTHER_ERA: [&str; 4] = ["handshake", "result", "result", "result"];

/// Wants to know who asks, as long as nobody says.
const LOGIN: &[&str] = &["H04", "H04-challenge", "H04-malformed", "H04-two", "H06"];
/// Refused by a status, once, and not for want of patience.
const REFUSED: &[&str] = &["H09-405", "H09-406", "H09-413", "H09-415", "H09-421"];
/// Turned away for so long that nobody would wait.
const TOO_LONG: &[&str] = &["H10-429-huge", "H10-503-huge"];
/// A server that says it is busy may have let the request through first (I2 counts 429 as proof, and not 503).
const BUSY: &[&str] = &["H10-503", "H10-503-date", "H10-503-zero", "H10-503-huge", "H10-503-garbage"];
const FAILING: &[&str] = &["H11-500-always", "H11-502-always", "H11-504-always"];
/// What came is whole and is no answer.
const NO_ANSWER: &[&str] = &[
    "H12-type",
    "H12-untyped",
    "H12-login",
    "H13-202",
    "H13-204",
    "H13-empty",
    "H14-short",
    "H15",
    "H16-id",
    "H16-array",
    "H16-notification",
    "H28-twice",
];
/// Redirects that nobody follows.
const REDIRECTED: &[&str] = &[
    "H24-301",
    "H24-302",
    "H24-303",
    "H24-301-other",
    "H24-302-other",
    "H24-303-other",
    "H24-307-other",
    "H24-308-other",
    "H24-nowhere",
    "H24-garbage",
];
/// The answer is lost on the way, and with it the knowledge of what became of the call.
const LOST: &[&str] = &[
    "H11-500",
    "H11-502",
    "H11-504",
    "H14-long",
    "H14-crlf",
    "H14-overflow",
    "H17-event",
    "H17-character",
    "H17-headers",
    "H17-reset",
    "H18",
    "H29-many",
    "H29-lengths",
    "H29-large",
    "H29-both",
    "L06-500",
    "L06-cut",
    "L07",
];
/// An answer that cannot be unpacked: that is for the caller to know, in one way or the other (H14, H28).
const PACKED_BADLY: &[&str] = &["H28-trailer", "H28-lie", "H28-deflate"];
const TOO_LARGE: &[&str] = &["H28", "endless-json", "endless-sse-event"];
/// No answer in time. Comments and a byte now and then do not prolong it.
const SILENT: &[&str] = &["H19-comments", "H27-headers", "H27-body", "H42", "H42-stream", "L05", "L09-unknown"];

const ROWS: &[Row] = &[
    (LOGIN, Before, Any, never("unauthorized")),
    (LOGIN, Ready, Any, [ERA, "unauthorized", "unauthorized", "unauthorized"]),
    (LOGIN, During, Any, [ERA, "unauthorized", "result", "unauthorized"]),
    (LOGIN, After, Any, [ERA, "result", "unauthorized", "unauthorized"]),
    (&["H06-scope"], Before, Any, never("unauthorized")),
    (&["H06-scope"], During, Any, call_ends("unauthorized")),
    (&["H06-scope"], After, Any, reading_ends("unauthorized")),
    (&["H07-method"], Before, Any, OTHER_ERA),
    (&["H07-method"], During, Any, call_ends("refused")),
    (&["H07-method"], After, Any, reading_ends("refused")),
    (&["H07-plain"], Before, Stateless, OTHER_ERA),
    (&["H07-plain"], Before, Handshake, never("status")),
    (&["H07-plain"], During, Stateless, call_ends("status")),
    // In a session it means that the session is forgotten and the call was rejected with it (F8).
    (&["H07-plain", "H07-session"], During, Handshake, call_ends("gone")),
    (&["H07-session"], Ready, Handshake, call_ends("gone")),
    (&["H07-plain"], After, Stateless, reading_ends("status")),
    (&["H08-capability", "H08-header"], Before, Any, never("refused")),
    (&["H08-capability"], During, Any, call_ends("refused")),
    // A tool's headers can be put right by listing it again; for what is read there is nothing to put right.
    (&["H08-capability", "H08-header"], After, Any, reading_ends("refused")),
    (REFUSED, Before, Stateless, OTHER_ERA),
    (REFUSED, Before, Handshake, never("status")),
    (REFUSED, During, Any, call_ends("status")),
    (REFUSED, After, Any, reading_ends("status")),
    (BUSY, During, Any, call_ends("unknown")),
    (TOO_LONG, Before, Any, never("status")),
    (TOO_LONG, During, Any, call_ends("status")),
    (TOO_LONG, After, Any, reading_ends("status")),
    (FAILING, Before, Any, never("gone")),
    (FAILING, During, Any, [ERA, "unknown", "result", "unknown"]),
    (FAILING, After, Any, [ERA, "result", "gone", "unknown"]),
    (NO_ANSWER, Before, Stateless, OTHER_ERA),
    (NO_ANSWER, Before, Handshake, never("protocol")),
    (NO_ANSWER, During, Any, call_ends("protocol")),
    (NO_ANSWER, After, Any, reading_ends("protocol")),
    (REDIRECTED, Before, Stateless, OTHER_ERA),
    (REDIRECTED, Before, Handshake, never("protocol")),
    (REDIRECTED, During, Any, call_ends("protocol")),
    (REDIRECTED, After, Any, reading_ends("protocol")),
    (&["H24-loop"], Before, Any, never("protocol")),
    (&["H24-loop"], During, Any, [ERA, "protocol", "result", "protocol"]),
    // What opens is asked for once more where not even the beginning of an answer came.
    (&["H29-many", "H29-lengths", "H29-large", "H29-both", "L06-cut"], Before, Any, FINE),
    (LOST, Before, Any, never("gone")),
    (LOST, During, Any, call_ends("unknown")),
    (LOST, After, Any, FINE),
    (&["H19-retry-huge"], During, Handshake, call_ends("timeout")),
    (&["H20-refused"], During, Any, call_ends("unknown")),
    // A stream that is there and says nothing is indistinguishable from a slow one.
    (&["H20-ignored"], During, Any, call_ends("timeout|unknown")),
    // Whether a connection is already closed when it is used again is a race, and then nobody knows.
    (&["H25", "H25-reset"], During, Any, [ERA, "result|unknown", "result", "result|unknown"]),
    (PACKED_BADLY, Before, Stateless, ["gone|handshake", "-|result", "-|result", "-|result"]),
    (PACKED_BADLY, Before, Handshake, never("gone|protocol")),
    (PACKED_BADLY, During, Any, call_ends("unknown|protocol")),
    (TOO_LARGE, Before, Stateless, OTHER_ERA),
    (TOO_LARGE, Before, Handshake, never("protocol")),
    (TOO_LARGE, During, Any, call_ends("too-large")),
    (SILENT, Before, Any, never("timeout")),
    (SILENT, During, Any, call_ends("timeout")),
    (&["32022-disjoint"], Before, Any, never("no-revision")),
    (&["L01", "L01-headers"], Before, Any, never("gone|timeout")),
    (&["L02", "L02-relative", "L02-userinfo"], Before, Any, never("bad-endpoint")),
    (&["L06-404"], Before, Any, never("status")),
    (&["L06-404"], During, Any, call_ends("status")),
];

/// Lists what is not as it must be.
pub fn check(cell: &Cell, observed: &Observed) -> Vec<String> {
    let era = if cell.era == "modern" { "stateless" } else { "handshake" };
    let expected = expected(cell, era).map(|word| if word == ERA { era } else { word });
    let found = [observed.connect, observed.first, observed.read, observed.second];
    let fits = expected.iter().zip(found).all(|(expected, found)| expected.split('|').any(|word| word == found));
    let mut problems = Vec::new();
    if !fits {
        problems.push(format!("expected {}, found {observed}", expected.join(" / ")));
    }
    problems.extend(protocol(cell, observed));
    problems.extend(waits(cell, observed));
    problems
}

/// Where no row says otherwise, everything works.
fn expected(cell: &Cell, era: &str) -> [&'static str; 4] {
    if cell.case == "H16-array" && cell.era == "2025-03-26" && cell.phase == During {
        return FINE;
    }
    let row = ROWS.iter().find(|(cases, phase, side, _)| {
        let side = match side {
            Any => true,
            Stateless => era == "stateless",
            Handshake => era == "handshake",
        };
        cases.contains(&cell.case.as_str()) && *phase == cell.phase && side
    });
    row.map_or(FINE, |(.., words)| *words)
}

/// What the server itself saw: effects never twice, nothing of the other era, withdrawals, leave taken.
fn protocol(cell: &Cell, observed: &Observed) -> Vec<String> {
    let mut problems = Vec::new();
    let ledger = cell.ledger();
    let effects = ledger.effect_count("n-1");
    if effects > 1 || (observed.first == "result" && effects != 1) || (observed.first == "gone" && effects != 0) {
        problems.push(format!("I2: the effect happened {effects} times, the call ended as {}", observed.first));
    }
    if lines(&ledger, "elsewhere").next().is_some() {
        problems.push(format!("another origin was spoken to: {:?}", lines(&ledger, "elsewhere").collect::<Vec<_>>()));
    }
    if observed.connect == "stateless" {
        let foreign = ["get ", "delete ", "post notifications/", "post reply"];
        problems.extend(foreign.iter().flat_map(|what| lines(&ledger, what)).map(|line| format!("stateless: {line}")));
    }
    let told = if observed.connect == "stateless" { "closed " } else { "cancelled " };
    if observed.first == "timeout" && !eventually(cell, |ledger| lines(ledger, told).next().is_some()) {
        problems.push(format!("the server was not told that the call was cancelled: {:?}", cell.ledger().lines));
    }
    let in_session = cell.form == Form::Http && observed.connect == "handshake" && cell.case != "ok-bare";
    if in_session && !eventually(cell, |ledger| lines(ledger, "delete session-").count() == 1) {
        problems.push(format!("the session was not left: {:?}", cell.ledger().lines));
    }
    if cell.case == "H24-loop" && lines(&ledger, "refused tools/call n-1").count() > 6 {
        problems.push("more than five redirects were followed".to_owned());
    }
    problems
}

/// What a server asks for is granted, and no more is waited where it asks for nothing it could be granted.
fn waits(cell: &Cell, observed: &Observed) -> Vec<String> {
    let Some(asked) = cell.case.strip_prefix("H10-429").or_else(|| cell.case.strip_prefix("H10-503")) else {
        return Vec::new();
    };
    let took = observed.took[match cell.phase {
        Before => 0,
        Ready | During => 1,
        After => 2,
    }];
    let second = Duration::from_secs(1);
    let waited = cell.phase != During || cell.case.starts_with("H10-429");
    let fits = match asked {
        "" if waited => took >= second,
        // Two seconds from the server's now, of which its clock may have been up to one further than the date shows.
        "-date" if waited => took >= second.mul_f64(0.9),
        _ => took < second,
    };
    if fits { Vec::new() } else { vec![format!("asked to wait {asked:?}, it took {} ms", took.as_millis())] }
}

fn lines<'a>(ledger: &'a Ledger, kind: &'a str) -> impl Iterator<Item = &'a String> {
    ledger.lines.iter().filter(move |line| line.starts_with(kind))
}

/// Whether the server writes it down, sooner or later.
pub fn eventually(cell: &Cell, holds: impl Fn(&Ledger) -> bool) -> bool {
    oracle::poll_until(Duration::from_secs(5), || holds(&cell.ledger()))
}
