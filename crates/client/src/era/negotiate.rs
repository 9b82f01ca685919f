//! Evaluation of the probe's result: the decision table of automatic negotiation, as pure functions.

use wharf_spec::UntrustedText;
use wharf_wire::{DiscoverResult, Era, JsonLimits, Revision, RpcError, View, code};

use super::supported_revisions;
use crate::engine::RawResult;
use crate::error::{CallError, ConnectCause};

/// The next step after the probe.
#[derive(Debug)]
pub(crate) enum ProbeVerdict {
    /// The server speaks this stateless revision.
    Stateless(Revision, Box<DiscoverResult>),
    /// Probe again with this revision.
    AskAgain(Revision),
    /// Start the handshake; the reason, for the trace.
    Handshake(String),
    /// Neither era is possible.
    Hopeless(ConnectCause),
}

/// Evaluates the outcome of a `server/discover` that named `asked`. Not used if the probe timed out.
pub(crate) fn evaluate_probe(
    outcome: Result<RawResult, CallError>,
    asked: Revision,
    again: bool,
    bounds: &JsonLimits,
) -> ProbeVerdict {
    match outcome {
        Ok(answer) => match DiscoverResult::from_raw(answer.result, bounds) {
            Ok(found) if found.result_type == "complete" => evaluate_discovery(found),
            // Some servers answer every request with success; only a valid discovery result counts as evidence.
            _ => ProbeVerdict::Handshake("response is not a discovery result".to_owned()),
        },
        Err(CallError::ErrorResponse(error)) => evaluate_probe_error(error, asked, again),
        Err(other) => ProbeVerdict::Handshake(other.to_string()),
    }
}

fn evaluate_discovery(found: DiscoverResult) -> ProbeVerdict {
    let versions = known_revisions(&found.supported_versions);
    match versions.iter().copied().filter(|revision| revision.era() == Era::Stateless).max() {
        Some(revision) => ProbeVerdict::Stateless(revision, Box::new(found)),
        None => ProbeVerdict::Handshake("discovery lists no supported stateless revision".to_owned()),
    }
}

fn evaluate_probe_error(error: RpcError, asked: Revision, again: bool) -> ProbeVerdict {
    let message = UntrustedText::new(error.message.as_str());
    match error.code {
        code::UNSUPPORTED_REVISION => {
            let named = supported_revisions(&error);
            let versions = known_revisions(&named);
            let stateless = versions.iter().copied().filter(|revision| revision.era() == Era::Stateless).max();
            match stateless {
                Some(revision) if !again => ProbeVerdict::AskAgain(revision),
                Some(_) => ProbeVerdict::Hopeless(ConnectCause::Protocol(format!(
                    "server lists {asked} as supported but rejects it: {}",
                    message.truncate(200)
                ))),
                None if !versions.is_empty() => ProbeVerdict::Handshake("speaks handshake revisions only".to_owned()),
                None if named.is_empty() => {
                    ProbeVerdict::Handshake("rejected the revision without naming another".to_owned())
                }
                None => ProbeVerdict::Hopeless(ConnectCause::NoCommonRevision(named)),
            }
        }
        // Only servers of the stateless era use these codes. They cannot occur on a correct probe, so they are
        // reported.
        code::MISSING_CAPABILITY | code::HEADER_MISMATCH => ProbeVerdict::Hopeless(ConnectCause::ErrorResponse(error)),
        other => ProbeVerdict::Handshake(format!("error {other}: {}", message.truncate(120))),
    }
}

fn known_revisions(versions: &[String]) -> Vec<Revision> {
    versions.iter().filter_map(|version| version.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ResultKind;
    use wharf_wire::RawJson;

    fn result(text: &str) -> Result<RawResult, CallError> {
        Ok(RawResult { result: RawJson::parse(text.to_owned()).unwrap(), kind: ResultKind::Complete })
    }

    fn refused(code: i64, data: Option<&str>) -> Result<RawResult, CallError> {
        let data = data.map(|data| RawJson::parse(data.to_owned()).unwrap());
        Err(CallError::ErrorResponse(RpcError { code, message: "no".to_owned(), data }))
    }

    fn check(outcome: Result<RawResult, CallError>, again: bool) -> &'static str {
        match evaluate_probe(outcome, Revision::LATEST_STATELESS, again, &JsonLimits::default()) {
            ProbeVerdict::Stateless(..) => "stateless",
            ProbeVerdict::AskAgain(_) => "again",
            ProbeVerdict::Handshake(_) => "handshake",
            ProbeVerdict::Hopeless(_) => "hopeless",
        }
    }

    #[test]
    fn probe_outcome_selects_the_era() {
        for (outcome, expected) in [
            (result(r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#), "stateless"),
            (result(r#"{"supportedVersions":["2031-01-01","2026-07-28"]}"#), "stateless"),
            (result(r#"{"supportedVersions":["2025-11-25"]}"#), "handshake"),
            (result(r#"{"supportedVersions":["2031-01-01"]}"#), "handshake"),
            (result(r#"{"supportedVersions":["2026-07-28"],"resultType":"mystery"}"#), "handshake"),
            (result("{}"), "handshake"),
            (result("[]"), "handshake"),
            (result(r#"{"tools":[]}"#), "handshake"),
            (refused(-32022, Some(r#"{"supported":["2026-07-28"]}"#)), "again"),
            (refused(-32022, Some(r#"{"supported":["2025-11-25","2025-06-18"]}"#)), "handshake"),
            (refused(-32022, Some(r#"{"supported":["2031-01-01"]}"#)), "hopeless"),
            (refused(-32022, Some(r#"{"supported":["2031-01-01","2025-11-25"]}"#)), "handshake"),
            (refused(-32022, None), "handshake"),
            (refused(-32021, None), "hopeless"),
            (refused(-32020, None), "hopeless"),
            (refused(-32601, None), "handshake"),
            (refused(-32602, None), "handshake"),
            (refused(-32600, None), "handshake"),
            (refused(-32000, None), "handshake"),
            (refused(7, None), "handshake"),
            (Err(CallError::Protocol("x".to_owned())), "handshake"),
        ] {
            let shown = format!("{outcome:?}");
            assert_eq!(check(outcome, false), expected, "{shown}");
        }
        assert_eq!(check(refused(-32022, Some(r#"{"supported":["2026-07-28"]}"#)), true), "hopeless");
    }
}
