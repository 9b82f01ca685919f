//! Tools that answer with what they are, and gates that say what they are told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wharf_json::RawJson;
use wharf_tools::{
    BoxFuture, Fingerprint, Gate, GateDecision, GatedCall, RegistrySnapshot, Tool, ToolCaller, ToolDescription,
    ToolError, ToolInvocation, ToolOutcome, ToolSource,
};

/// Answers with its text and counts its calls.
pub struct Sign {
    description: Arc<ToolDescription>,
    pub calls: AtomicUsize,
}

impl Sign {
    pub fn new(provider: &str, name: &str, text: &str) -> Arc<Self> {
        let mut description = ToolDescription::new(name, text, RawJson::empty_object());
        if !provider.is_empty() {
            let fingerprint = Fingerprint([text.len() as u8; 32]);
            description.source = Some(ToolSource { provider: provider.into(), name: name.into(), fingerprint });
        }
        Arc::new(Self { description: Arc::new(description), calls: AtomicUsize::new(0) })
    }

    pub fn count(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Tool for Sign {
    fn description(&self) -> &Arc<ToolDescription> {
        &self.description
    }

    fn call(&self, call: ToolInvocation) -> BoxFuture<'_, Result<ToolOutcome, ToolError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let answer = ToolOutcome::from_text(self.description.text.as_str()).with_data(call.arguments);
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// Says what it is told to, and counts how often it is asked.
pub struct Told<F> {
    say: F,
    checks: AtomicUsize,
}

impl<F: Fn(GatedCall<'_>) -> GateDecision + Send + Sync> Told<F> {
    pub fn new(say: F) -> Arc<Self> {
        Arc::new(Self { say, checks: AtomicUsize::new(0) })
    }

    pub fn count(&self) -> usize {
        self.checks.load(Ordering::SeqCst)
    }
}

impl<F: Fn(GatedCall<'_>) -> GateDecision + Send + Sync> Gate for Told<F> {
    fn check(&self, attempt: GatedCall<'_>) -> GateDecision {
        self.checks.fetch_add(1, Ordering::SeqCst);
        (self.say)(attempt)
    }
}

pub fn call() -> ToolInvocation {
    ToolInvocation::new(RawJson::empty_object(), ToolCaller::agent())
}

pub fn names(snapshot: &RegistrySnapshot) -> Vec<String> {
    snapshot.iter().map(|tool| tool.description().name.to_string()).collect()
}
