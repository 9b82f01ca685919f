//! Tools that answer with what they are, and gates that say what they are told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wharf_json::RawJson;
use wharf_tools::{
    Attempt, Call, Check, Description, Fingerprint, Gate, Origin, Outcome, Pending, RegistrySnapshot, Tool, ToolCaller,
    ToolError,
};

/// Answers with its text and counts its calls.
pub struct Sign {
    description: Arc<Description>,
    pub calls: AtomicUsize,
}

impl Sign {
    pub fn new(provider: &str, name: &str, text: &str) -> Arc<Self> {
        let mut description = Description::new(name, text, RawJson::empty_object());
        if !provider.is_empty() {
            let fingerprint = Fingerprint([text.len() as u8; 32]);
            description.origin = Some(Origin { provider: provider.into(), name: name.into(), fingerprint });
        }
        Arc::new(Self { description: Arc::new(description), calls: AtomicUsize::new(0) })
    }

    pub fn count(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Tool for Sign {
    fn description(&self) -> &Arc<Description> {
        &self.description
    }

    fn call(&self, call: Call) -> Pending<'_, Result<Outcome, ToolError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let answer = Outcome::text_of(self.description.text.as_str()).with_data(call.arguments);
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// Says what it is told to, and counts how often it is asked.
pub struct Told<F> {
    say: F,
    checks: AtomicUsize,
}

impl<F: Fn(Attempt<'_>) -> Check + Send + Sync> Told<F> {
    pub fn new(say: F) -> Arc<Self> {
        Arc::new(Self { say, checks: AtomicUsize::new(0) })
    }

    pub fn count(&self) -> usize {
        self.checks.load(Ordering::SeqCst)
    }
}

impl<F: Fn(Attempt<'_>) -> Check + Send + Sync> Gate for Told<F> {
    fn check(&self, attempt: Attempt<'_>) -> Check {
        self.checks.fetch_add(1, Ordering::SeqCst);
        (self.say)(attempt)
    }
}

pub fn call() -> Call {
    Call::new(RawJson::empty_object(), ToolCaller::agent())
}

pub fn names(snapshot: &RegistrySnapshot) -> Vec<String> {
    snapshot.iter().map(|tool| tool.description().name.to_string()).collect()
}
