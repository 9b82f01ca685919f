//! Errors of logins, with the next step.

use wharf_auth::{LoginError, TokenError, VaultError, VisitError};

use crate::failure::{Failure, FailureKind};

/// Converts a login error to a failure with a hint.
pub fn login_failure(error: &LoginError) -> Failure {
    let (kind, hint) = match error {
        LoginError::Denied(_) | LoginError::Visit(VisitError::Declined) => {
            (FailureKind::Denied, "run the command again to log in; --no-browser prints the URL only")
        }
        LoginError::Visit(VisitError::TooLate(_)) => (
            FailureKind::TimedOut,
            "run the command again; --timeout SECONDS waits longer, --no-browser accepts a pasted URL",
        ),
        LoginError::Visit(_) => (FailureKind::Other, "--no-browser prints the URL and reads the redirect URL"),
        LoginError::Discovery(_) => (
            FailureKind::Unreachable,
            "check whether the server supports OAuth; set `headers.Authorization` for a token, or `oauth` for the login endpoints",
        ),
        LoginError::Registration(_) => {
            (FailureKind::Unreachable, "register a client manually and set its `client_id` under `oauth`")
        }
        LoginError::WrongResource { .. } | LoginError::Unsafe(_) | LoginError::Mismatch(_) => {
            (FailureKind::OffProtocol, "no credentials were sent; the server's operator has to fix this")
        }
        LoginError::Needed { .. } | LoginError::StepUps { .. } => (FailureKind::LoginNeeded, "log in with: wharf auth"),
        LoginError::Unreachable(_) => (FailureKind::Unreachable, "check the network, then retry"),
        LoginError::Proof(_) => {
            (FailureKind::Usage, "fix `oauth` in its entry: the client authentication settings are invalid")
        }
        LoginError::Token(error) if error.is_final() => (FailureKind::LoginNeeded, "run the command again"),
        LoginError::Token(TokenError::Refused { code, .. }) if permanent_refusal_hint(code).is_some() => {
            (FailureKind::Denied, permanent_refusal_hint(code).unwrap_or_default())
        }
        LoginError::Vault(error) => return vault_failure(error),
        _ => (FailureKind::Unreachable, "retry later; --debug shows details"),
    };
    Failure::new(kind, error).with_hint(hint)
}

/// Returns a hint for OAuth error codes that a retry does not resolve.
pub fn permanent_refusal_hint(code: &str) -> Option<&'static str> {
    match code {
        "invalid_client" | "unauthorized_client" => {
            Some("the client was rejected: check `client_id` and its secret under `oauth` in its entry")
        }
        "invalid_scope" => Some("the requested scope was rejected: check `scope` under `oauth` in its entry"),
        "invalid_target" => Some("no tokens are issued for this server: check `scope` under `oauth` in its entry"),
        _ => None,
    }
}

/// Converts a vault error to a failure with a hint.
pub fn vault_failure(error: &VaultError) -> Failure {
    let failure = Failure::other(error);
    match error.fix() {
        Some(fix) => failure.with_hint(fix),
        None if matches!(error, VaultError::Damaged { .. }) => {
            failure.with_hint("`wharf auth SERVER` moves the damaged file aside and logs in again")
        }
        None => failure.with_hint("`wharf auth status` shows where logins are stored"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permanent_login_errors_have_fix_hints() {
        let refused = |code: &str| {
            LoginError::Token(TokenError::Refused { code: code.to_owned(), description: None, status: 400 })
        };
        for (error, kind, part) in [
            (LoginError::Proof("no key".to_owned()), FailureKind::Usage, "fix `oauth` in its entry"),
            (refused("invalid_client"), FailureKind::Denied, "`client_id`"),
            (refused("unauthorized_client"), FailureKind::Denied, "`client_id`"),
            (refused("invalid_scope"), FailureKind::Denied, "`scope`"),
            (refused("invalid_target"), FailureKind::Denied, "`scope`"),
            (refused("invalid_grant"), FailureKind::LoginNeeded, "run the command again"),
            (refused("invalid_request"), FailureKind::Unreachable, "retry later"),
        ] {
            let failure = login_failure(&error);
            assert!(failure.kind == kind && failure.hints.iter().any(|hint| hint.contains(part)), "{failure:?}");
        }
    }
}
