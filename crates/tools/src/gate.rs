//! Who decides whether a call may be carried out.

use std::fmt;
use std::sync::Arc;

use wharf_json::Raw;

use crate::{Caller, Description, Pending};
use wharf_spec::Shown;

/// Decides whether a call may be carried out. Every call through a registry is put before its gate exactly once.
pub trait Gate: Send + Sync {
    /// Decides at once, or says whom to wait for. Must not block.
    fn check(&self, attempt: Attempt<'_>) -> Check;
}

/// What somebody wants to do.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// Who wants it.
    pub caller: &'a Caller,
    /// The tool.
    pub tool: &'a Arc<Description>,
    /// The arguments, as they will reach the tool.
    pub arguments: &'a Raw,
}

/// What a gate says.
pub enum Check {
    /// The call may be carried out.
    Pass,
    /// It may not.
    Refuse(Refusal),
    /// A person is asked, and this is the answer. Dropped with the call: nobody need answer any more.
    Ask(Pending<'static, Result<(), Refusal>>),
}

/// Why a call was not carried out. Displayed, it is what a model is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// What stood in the way.
    pub reason: RefusalReason,
    /// What would get it out of the way.
    pub hint: Option<String>,
}

/// What stood in the way of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// A rule denies it.
    Denied {
        /// The rule, as it is written.
        rule: String,
    },
    /// A person would have to be asked, and there is none.
    NobodyToAsk {
        /// The rule that would allow it.
        rule: String,
    },
    /// A person said no.
    SaidNo {
        /// Why, in the person's own words, where they gave any.
        because: Option<String>,
    },
    /// The tool is not what it was when it was approved.
    DefinitionChanged,
    /// The tool was replaced or removed while a person was asked, so the answer was about another one.
    ApprovalStale,
    /// Whoever provides the tool has not been approved.
    NotApproved,
    /// Anything else, in a gate's own words.
    Other(String),
}

/// Lets everything pass: for tests, and for embedders who decide elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn check(&self, _: Attempt<'_>) -> Check {
        Check::Pass
    }
}

impl Refusal {
    /// A refusal with nothing to suggest.
    pub fn new(reason: RefusalReason) -> Self {
        Self { reason, hint: None }
    }

    /// The same, saying what would help.
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)?;
        self.hint.as_deref().map_or(Ok(()), |hint| write!(f, "; {}", Shown::line(hint, 1000)))
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied { rule } => write!(f, "denied: {}", Shown::line(rule, 500)),
            Self::NobodyToAsk { rule } => {
                let rule = Shown::line(rule, 500);
                write!(f, "this needs a person's permission and nobody is there to ask; the rule {rule} would allow it")
            }
            Self::SaidNo { because: None } => f.write_str("the person who was asked said no"),
            Self::SaidNo { because: Some(why) } => {
                write!(f, "the person who was asked said no: {}", Shown::line(why, 1000))
            }
            Self::DefinitionChanged => f.write_str("the tool has changed since it was approved"),
            Self::ApprovalStale => {
                f.write_str("the tool was replaced or removed while a person was being asked about it")
            }
            Self::NotApproved => f.write_str("whoever provides this tool has not been approved"),
            Self::Other(reason) => Shown::line(reason, 500).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_would_help() {
        let rule = || r#"{"tool":"a__b"}"#.to_owned();
        for (refusal, shown) in [
            (Refusal::new(RefusalReason::Denied { rule: rule() }), r#"denied: {"tool":"a__b"}"#),
            (
                Refusal::new(RefusalReason::NobodyToAsk { rule: rule() }),
                "this needs a person's permission and nobody is there to ask; \
                 the rule {\"tool\":\"a__b\"} would allow it",
            ),
            (
                Refusal::new(RefusalReason::DefinitionChanged).with_hint("approve it again"),
                "the tool has changed since it was approved; approve it again",
            ),
            (Refusal::new(RefusalReason::Other("a\nb\u{1b}".to_owned())), r"a\nb\u{1b}"),
            (Refusal::new(RefusalReason::SaidNo { because: None }), "the person who was asked said no"),
            (
                Refusal::new(RefusalReason::SaidNo { because: Some("use the copy\u{1b}\nfirst".to_owned()) }),
                r"the person who was asked said no: use the copy\u{1b}\nfirst",
            ),
        ] {
            assert_eq!(refusal.to_string(), shown);
        }
        let endless = Refusal::new(RefusalReason::SaidNo { because: Some("no ".repeat(10_000)) });
        assert!(endless.to_string().len() < 1_100);
    }
}
