//! Why a call has no outcome. Messages are fragments; whoever shows them adds the rest.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::{Outcome, Refusal};
use wharf_spec::Shown;

/// The most characters of a name that nobody has. Whoever said it may have said anything.
const LONGEST_NAME: usize = 200;

/// Why a call through a registry has no outcome.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallFailure {
    /// There is no tool of this name.
    #[error("there is no tool {}{}", Shown::line(.name, 100), Meant(.nearest))]
    Unknown {
        /// What was said.
        name: String,
        /// What may have been meant.
        nearest: Option<Arc<str>>,
    },
    /// Several have given a tool this name, so it stands for none of them.
    #[error("the name {} is given to tools of {}, so it stands for none of them", Shown::line(.name, 100), Several(.providers))]
    Withheld {
        /// The name.
        name: String,
        /// Who has given it, in order; empty for tools of one's own.
        providers: Vec<Arc<str>>,
    },
    /// It was not carried out, because somebody or some rule is against it.
    #[error("the call was refused: {0}")]
    Refused(Refusal),
    /// It was passed to the tool, and no answer came.
    #[error(transparent)]
    Failed(#[from] ToolError),
}

/// Why a tool has not answered. A tool that reports failure has answered: that is no error.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ToolError {
    /// What became of the call.
    pub kind: ToolErrorKind,
    /// What happened.
    pub message: String,
    /// What to do next, where something helps.
    pub next: Option<String>,
    /// What it came from.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

/// What became of a call that has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// No answer came in time; the call was withdrawn.
    TimedOut,
    /// Somebody withdrew it.
    Cancelled,
    /// The tool cannot be reached now; nothing was carried out.
    Unavailable,
    /// The tool went while it may have been carrying the call out.
    OutcomeUnknown,
    /// The answer is larger than anybody wants.
    TooLarge,
    /// Anything else: the call was refused or the answer makes no sense.
    Failed,
}

impl CallFailure {
    /// There is no tool of this name, of which the beginning is kept.
    pub fn unknown(name: &str, nearest: Option<Arc<str>>) -> Self {
        Self::Unknown { name: name.chars().take(LONGEST_NAME).collect(), nearest }
    }

    /// What a model is told: an outcome marked as error, with what to do next.
    pub fn to_outcome(&self) -> Outcome {
        let mut text = self.to_string();
        for cause in std::iter::successors(self.source(), |&cause| cause.source()).take(8) {
            text = format!("{text}: {}", Shown::line(&cause.to_string(), 1000));
        }
        if let Some(next) = self.next() {
            text = format!("{text}\n{}", Shown::line(next, 1000));
        }
        Outcome::error(text)
    }

    /// Whether the same call may be made again without the risk of doing it twice.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_retryable())
    }

    fn next(&self) -> Option<&str> {
        match self {
            Self::Failed(error) => error.next.as_deref(),
            _ => None,
        }
    }
}

impl ToolError {
    /// A call that ended so, in words that are fit to be shown: whatever a stranger said in them is escaped already.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), next: None, source: None }
    }

    /// The same, saying what to do next.
    pub fn with_next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }

    /// The same, saying what it came from.
    pub fn with_source(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }

    /// Whether the same call may be made again without the risk of doing it twice.
    pub fn is_retryable(&self) -> bool {
        self.kind == ToolErrorKind::Unavailable
    }
}

struct Meant<'a>(&'a Option<Arc<str>>);

impl fmt::Display for Meant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |name| write!(f, "; did you mean {}?", Shown::line(name, 100)))
    }
}

struct Several<'a>(&'a [Arc<str>]);

impl fmt::Display for Several<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, provider) in self.0.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { " and " })?;
            let provider = if provider.is_empty() { "this program" } else { provider };
            Shown::line(provider, 100).fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RefusalReason;

    #[test]
    fn a_model_is_told_what_went_wrong_and_what_to_do() {
        let cause = std::io::Error::other("exit code 3\u{1b}");
        let gone =
            ToolError::new(ToolErrorKind::Unavailable, "files is gone").with_source(cause).with_next("try later");
        for (failure, told) in [
            (CallFailure::Unknown { name: "raed\n".into(), nearest: None }, r"there is no tool raed\n"),
            (
                CallFailure::Unknown { name: "raed".into(), nearest: Some("read".into()) },
                "there is no tool raed; did you mean read?",
            ),
            (
                CallFailure::Withheld { name: "read".into(), providers: vec!["".into(), "files".into()] },
                "the name read is given to tools of this program and files, so it stands for none of them",
            ),
            (
                CallFailure::Refused(Refusal::new(RefusalReason::SaidNo { because: None })),
                "the call was refused: the person who was asked said no",
            ),
            (gone.into(), "files is gone: exit code 3\\u{1b}\ntry later"),
        ] {
            let outcome = failure.to_outcome();
            assert_eq!((outcome.text().as_str(), outcome.is_error), (told, true));
        }
    }

    #[test]
    fn only_what_was_not_carried_out_is_made_again() {
        use ToolErrorKind::*;
        for kind in [TimedOut, Cancelled, Unavailable, OutcomeUnknown, TooLarge, Failed] {
            let failure = CallFailure::from(ToolError::new(kind, ""));
            assert_eq!(failure.is_retryable(), kind == Unavailable, "{kind:?}");
        }
        assert!(!CallFailure::Refused(Refusal::new(RefusalReason::SaidNo { because: None })).is_retryable());
    }
}
