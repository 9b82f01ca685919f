//! What the command line asked for. Owns the spelling of phases and eras.

use std::path::PathBuf;
use std::time::Duration;

use crate::cases;

/// The one stateless revision this server speaks.
pub const MODERN: &str = "2026-07-28";
/// The handshake revisions, newest first.
pub const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

pub const USAGE: &str = "usage: faultd stdio CASE [--phase before|ready|during|after] \
[--era modern|legacy|REVISION] [--ledger FILE] [--state FILE] [--scale N] [--pages N] \
[--max BYTES] [--count N] [--bytes N] [--linger]";

/// When a fault is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// At start-up, or in place of the answer to the opening request.
    Before,
    /// Unprompted, as soon as the opening is over and before any call.
    Ready,
    /// In place of the answer to the first `tools/call`.
    During,
    /// Unprompted, after the first `tools/call` has been answered in full.
    After,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Before => "before",
            Phase::Ready => "ready",
            Phase::During => "during",
            Phase::After => "after",
        }
    }
}

/// Which protocol the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Answers `server/discover`, and `initialize` as well if that comes instead.
    Modern,
    /// The newest handshake revision, and no `server/discover`.
    Legacy,
    /// A handshake revision by name.
    Revision(&'static str),
}

impl Era {
    pub fn as_str(self) -> &'static str {
        match self {
            Era::Modern => "modern",
            Era::Legacy => "legacy",
            Era::Revision(name) => name,
        }
    }

    /// The newest handshake revision the server agrees to.
    pub fn newest_handshake(self) -> &'static str {
        match self {
            Era::Modern | Era::Legacy => HANDSHAKE[0],
            Era::Revision(name) => name,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub case: String,
    pub phase: Phase,
    pub era: Era,
    pub ledger: Option<PathBuf>,
    /// With it, the fault is committed by the first start only: the file's existence says which that was.
    pub state: Option<PathBuf>,
    scale: u32,
    pub pages: usize,
    pub max: usize,
    pub count: Option<usize>,
    pub bytes: Option<usize>,
    /// Stays for a while after stdin has ended.
    pub linger: bool,
}

impl Options {
    /// Reads everything after the program's name.
    pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
        if args.next().as_deref() != Some("stdio") {
            return Err("the first argument is `stdio`".to_owned());
        }
        let case = args.next().ok_or("no case given")?;
        let phase = cases::find(&case).map_or(Phase::During, |known| known.phases[0]);
        let mut options = Options {
            case,
            phase,
            era: Era::Modern,
            ledger: None,
            state: None,
            scale: 20,
            pages: 1,
            max: 8 << 20,
            count: None,
            bytes: None,
            linger: false,
        };
        while let Some(flag) = args.next() {
            if flag == "--linger" {
                options.linger = true;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            options.set(&flag, &value)?;
        }
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        match flag {
            "--phase" => self.phase = phase(value)?,
            "--era" => self.era = era(value)?,
            "--ledger" => self.ledger = Some(value.into()),
            "--state" => self.state = Some(value.into()),
            "--scale" => self.scale = u32::try_from(number(value)?.max(1)).map_err(|error| error.to_string())?,
            "--pages" => self.pages = number(value)?.max(1),
            "--max" => self.max = number(value)?,
            "--count" => self.count = Some(number(value)?),
            "--bytes" => self.bytes = Some(number(value)?),
            _ => return Err(format!("unknown option {flag}")),
        }
        Ok(())
    }

    /// A built-in delay, shortened by `--scale`.
    pub fn delay(&self, milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds) / self.scale
    }
}

fn phase(text: &str) -> Result<Phase, String> {
    [Phase::Before, Phase::Ready, Phase::During, Phase::After]
        .into_iter()
        .find(|phase| phase.as_str() == text)
        .ok_or_else(|| format!("unknown phase {text}"))
}

fn era(text: &str) -> Result<Era, String> {
    match text {
        "modern" | MODERN => Ok(Era::Modern),
        "legacy" => Ok(Era::Legacy),
        _ => HANDSHAKE
            .into_iter()
            .find(|known| *known == text)
            .map(Era::Revision)
            .ok_or_else(|| format!("unknown era {text}")),
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|error| format!("{text}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn everything_has_a_default() {
        let options = parse("stdio ok").unwrap();
        assert_eq!(options.era, Era::Modern);
        assert_eq!(options.delay(20_000), Duration::from_secs(1));
    }

    #[test]
    fn options_are_read() {
        let options = parse("stdio S24-plus --phase before --era 2025-03-26 --scale 1 --max 100 --linger").unwrap();
        assert_eq!(options.phase, Phase::Before);
        assert_eq!(options.era, Era::Revision("2025-03-26"));
        assert_eq!(options.delay(1000), Duration::from_secs(1));
        assert_eq!(options.max, 100);
        assert!(options.linger);
    }

    #[test]
    fn mistakes_are_named() {
        for line in ["", "http ok", "stdio", "stdio ok --phase never", "stdio ok --era 1999", "stdio ok --scale"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
