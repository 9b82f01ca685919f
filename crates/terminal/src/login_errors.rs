//! Errors of logins, with the next step.

use wharf_auth::{LoginError, TokenError, VaultError, VisitError};

use crate::failure::{Failure, FailureKind};

/// Converts a login error to a failure with a hint.
pub fn explained(error: &LoginError) -> Failure {
    let (kind, hint) = match error {
        LoginError::Denied(_) | LoginError::Visit(VisitError::Declined) => {
            (FailureKind::Denied, "run it again when you have changed your mind; --no-browser shows the address only")
        }
        LoginError::Visit(VisitError::TooLate(_)) => {
            (FailureKind::TimedOut, "run it again; --timeout SECONDS waits longer, --no-browser takes a pasted address")
        }
        LoginError::Visit(_) => {
            (FailureKind::Other, "--no-browser shows the address and takes the one it leads back to")
        }
        LoginError::Discovery(_) => (
            FailureKind::Unreachable,
            "does it want a login at all? `headers.Authorization` takes a token, `oauth` says where to log in",
        ),
        LoginError::Registration(_) => {
            (FailureKind::Unreachable, "register a client there by hand, and give its `client_id` under `oauth`")
        }
        LoginError::WrongResource { .. } | LoginError::Unsafe(_) | LoginError::Mismatch(_) => {
            (FailureKind::OffProtocol, "nothing was shown to it; its owner has to mend that")
        }
        LoginError::Needed { .. } | LoginError::StepUps { .. } => {
            (FailureKind::LoginNeeded, "log in by hand: wharf auth")
        }
        LoginError::Unreachable(_) => (FailureKind::Unreachable, "is the network there? try again in a while"),
        LoginError::Proof(_) => {
            (FailureKind::Usage, "mend `oauth` in its entry: what the client proves itself with stands there")
        }
        LoginError::Token(error) if error.is_final() => (FailureKind::LoginNeeded, "run it again"),
        LoginError::Token(TokenError::Refused { code, .. }) if lasting(code).is_some() => {
            (FailureKind::Denied, lasting(code).unwrap_or_default())
        }
        LoginError::Vault(error) => return kept_badly(error),
        _ => (FailureKind::Unreachable, "try again in a while; --debug shows more"),
    };
    Failure::of(kind, error).hint(hint)
}

/// Returns a hint for OAuth error codes that a retry does not resolve.
pub fn lasting(code: &str) -> Option<&'static str> {
    match code {
        "invalid_client" | "unauthorized_client" => {
            Some("it does not take this client: look at `client_id` and its secret under `oauth` in its entry")
        }
        "invalid_scope" => Some("it does not grant what was asked for: look at `scope` under `oauth` in its entry"),
        "invalid_target" => {
            Some("it gives no tokens for this server: look at `scope` and `resource` under `oauth` in its entry")
        }
        _ => None,
    }
}

/// Converts a vault error to a failure with a hint.
pub fn kept_badly(error: &VaultError) -> Failure {
    let failure = Failure::other(error);
    match error.fix() {
        Some(fix) => failure.hint(fix),
        None if matches!(error, VaultError::Damaged { .. }) => {
            failure.hint("wharf auth SERVER puts it aside and starts anew")
        }
        None => failure.hint("wharf auth status shows where logins are kept"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_trying_again_does_not_change_is_to_be_mended() {
        let refused = |code: &str| {
            LoginError::Token(TokenError::Refused { code: code.to_owned(), description: None, status: 400 })
        };
        for (error, kind, part) in [
            (LoginError::Proof("no key".to_owned()), FailureKind::Usage, "mend `oauth` in its entry"),
            (refused("invalid_client"), FailureKind::Denied, "`client_id`"),
            (refused("unauthorized_client"), FailureKind::Denied, "`client_id`"),
            (refused("invalid_scope"), FailureKind::Denied, "`scope`"),
            (refused("invalid_target"), FailureKind::Denied, "`scope`"),
            (refused("invalid_grant"), FailureKind::LoginNeeded, "run it again"),
            (refused("invalid_request"), FailureKind::Unreachable, "try again in a while"),
        ] {
            let failure = explained(&error);
            assert!(failure.kind == kind && failure.hints.iter().any(|hint| hint.contains(part)), "{failure:?}");
        }
    }
}
