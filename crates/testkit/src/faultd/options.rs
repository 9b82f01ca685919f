//! Command-line options, with the names of phases and eras.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::{cases, http_cases};

/// The stateless revision this server supports.
pub const MODERN: &str = "2026-07-28";
/// The handshake revisions, newest first.
pub const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

pub const USAGE: &str = "usage: faultd stdio|http|sse CASE [--phase before|ready|during|after] \
[--era modern|legacy|REVISION] [--ledger FILE] [--state FILE] [--scale N] [--pages N] \
[--max BYTES] [--count N] [--bytes N] [--linger] \
[--answers json|sse] [--bare]";

/// Transport of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Stdio,
    /// Streamable HTTP, stateless or with sessions.
    Http,
    /// The HTTP+SSE of 2024-11-05.
    Sse,
}

impl Form {
    pub fn as_str(self) -> &'static str {
        match self {
            Form::Stdio => "stdio",
            Form::Http => "http",
            Form::Sse => "sse",
        }
    }
}

/// The time at which a fault occurs. Over HTTP there is no unprompted output: `Ready` and `After` mean the next
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPhase {
    /// At startup, or instead of the response to the opening request.
    Before,
    /// Unprompted, after the opening and before any call.
    Ready,
    /// Instead of the response to the first `tools/call`.
    During,
    /// Unprompted, after the first `tools/call` was answered completely.
    After,
}

impl FaultPhase {
    pub fn as_str(self) -> &'static str {
        match self {
            FaultPhase::Before => "before",
            FaultPhase::Ready => "ready",
            FaultPhase::During => "during",
            FaultPhase::After => "after",
        }
    }
}

/// The protocol the server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEra {
    /// Supports `server/discover`, and also `initialize`.
    Modern,
    /// The newest handshake revision, without `server/discover`.
    Legacy,
    /// A handshake revision by name.
    Revision(&'static str),
}

impl ServerEra {
    pub fn as_str(self) -> &'static str {
        match self {
            ServerEra::Modern => "modern",
            ServerEra::Legacy => "legacy",
            ServerEra::Revision(name) => name,
        }
    }

    /// Returns the newest handshake revision the server accepts.
    pub fn newest_handshake(self) -> &'static str {
        match self {
            ServerEra::Modern | ServerEra::Legacy => HANDSHAKE[0],
            ServerEra::Revision(name) => name,
        }
    }
}

#[derive(Clone, Debug)]
pub struct FaultOptions {
    pub form: Form,
    pub case: String,
    pub phase: FaultPhase,
    pub era: ServerEra,
    pub ledger: Option<PathBuf>,
    /// If set, the fault occurs only in the first start, which creates this file.
    pub state: Option<PathBuf>,
    scale: u32,
    pub pages: usize,
    pub max: usize,
    pub count: Option<usize>,
    pub bytes: Option<usize>,
    /// Keep running for a while after stdin ends.
    pub linger: bool,
    /// Over HTTP: respond with event streams instead of JSON.
    pub events: bool,
    /// Over HTTP: no sessions, no GET, no DELETE.
    pub bare: bool,
}

impl FaultOptions {
    /// Parses the arguments after the program's name.
    pub fn parse(mut args: impl Iterator<Item = String>) -> Result<FaultOptions, String> {
        let form = form(&args.next().unwrap_or_default())?;
        let case = args.next().ok_or("no case given")?;
        let phases = match form {
            Form::Stdio => cases::find(&case).map(|known| known.phases),
            Form::Http | Form::Sse => http_cases::find(form, &case).map(|known| known.phases),
        };
        let mut options = FaultOptions {
            form,
            case,
            phase: phases.map_or(FaultPhase::During, |phases| phases[0]),
            era: if form == Form::Sse { ServerEra::Revision(HANDSHAKE[3]) } else { ServerEra::Modern },
            ledger: None,
            state: None,
            scale: 20,
            pages: 1,
            max: 8 << 20,
            count: None,
            bytes: None,
            linger: false,
            events: false,
            bare: false,
        };
        while let Some(flag) = args.next() {
            match flag.as_str() {
                "--linger" => options.linger = true,
                "--bare" => options.bare = true,
                _ => options.set(&flag, &args.next().ok_or_else(|| format!("{flag} needs a value"))?)?,
            }
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
            "--answers" => self.events = events(value)?,
            "--bytes" => self.bytes = Some(number(value)?),
            _ => return Err(format!("unknown option {flag}")),
        }
        Ok(())
    }

    /// Appends a line to the ledger in one write.
    pub fn record(&self, entry: &str) {
        let Some(path) = &self.ledger else { return };
        let file = OpenOptions::new().append(true).create(true).open(path);
        let written = file.and_then(|mut file| file.write_all(format!("{entry}\n").as_bytes()));
        if let Err(error) = written {
            eprintln!("faultd: ledger: {error}");
        }
    }

    /// Reports whether the fault is still due according to `--state`. Returns true once only.
    pub fn is_first_start(&self) -> bool {
        let Some(state) = &self.state else { return true };
        OpenOptions::new().write(true).create_new(true).open(state).is_ok()
    }

    /// Returns a built-in delay, shortened by `--scale`.
    pub fn delay(&self, milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds) / self.scale
    }
}

fn form(text: &str) -> Result<Form, String> {
    [Form::Stdio, Form::Http, Form::Sse]
        .into_iter()
        .find(|form| form.as_str() == text)
        .ok_or_else(|| "the first argument is `stdio`, `http` or `sse`".to_owned())
}

fn events(text: &str) -> Result<bool, String> {
    match text {
        "json" => Ok(false),
        "sse" => Ok(true),
        _ => Err(format!("unknown response type {text}")),
    }
}

fn phase(text: &str) -> Result<FaultPhase, String> {
    [FaultPhase::Before, FaultPhase::Ready, FaultPhase::During, FaultPhase::After]
        .into_iter()
        .find(|phase| phase.as_str() == text)
        .ok_or_else(|| format!("unknown phase {text}"))
}

fn era(text: &str) -> Result<ServerEra, String> {
    match text {
        "modern" | MODERN => Ok(ServerEra::Modern),
        "legacy" => Ok(ServerEra::Legacy),
        _ => HANDSHAKE
            .into_iter()
            .find(|known| *known == text)
            .map(ServerEra::Revision)
            .ok_or_else(|| format!("unknown era {text}")),
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|error| format!("{text}: {error}"))
}
