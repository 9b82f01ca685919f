//! Errors of calls that have no outcome. Messages are lower-case fragments for the caller to embed in its own text.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::{CallRefusal, ToolOutcome};
use wharf_spec::EscapedText;

/// Maximum characters stored of an unknown tool name. Callers may pass arbitrary text.
const MAX_UNKNOWN_NAME_CHARS: usize = 200;

/// Error: a call through a registry has no outcome.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryCallError {
    /// No tool has this name.
    #[error("unknown tool {}{}", EscapedText::single_line(.name, 100), DidYouMean(.nearest))]
    Unknown {
        /// The requested name.
        name: String,
        /// The most similar callable name.
        nearest: Option<Arc<str>>,
    },
    /// Several providers registered this name, so it is ambiguous and resolves to none of them.
    #[error("ambiguous tool name {}: provided by {}", EscapedText::single_line(.name, 100), ProviderList(.providers))]
    Withheld {
        /// The name.
        name: String,
        /// Providers that registered the name, sorted. The empty string is the embedding program itself.
        providers: Vec<Arc<str>>,
    },
    /// A rule or a person denied the call. It was not executed.
    #[error("call refused: {0}")]
    Denied(CallRefusal),
    /// The call has no result. [`ToolError::kind`] says whether it may have been executed.
    #[error(transparent)]
    Failed(#[from] ToolError),
}

/// Error: a tool did not respond. A tool that reports failure has responded, and is not an error of this type.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ToolError {
    /// Classification of the failure.
    pub kind: ToolErrorKind,
    /// Error message.
    pub message: String,
    /// Suggested next action, if one helps.
    pub next: Option<String>,
    /// Underlying cause.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

/// Classification of a call without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// No response arrived in time. The call was cancelled.
    TimedOut,
    /// The caller cancelled the call.
    Cancelled,
    /// The tool is unreachable. The call was not executed.
    Unavailable,
    /// The tool disconnected during the call, which may have been executed.
    OutcomeUnknown,
    /// The response exceeds the size limit.
    TooLarge,
    /// Any other failure: the call was rejected or the response is invalid.
    Failed,
}

impl RegistryCallError {
    /// Creates the error for an unknown tool name, truncated to a bounded length.
    pub fn unknown_tool(name: &str, nearest: Option<Arc<str>>) -> Self {
        Self::Unknown { name: name.chars().take(MAX_UNKNOWN_NAME_CHARS).collect(), nearest }
    }

    /// Converts the failure to an error outcome for a model, with the causes and the suggested next action.
    pub fn to_outcome(&self) -> ToolOutcome {
        let mut text = self.to_string();
        for cause in std::iter::successors(self.source(), |&cause| cause.source()).take(8) {
            text = format!("{text}: {}", EscapedText::single_line(&cause.to_string(), 1000));
        }
        if let Some(next) = self.next_action() {
            text = format!("{text}\n{}", EscapedText::single_line(next, 1000));
        }
        ToolOutcome::error(text)
    }

    /// Reports whether the call can be repeated without the risk of executing it twice.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_retryable())
    }

    fn next_action(&self) -> Option<&str> {
        match self {
            Self::Failed(error) => error.next.as_deref(),
            _ => None,
        }
    }
}

impl ToolError {
    /// Creates an error. The message must be safe to display: untrusted text in it is already escaped.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), next: None, source: None }
    }

    /// Adds a suggested next action.
    pub fn with_next_action(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }

    /// Adds the underlying cause.
    pub fn with_source(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }

    /// Reports whether the call can be repeated without the risk of executing it twice.
    pub fn is_retryable(&self) -> bool {
        self.kind == ToolErrorKind::Unavailable
    }
}

struct DidYouMean<'a>(&'a Option<Arc<str>>);

impl fmt::Display for DidYouMean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |name| write!(f, "; did you mean {}?", EscapedText::single_line(name, 100)))
    }
}

struct ProviderList<'a>(&'a [Arc<str>]);

impl fmt::Display for ProviderList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, provider) in self.0.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { " and " })?;
            let provider = if provider.is_empty() { "this program" } else { provider };
            EscapedText::single_line(provider, 100).fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RefusalReason;

    #[test]
    fn errors_are_converted_to_outcomes_with_next_actions() {
        let cause = std::io::Error::other("exit code 3\u{1b}");
        let gone = ToolError::new(ToolErrorKind::Unavailable, "files is gone")
            .with_source(cause)
            .with_next_action("try later");
        for (failure, told) in [
            (RegistryCallError::Unknown { name: "raed\n".into(), nearest: None }, r"unknown tool raed\n"),
            (
                RegistryCallError::Unknown { name: "raed".into(), nearest: Some("read".into()) },
                "unknown tool raed; did you mean read?",
            ),
            (
                RegistryCallError::Withheld { name: "read".into(), providers: vec!["".into(), "files".into()] },
                "ambiguous tool name read: provided by this program and files",
            ),
            (
                RegistryCallError::Denied(CallRefusal::new(RefusalReason::SaidNo { because: None })),
                "call refused: denied by the user",
            ),
            (gone.into(), "files is gone: exit code 3\\u{1b}\ntry later"),
        ] {
            let outcome = failure.to_outcome();
            assert_eq!((outcome.text().as_str(), outcome.is_error), (told, true));
        }
    }

    #[test]
    fn only_unexecuted_calls_are_retryable() {
        use ToolErrorKind::*;
        for kind in [TimedOut, Cancelled, Unavailable, OutcomeUnknown, TooLarge, Failed] {
            let failure = RegistryCallError::from(ToolError::new(kind, ""));
            assert_eq!(failure.is_retryable(), kind == Unavailable, "{kind:?}");
        }
        assert!(!RegistryCallError::Denied(CallRefusal::new(RefusalReason::SaidNo { because: None })).is_retryable());
    }
}
