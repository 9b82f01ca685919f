//! Client services (elicitation, sampling, roots, skills) that respond without a person.

use wharf_client::{Elicitor, NotSampled, Pending, RootsSource, Sampler, Services};
use wharf_wire::{ElicitAnswer, Elicitation, Raw, Root, SamplingRequest};

/// Returns all services, so that the client declares each capability to the suite.
pub fn all() -> Services {
    Services::default().elicitation(Consent).sampling(Parrot).roots(OneRoot).skills()
}

/// Accepts every form and fills in no field, so that the client applies the defaults. Declines URL elicitations.
struct Consent;

impl Elicitor for Consent {
    fn elicit(&self, _: &str, question: Elicitation) -> Pending<ElicitAnswer> {
        let answer = match question {
            Elicitation::Form(_) => ElicitAnswer::Accept(Some(Raw::empty_object())),
            Elicitation::Url(_) => ElicitAnswer::Decline,
        };
        Box::pin(std::future::ready(answer))
    }
}

/// A model that always returns the same message.
struct Parrot;

impl Sampler for Parrot {
    fn sample(&self, _: &str, _: SamplingRequest) -> Pending<Result<Raw, NotSampled>> {
        let message = serde_json::json!({
            "role": "assistant",
            "content": { "type": "text", "text": "Ahoy." },
            "model": "parrot",
            "stopReason": "endTurn",
        });
        Box::pin(std::future::ready(Raw::of(&message).map_err(|error| NotSampled::Failed(error.to_string()))))
    }
}

/// Lists a single directory that is never opened.
struct OneRoot;

impl RootsSource for OneRoot {
    fn roots(&self, _: &str) -> Vec<Root> {
        vec![Root { uri: "file:///srv/wharf".to_owned(), name: Some("wharf".to_owned()) }]
    }
}
