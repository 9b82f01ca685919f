//! Client services (elicitation, sampling, roots, skills) that respond without a person.

use wharf_client::{BoxedFuture, ClientServices, Elicitor, RequestSource, RootsSource, Sampler, SamplingError};
use wharf_wire::{Elicitation, ElicitationResponse, RawJson, Root, SamplingRequest};

/// Returns all services, so that the client declares each capability to the suite.
pub fn all_services() -> ClientServices {
    ClientServices::default().elicitation(AcceptingElicitor).sampling(FixedSampler).roots(SingleRoot).skills()
}

/// Accepts every form and fills in no field, so that the client applies the defaults. Declines URL elicitations.
struct AcceptingElicitor;

impl Elicitor for AcceptingElicitor {
    fn elicit(&self, _: RequestSource<'_>, question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        let answer = match question {
            Elicitation::Form(_) => ElicitationResponse::Accept(Some(RawJson::empty_object())),
            Elicitation::Url(_) => ElicitationResponse::Decline,
        };
        Box::pin(std::future::ready(answer))
    }
}

/// A model that always returns the same message.
struct FixedSampler;

impl Sampler for FixedSampler {
    fn sample(&self, _: RequestSource<'_>, _: SamplingRequest) -> BoxedFuture<Result<RawJson, SamplingError>> {
        let message = serde_json::json!({
            "role": "assistant",
            "content": { "type": "text", "text": "Ahoy." },
            "model": "parrot",
            "stopReason": "endTurn",
        });
        Box::pin(std::future::ready(
            RawJson::from_value(&message).map_err(|error| SamplingError::Failed(error.to_string())),
        ))
    }
}

/// Lists a single directory that is never opened.
struct SingleRoot;

impl RootsSource for SingleRoot {
    fn roots(&self, _: RequestSource<'_>) -> BoxedFuture<Vec<Root>> {
        Box::pin(std::future::ready(vec![Root { uri: "file:///srv/wharf".to_owned(), name: Some("wharf".to_owned()) }]))
    }
}
