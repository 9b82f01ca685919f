//! The permission gate.

use std::fmt;
use std::sync::Arc;

use wharf_json::RawJson;

use crate::{BoxFuture, ToolCaller, ToolDescription};
use wharf_spec::EscapedText;

/// Decides whether a call may be executed. The registry and the host consult it before each call, and the host again if
/// the definition or the server has changed meanwhile.
pub trait Gate: Send + Sync {
    /// Decides immediately, or returns a future that resolves once a person has decided. Must not block.
    fn check(&self, attempt: GatedCall<'_>) -> GateDecision;
}

/// A call that needs a decision.
#[derive(Debug, Clone, Copy)]
pub struct GatedCall<'a> {
    /// The caller.
    pub caller: &'a ToolCaller,
    /// The tool.
    pub tool: &'a Arc<ToolDescription>,
    /// The arguments, exactly as the tool will receive them.
    pub arguments: &'a RawJson,
}

/// Decision of a gate.
pub enum GateDecision {
    /// The call may be executed.
    Pass,
    /// The call may not be executed.
    Refuse(CallRefusal),
    /// The future resolves to the decision of a person. Dropped if the call is cancelled, which withdraws the prompt.
    Ask(BoxFuture<'static, Result<(), CallRefusal>>),
}

/// Origin of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionSource {
    /// Rules, trust, an earlier answer, or a waived prompt, for example by the caller's consent.
    Rules,
    /// A person who was asked about this call.
    Person,
}

impl GateDecision {
    /// Waits for the person's answer, if one is needed.
    ///
    /// # Errors
    ///
    /// Returns the refusal if the call may not be executed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws the prompt.
    pub async fn wait(self) -> Result<PermissionSource, CallRefusal> {
        match self {
            Self::Pass => Ok(PermissionSource::Rules),
            Self::Refuse(refusal) => Err(refusal),
            Self::Ask(answer) => answer.await.map(|()| PermissionSource::Person),
        }
    }
}

/// A refused call. `Display` gives the text for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallRefusal {
    /// Reason for the refusal.
    pub reason: RefusalReason,
    /// Suggestion for getting the call allowed.
    pub hint: Option<String>,
}

/// Reason for refusing a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// A rule denies the call.
    Denied {
        /// The rule as written.
        rule: String,
    },
    /// The call needs a person's permission, and no person is available.
    NobodyToAsk {
        /// The rule that would allow the call.
        rule: String,
    },
    /// A person said no.
    SaidNo {
        /// Reason in the person's own words, if given.
        because: Option<String>,
    },
    /// The tool's definition changed since it was approved.
    DefinitionChanged,
    /// The tool was replaced or removed while the call waited for a person or for its server, so the permission was for
    /// a different tool.
    PermissionStale,
    /// The provider of the tool is not approved.
    NotApproved,
    /// Any other reason, in the gate's own words.
    Other(String),
}

/// A gate that allows every call. For tests, and for embedders that enforce permissions outside the registry.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAllGate;

impl Gate for AllowAllGate {
    fn check(&self, _: GatedCall<'_>) -> GateDecision {
        GateDecision::Pass
    }
}

impl CallRefusal {
    /// Creates a refusal without a hint.
    pub fn new(reason: RefusalReason) -> Self {
        Self { reason, hint: None }
    }

    /// Adds a hint.
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for CallRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)?;
        self.hint.as_deref().map_or(Ok(()), |hint| write!(f, "; {}", EscapedText::single_line(hint, 1000)))
    }
}

impl std::error::Error for CallRefusal {}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied { rule } => write!(f, "denied: {}", EscapedText::single_line(rule, 500)),
            Self::NobodyToAsk { rule } => {
                let rule = EscapedText::single_line(rule, 500);
                write!(
                    f,
                    "needs permission, and no user is available to ask (the rule {rule} would allow it). Do not repeat \
                     the call: continue without it, and say that it was not permitted"
                )
            }
            Self::SaidNo { because: None } => f.write_str("denied by the user"),
            Self::SaidNo { because: Some(why) } => {
                write!(f, "denied by the user: {}", EscapedText::single_line(why, 1000))
            }
            Self::DefinitionChanged => f.write_str("the tool's definition has changed since it was approved"),
            Self::PermissionStale => {
                f.write_str("the tool was replaced or removed while the call waited; call it again")
            }
            Self::NotApproved => f.write_str("the provider of this tool is not approved"),
            Self::Other(reason) => EscapedText::single_line(reason, 500).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_describes_the_remedy() {
        let rule = || r#"{"tool":"a__b"}"#.to_owned();
        for (refusal, shown) in [
            (CallRefusal::new(RefusalReason::Denied { rule: rule() }), r#"denied: {"tool":"a__b"}"#),
            (
                CallRefusal::new(RefusalReason::NobodyToAsk { rule: rule() }),
                "needs permission, and no user is available to ask \
                 (the rule {\"tool\":\"a__b\"} would allow it). Do not repeat the call: continue without it, and say that \
                 it was not permitted",
            ),
            (
                CallRefusal::new(RefusalReason::DefinitionChanged).with_hint("approve it again"),
                "the tool's definition has changed since it was approved; approve it again",
            ),
            (CallRefusal::new(RefusalReason::Other("a\nb\u{1b}".to_owned())), r"a\nb\u{1b}"),
            (CallRefusal::new(RefusalReason::SaidNo { because: None }), "denied by the user"),
            (
                CallRefusal::new(RefusalReason::SaidNo { because: Some("use the copy\u{1b}\nfirst".to_owned()) }),
                r"denied by the user: use the copy\u{1b}\nfirst",
            ),
        ] {
            assert_eq!(refusal.to_string(), shown);
        }
        let endless = CallRefusal::new(RefusalReason::SaidNo { because: Some("no ".repeat(10_000)) });
        assert!(endless.to_string().len() < 1_100);
    }
}
