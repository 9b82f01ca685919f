//! What must come of each fault, by case, phase and era.
//!
//! A row holds the words for connecting, for a call with an effect, and for a call after that; `|` separates what
//! is equally right, which happens only where the server's end and our next call race.

use wharf_testkit::cases::FaultPhase;

use crate::cell::Cell;
use crate::exercise::Observed;

use FaultPhase::{After, Before, During, Ready};

type Row = (&'static [&'static str], FaultPhase, Side, [&'static str; 3]);

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

/// One answer is unusable: its call alone fails.
const SPOILT: &[&str] = &["S18", "S21", "S22-raw", "S30-both", "S30-neither", "S31", "S34"];
const TOO_LARGE: &[&str] = &["S23-100m", "S23-idfirst", "S24-plus"];
/// One answer never finds its call: the call times out, the connection goes on.
const LOST: &[&str] = &[
    "S17",
    "S29-null",
    "S29-missing",
    "S29-bool",
    "S29-huge",
    "S29-null-error",
    "S29-missing-error",
    "S12",
    "S12-mute",
    "S13",
];
/// The server ends, in one way or another.
const ENDS: &[&str] = &["S03", "S04", "S04-segv", "S05", "S07", "S42", "S43", "S20-le", "S20-be", "S23-endless"];
/// Nothing more comes out of the server, which stays.
const SILENT: &[&str] = &["S09", "S14", "S15", "S39"];

const ROWS: &[Row] = &[
    (SPOILT, During, Any, [ERA, "protocol", "result"]),
    (SPOILT, Before, Stateless, ["handshake", "result", "result"]),
    (SPOILT, Before, Handshake, ["protocol", "-", "-"]),
    (TOO_LARGE, During, Any, [ERA, "too-large", "result"]),
    (TOO_LARGE, Before, Stateless, ["handshake", "result", "result"]),
    (TOO_LARGE, Before, Handshake, ["protocol", "-", "-"]),
    (LOST, During, Any, [ERA, "timeout", "result"]),
    (LOST, Before, Stateless, ["handshake", "result", "result"]),
    (LOST, Before, Handshake, ["timeout", "-", "-"]),
    (&["S06"], Before, Any, [ERA, "gone|unknown", "gone"]),
    (&["S06"], During, Any, [ERA, "result", "gone|unknown"]),
    // The wrapper has gone and what it left ends with it; how far we get before is a race.
    (&["S40"], Before, Any, ["gone|stateless|handshake", "-|gone|unknown|result", "-|gone|unknown|result"]),
    (ENDS, Before, Any, ["gone", "-", "-"]),
    (ENDS, During, Any, [ERA, "unknown", "gone"]),
    // It ends while nobody calls: whether the next call still leaves is a race, that it is not answered is none.
    (&["S03"], After, Any, [ERA, "gone|unknown", "gone"]),
    (ENDS, Ready, Any, [ERA, "gone|unknown", "gone"]),
    (&["S23-endless"], After, Any, [ERA, "result", "unknown|gone|result"]),
    (ENDS, After, Any, [ERA, "result", "gone|unknown"]),
    (&["S40"], During, Any, [ERA, "unknown", "gone"]),
    (&["S40"], After, Any, [ERA, "result", "gone|unknown"]),
    (&["S02"], Before, Any, ["gone", "-", "-"]),
    (SILENT, Before, Any, ["timeout", "-", "-"]),
    (SILENT, Ready, Any, [ERA, "timeout", "timeout"]),
    (SILENT, During, Any, [ERA, "timeout", "timeout"]),
    (SILENT, After, Any, [ERA, "result", "timeout"]),
    (&["deaf", "deaf-babbling"], After, Any, [ERA, "timeout", "timeout"]),
    (&["S08"], Before, Any, [ERA, "gone", "gone"]),
    // Whether the call arrives before the pipe is closed is a race, and a pipe that is closed under bytes already in it
    // tells nobody: that call can only time out.
    (&["S08"], Ready, Any, [ERA, "gone|timeout|result", "gone"]),
    (&["S08"], During, Any, [ERA, "result", "gone"]),
    (&["S08"], After, Any, [ERA, "result", "gone|timeout"]),
    (&["S08-mute"], During, Any, [ERA, "timeout", "gone"]),
    (&["S10-mute"], Before, Any, ["timeout", "-", "-"]),
    (&["S38"], During, Any, [ERA, "timeout", "result"]),
    (&["S11-both"], Before, Any, ["handshake", "result", "result"]),
    // So much ahead of the answer may take longer than a probe waits, at a twentieth of its time.
    (&["S36", "S37"], Before, Stateless, ["stateless|handshake", "result", "result"]),
    (&["32022-disjoint"], Before, Any, ["no-revision", "-", "-"]),
    (&["bomb-nodes", "bomb-depth"], During, Any, [ERA, "too-complex", "result"]),
];

/// Lists what is not as it must be.
pub fn check(cell: &Cell, observed: &Observed) -> Vec<String> {
    let era = if cell.era == "modern" { "stateless" } else { "handshake" };
    let expected = expected(cell, era).map(|word| if word == ERA { era } else { word });
    let found = [observed.connect, observed.first, observed.second];
    let fits = expected.iter().zip(found).all(|(expected, found)| expected.split('|').any(|word| word == found));
    let mut problems = Vec::new();
    if !fits {
        problems.push(format!("expected {}, found {observed}", expected.join(" / ")));
    }
    problems.extend(ledger_problems(cell, observed));
    problems
}

/// Where no row says otherwise, everything works.
fn expected(cell: &Cell, era: &str) -> [&'static str; 3] {
    if cell.case == "S31" && cell.era == "2025-03-26" && cell.phase == During {
        return [ERA, "result", "result"];
    }
    let row = ROWS.iter().find(|(cases, phase, side, _)| {
        let side = match side {
            Any => true,
            Stateless => era == "stateless",
            Handshake => era == "handshake",
        };
        cases.contains(&cell.case.as_str()) && *phase == cell.phase && side
    });
    row.map_or([ERA, "result", "result"], |(.., words)| *words)
}

/// What the server itself saw: effects never twice, timed-out calls withdrawn, its requests answered.
fn ledger_problems(cell: &Cell, observed: &Observed) -> Vec<String> {
    let ledger = cell.ledger();
    let mut problems = Vec::new();
    let effects = ledger.effect_count("n-1");
    if effects > 1 || (observed.first == "result" && effects != 1) {
        problems.push(format!("I2: the effect happened {effects} times, the call ended as {}", observed.first));
    }
    if matches!(cell.case.as_str(), "S12" | "S12-mute" | "S13")
        && !ledger.lines.iter().any(|line| line.starts_with("cancelled "))
    {
        problems.push("the server was not told that the call was cancelled".to_owned());
    }
    let (asked, answer) = match cell.case.as_str() {
        "S33-ping" => ("ping", "result"),
        "S33-roots" => ("roots/list", "-32601"),
        "S33-sampling" => ("sampling/createMessage", "-32601"),
        _ => return problems,
    };
    if ledger.replies(asked) != [answer] {
        problems.push(format!("the server's {asked} got {:?} instead of {answer}", ledger.replies(asked)));
    }
    problems
}
