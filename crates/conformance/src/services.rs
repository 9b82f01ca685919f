//! What is done for a server that asks something back: everything there is, without a person.

use wharf_client::{Elicitor, NotSampled, Pending, RootsSource, Sampler, Services};
use wharf_wire::{ElicitAnswer, Elicitation, Raw, Root, SamplingRequest};

/// All services, so that each is declared and the suite can look at how.
pub fn all() -> Services {
    Services::default().elicitation(Consent).sampling(Parrot).roots(OneRoot).skills()
}

/// Somebody who accepts whatever is asked and types nothing, so that the defaults are the client's to fill in.
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

/// A model with one thing to say.
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

/// One directory, which nobody opens.
struct OneRoot;

impl RootsSource for OneRoot {
    fn roots(&self, _: &str) -> Vec<Root> {
        vec![Root { uri: "file:///srv/wharf".to_owned(), name: Some("wharf".to_owned()) }]
    }
}
