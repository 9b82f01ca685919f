//! Conversion of a run's ending into a code, a failure and an exit code.

use wharf_agent::{ModelError, RunEnding};

use crate::failure::{self, CommandResult, Failure, FailureKind, error_chain};

/// Returns the machine-readable code of an ending.
pub fn ending_code(ending: &RunEnding) -> &'static str {
    match ending {
        RunEnding::Done => "done",
        RunEnding::Cancelled => "cancelled",
        RunEnding::Refused => "refused",
        RunEnding::TooLong => "too_long",
        RunEnding::Looping => "looping",
        RunEnding::OutOfRequests => "out_of_requests",
        _ => "failed",
    }
}

/// Returns the outcome of the command.
pub fn command_outcome(ending: &RunEnding) -> CommandResult {
    match ending_failure(ending) {
        None => Ok(failure::CommandEnding::Fine),
        Some(failure) => Err(failure),
    }
}

/// Returns the failure of an ending, or `None` if the run completed.
pub fn ending_failure(ending: &RunEnding) -> Option<Failure> {
    Some(match ending {
        RunEnding::Done => return None,
        RunEnding::Cancelled => Failure::new(FailureKind::Interrupted, "the run was cancelled"),
        RunEnding::Refused => Failure::other("the model refused to answer"),
        RunEnding::TooLong => Failure::other("the response exceeded the token limit (maxTokens)")
            .with_hint("continue with `wharf run --resume \"go on\"`, or raise the provider's `maxTokens`"),
        RunEnding::Looping => Failure::other("stopped: the model kept repeating the same call"),
        RunEnding::OutOfRequests => Failure::other("stopped: the run reached its request limit")
            .with_hint("raise it with --max-requests N, or continue with `wharf run --resume \"go on\"`"),
        RunEnding::Failed(error) => model_failure(error),
        _ => Failure::other("the run ended for an unknown reason"),
    })
}

fn model_failure(error: &ModelError) -> Failure {
    let kind = match error {
        ModelError::Send(_) => FailureKind::Unreachable,
        ModelError::Silent(_) => FailureKind::TimedOut,
        error if error.needs_key() => FailureKind::LoginNeeded,
        _ => FailureKind::Other,
    };
    let failure = Failure::new(kind, error_chain(error));
    match kind {
        FailureKind::Unreachable => failure.with_hint(
            "check the provider's `baseUrl` and that its server runs; --model PROVIDER/MODEL selects another",
        ),
        FailureKind::Other if error.exceeds_context() => {
            failure.with_hint("set the provider's `contextTokens` to the model's context size")
        }
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
            (RunEnding::Done, "done", 0),
            (RunEnding::Cancelled, "cancelled", 130),
            (RunEnding::Refused, "refused", 1),
            (RunEnding::TooLong, "too_long", 1),
            (RunEnding::Looping, "looping", 1),
            (RunEnding::OutOfRequests, "out_of_requests", 1),
            (RunEnding::Failed(ModelError::Incomplete), "failed", 1),
            (RunEnding::Failed(ModelError::BadKey), "failed", 4),
            (RunEnding::Failed(ModelError::Silent(Duration::from_secs(1))), "failed", 7),
        ] {
            assert_eq!(ending_code(&ending), expected);
            assert_eq!(ending_failure(&ending).map_or(0, |failure| failure.kind.code()), code, "{expected}");
        }
    }
}
