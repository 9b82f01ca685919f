//! The flags of all benchmark clients.

use std::path::PathBuf;
use std::process::exit;
use std::str::FromStr;
use std::time::Duration;

/// The tokio runtime of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeFlavour {
    /// A single thread.
    Current,
    /// Two workers.
    Multi,
}

impl RuntimeFlavour {
    pub fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Multi => "multi",
        }
    }
}

/// The in-process server to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalServerKind {
    /// A server made of closures.
    Closure,
    /// A handler of the Rust SDK.
    Rmcp,
}

/// Form of the HTTP echo server's responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseForm {
    /// A JSON body.
    Json,
    /// An SSE stream of one event.
    Sse,
}

impl ResponseForm {
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Sse => "sse",
        }
    }
}

/// Command-line options.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The echo server to start.
    pub server: PathBuf,
    /// Bytes of text in each call.
    pub payload: usize,
    /// Callers, each with one call in flight.
    pub conc: usize,
    /// Duration of the measurement, after the warm-up.
    pub time: Duration,
    /// If set, the exact number of calls to make, without a warm-up.
    pub calls: Option<usize>,
    pub flavour: RuntimeFlavour,
    /// Form of the server's responses; HTTP clients only.
    pub answers: ResponseForm,
    /// File with the request to send; limit clients only.
    pub template: Option<PathBuf>,
    /// In-process server to call; this client only.
    pub local: Option<LocalServerKind>,
    /// Use HTTP instead of stdio.
    pub http: bool,
    /// Configure an account that the server never requires; this client over HTTP only.
    pub account: bool,
    /// Print the request line as a template and exit; this client only.
    pub print_template: bool,
}

const USAGE: &str = "flags: --server PATH [--payload BYTES] [--conc CALLERS] [--secs SECONDS]
       [--calls N] [--rt current|multi] [--template FILE] [--http] [--print-template]
       [--local closure|rmcp] [--answers json|sse] [--account]";

impl BenchOptions {
    /// Parses the process's arguments. On an error, prints the usage and exits with code 2.
    pub fn from_args() -> Self {
        Self::parse(std::env::args().skip(1)).unwrap_or_else(|complaint| {
            eprintln_usage(&complaint);
            exit(2)
        })
    }

    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            server: PathBuf::new(),
            payload: 64,
            conc: 1,
            time: Duration::from_secs(1),
            calls: None,
            flavour: RuntimeFlavour::Current,
            answers: ResponseForm::Json,
            template: None,
            local: None,
            http: false,
            account: false,
            print_template: false,
        };
        while let Some(flag) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{flag} needs a value"));
            match flag.as_str() {
                "--server" => options.server = value()?.into(),
                "--payload" => options.payload = number(&flag, &value()?)?,
                "--conc" => options.conc = number(&flag, &value()?)?,
                "--secs" => options.time = seconds(&flag, &value()?)?,
                "--calls" => options.calls = Some(number(&flag, &value()?)?),
                "--rt" => options.flavour = flavour(&value()?)?,
                "--answers" => options.answers = answers(&value()?)?,
                "--template" => options.template = Some(value()?.into()),
                "--local" => options.local = Some(local(&value()?)?),
                "--http" => options.http = true,
                "--account" => options.account = true,
                "--print-template" => options.print_template = true,
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        options.validate()
    }

    fn validate(self) -> Result<Self, String> {
        if self.conc == 0 || self.calls == Some(0) {
            return Err("--conc and --calls must be at least 1".into());
        }
        if !self.print_template && self.server.as_os_str().is_empty() {
            return Err("--server is missing".into());
        }
        Ok(self)
    }

    /// Returns the text of each call; it needs no escaping.
    pub fn text(&self) -> String {
        "x".repeat(self.payload)
    }
}

fn number<T: FromStr>(flag: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{flag} needs a number, not {value}"))
}

fn seconds(flag: &str, value: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number(flag, value)?).map_err(|error| format!("{flag}: {error}"))
}

fn flavour(value: &str) -> Result<RuntimeFlavour, String> {
    match value {
        "current" => Ok(RuntimeFlavour::Current),
        "multi" => Ok(RuntimeFlavour::Multi),
        other => Err(format!("--rt is current or multi, not {other}")),
    }
}

fn answers(value: &str) -> Result<ResponseForm, String> {
    match value {
        "json" => Ok(ResponseForm::Json),
        "sse" => Ok(ResponseForm::Sse),
        other => Err(format!("--answers is json or sse, not {other}")),
    }
}

fn local(value: &str) -> Result<LocalServerKind, String> {
    match value {
        "closure" => Ok(LocalServerKind::Closure),
        "rmcp" => Ok(LocalServerKind::Rmcp),
        other => Err(format!("--local is closure or rmcp, not {other}")),
    }
}

#[allow(clippy::print_stderr, reason = "the usage belongs on stderr")]
fn eprintln_usage(complaint: &str) {
    eprintln!("{complaint}\n{USAGE}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<BenchOptions, String> {
        BenchOptions::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn flags_are_parsed_into_their_fields() {
        let options =
            check("--server s --payload 9 --conc 4 --secs 0.5 --calls 7 --rt multi --template t --local rmcp");
        let options = options.unwrap();
        assert_eq!(options.text(), "xxxxxxxxx");
        assert_eq!(options.conc, 4);
        assert_eq!(options.time, Duration::from_millis(500));
        assert_eq!(options.calls, Some(7));
        assert_eq!(options.flavour, RuntimeFlavour::Multi);
        assert_eq!(options.template, Some("t".into()));
        assert_eq!(options.local, Some(LocalServerKind::Rmcp));
    }

    #[test]
    fn responses_default_to_json() {
        assert_eq!(check("--server s").unwrap().answers, ResponseForm::Json);
        assert_eq!(check("--server s --answers sse").unwrap().answers, ResponseForm::Sse);
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        for line in ["", "--server", "--server s --conc 0", "--server s --secs -1", "--server s --local x", "--what"] {
            assert!(check(line).is_err(), "{line}");
        }
        assert!(check("--server s --answers xml").is_err());
    }
}
