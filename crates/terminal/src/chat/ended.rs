//! Conversion of a run's ending into a code, a failure and an exit code.

use wharf_agent::{Ending, ModelError};

use crate::failure::{self, Failure, Kind, Outcome, chain};

/// Returns the machine-readable code of an ending.
pub fn word(ending: &Ending) -> &'static str {
    match ending {
        Ending::Done => "done",
        Ending::Cancelled => "cancelled",
        Ending::Refused => "refused",
        Ending::TooLong => "too_long",
        Ending::Looping => "looping",
        Ending::OutOfRequests => "out_of_requests",
        _ => "failed",
    }
}

/// Returns the outcome of the command.
pub fn ended(ending: &Ending) -> Outcome {
    match failure(ending) {
        None => Ok(failure::Ending::Fine),
        Some(failure) => Err(failure),
    }
}

/// Returns the failure of an ending, or `None` if the run completed.
pub fn failure(ending: &Ending) -> Option<Failure> {
    Some(match ending {
        Ending::Done => return None,
        Ending::Cancelled => Failure::of(Kind::Interrupted, "the run was cancelled"),
        Ending::Refused => Failure::other("the model did not want to answer"),
        Ending::TooLong => Failure::other("the answer is longer than the model may speak")
            .hint("wharf run --resume \"go on\", or a larger `maxTokens` of the provider"),
        Ending::Looping => Failure::other("the model made the same call over and over"),
        Ending::OutOfRequests => Failure::other("there were as many requests as the run may make")
            .hint("--max-requests N allows more; wharf run --resume \"go on\" goes on"),
        Ending::Failed(error) => of_model(error),
        _ => Failure::other("the run ended in a way that is not known here"),
    })
}

fn of_model(error: &ModelError) -> Failure {
    let kind = match error {
        ModelError::Send(_) => Kind::Unreachable,
        ModelError::Silent(_) => Kind::TimedOut,
        error if error.needs_key() => Kind::LoginNeeded,
        _ => Kind::Other,
    };
    let failure = Failure::of(kind, chain(error));
    match kind {
        Kind::Unreachable => failure.hint("docs/agent.md says where models are looked for, and how to name another"),
        Kind::Other if error.is_outgrown() => failure.hint("`contextTokens` of the provider says how much fits"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_ending_has_its_code() {
        for (ending, expected, code) in [
            (Ending::Done, "done", 0),
            (Ending::Cancelled, "cancelled", 130),
            (Ending::Refused, "refused", 1),
            (Ending::TooLong, "too_long", 1),
            (Ending::Looping, "looping", 1),
            (Ending::OutOfRequests, "out_of_requests", 1),
            (Ending::Failed(ModelError::Incomplete), "failed", 1),
            (Ending::Failed(ModelError::BadKey), "failed", 4),
            (Ending::Failed(ModelError::Silent(Duration::from_secs(1))), "failed", 7),
        ] {
            assert_eq!(word(&ending), expected);
            assert_eq!(failure(&ending).map_or(0, |failure| failure.kind.code()), code, "{expected}");
        }
    }
}
