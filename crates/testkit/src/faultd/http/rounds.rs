//! Multi-round-trip requests (2026-07-28, basic/patterns/mrtr), and checks of the client's retries.

use serde_json::{Value, json};

use super::HttpFault;
use super::exchange::FaultExchange;
use crate::faultd::frame::{self, ClientMessage};
use crate::faultd::healthy::nonce;
use crate::faultd::server::lock_ignoring_poison;

/// Characters that a careless copy of a string changes.
const STATE: &str = "\u{0}\u{7f} ä\u{1f9ed}\\\"/<é>\u{2028}=?base64?Zm9v?= ";

pub fn find(name: &str) -> Option<HttpFault> {
    Some(HttpFault::Intercept(match name {
        "H38" => |exchange| rounds(exchange, &RoundPlan { rounds: 1, inputs: &[] }),
        "H38-changed" => |exchange| rounds(exchange, &RoundPlan { rounds: 3, inputs: &[] }),
        "H38-inputs" => |exchange| rounds(exchange, &RoundPlan { rounds: 1, inputs: &["one", "two"] }),
        "H38-endless" => |exchange| rounds(exchange, &RoundPlan { rounds: usize::MAX, inputs: &[] }),
        _ => return None,
    }))
}

struct RoundPlan {
    /// Number of rounds, each with a new state.
    rounds: usize,
    /// Input requested in each round.
    inputs: &'static [&'static str],
}

/// Requests input until the call has had its rounds; then the healthy server handles it.
fn rounds(exchange: &FaultExchange<'_>, plan: &RoundPlan) -> bool {
    let message = &exchange.message;
    if !message.is_method("tools/call") || !exchange.stateless {
        return false;
    }
    let state = message.params.get("requestState").and_then(Value::as_str);
    let Some(round) = check_round(exchange, state, plan) else { return false };
    if round >= plan.rounds {
        return false;
    }
    let next = format!("{STATE}{} {}", call_key(message), round + 1);
    exchange.server.options.record(&format!("round {} {}", nonce(message), round + 1));
    lock_ignoring_poison(&exchange.server.notes).insert(next.clone(), call_key(message));
    exchange.deliver(200, &frame::result(&message.id(), &input_required(plan, &next)));
    true
}

/// Returns the number of the round; records a violation and returns `None` if the state was not issued for this call.
fn check_round(exchange: &FaultExchange<'_>, state: Option<&str>, plan: &RoundPlan) -> Option<usize> {
    let violation = |what: &str| exchange.server.options.record(&format!("violation {what}"));
    let Some(state) = state else { return Some(0) };
    let kept = lock_ignoring_poison(&exchange.server.notes).remove(state);
    if kept.as_deref() != Some(&call_key(&exchange.message)) {
        violation("a requestState that was not given to this call, or was given back before");
        return None;
    }
    let responses = &exchange.message.params["inputResponses"];
    if plan.inputs.iter().any(|key| !responses[key].is_object()) {
        violation("inputResponses lack an answer");
    }
    state.rsplit(' ').next()?.parse().ok()
}

/// Returns the key of a call, independent of its changing id: its nonce, or its tool.
fn call_key(message: &ClientMessage) -> String {
    let nonce = message.argument("nonce").as_str();
    nonce.or(message.params["name"].as_str()).unwrap_or_default().to_owned()
}

fn input_required(plan: &RoundPlan, state: &str) -> Value {
    let mut body = json!({ "resultType": "input_required", "requestState": state });
    for key in plan.inputs {
        let schema = json!({ "type": "object", "properties": { "answer": { "type": "string" } } });
        let params = json!({ "mode": "form", "message": format!("Which {key}?"), "requestedSchema": schema });
        body["inputRequests"][key] = json!({ "method": "elicitation/create", "params": params });
    }
    body
}
