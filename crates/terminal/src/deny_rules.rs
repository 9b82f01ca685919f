//! Applies deny rules to commands that read, watch or list resources and prompts.
//!
//! A command typed by the user is consent, so there is no prompt. Deny rules still apply.

use serde_json::{Value, json};
use wharf_policy::{CallAttempt, Policy, RiskLevel, Verdict};
use wharf_spec::ServerEntry;
use wharf_wire::RawJson;

use crate::failure::{Failure, FailureKind};
use crate::session::CommandSession;

/// Fails if a rule denies the tool of this name with these arguments. The tools are those that a model has for the same
/// purpose, such as `ReadMcpResource`.
///
/// # Errors
///
/// Fails if a rule denies the access, or if the rules cannot be compiled.
pub fn check_not_denied(
    session: &CommandSession,
    server: &ServerEntry,
    tool: &str,
    arguments: &Value,
) -> Result<(), Failure> {
    let policy = Policy::compile(session.configuration.rules()?, std::slice::from_ref(&server.name));
    if let Some(problem) = policy.problems().iter().find(|problem| problem.is_fatal()) {
        return Err(Failure::usage(problem).with_hint("`wharf validate` shows its location"));
    }
    let mut arguments = arguments.clone();
    arguments["server"] = json!(server.name.as_str());
    let arguments = RawJson::new_unchecked(arguments.to_string());
    let attempt =
        CallAttempt::builtin_tool(tool, &arguments, RiskLevel::Low).accessing(&server.name, &server.settings.origin);
    let decision = policy.decide(&attempt);
    match decision.verdict {
        Verdict::Deny => {
            let failure = Failure::new(FailureKind::Denied, format_args!("denied: {}", decision.reason));
            Err(failure.about_server(server.name.as_str()).with_hint("change the rule in `permissions` of that file"))
        }
        Verdict::Allow | Verdict::Ask => Ok(()),
    }
}

/// Like [`check_not_denied`], for listing.
///
/// # Errors
///
/// Fails if a rule denies the listing, or if the rules cannot be compiled.
pub fn check_listing_not_denied(session: &CommandSession, server: &ServerEntry, tool: &str) -> Result<(), Failure> {
    check_not_denied(session, server, tool, &json!({}))
}
