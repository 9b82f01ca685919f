//! Progress of a call, relayed to its client.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use wharf::wire::{JsonLimits, Progress};
use wharf_serve::{ClientMessage, Outbox, OutgoingMessage};

use crate::responses::notification;

/// Minimum time between two progress notifications of a call. The last one is always sent.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Number of notifications that are sent without that delay, so that short calls report every step.
const PROGRESS_BURST: u32 = 5;

/// Relays the progress of a call to its client, not more often than a person can read.
pub(crate) struct ProgressRelay {
    token: Value,
    out: Arc<dyn Outbox>,
    state: Mutex<ProgressState>,
}

#[derive(Default)]
struct ProgressState {
    last_sent: Option<Instant>,
    /// Number of notifications sent.
    sent: u32,
    /// The newest notification that came too soon.
    held_back: Option<OutgoingMessage>,
}

impl ProgressRelay {
    /// Creates the relay of a request that asks for progress.
    pub fn from_request(message: &ClientMessage, out: &Arc<dyn Outbox>) -> Option<Arc<Self>> {
        let meta: Value = message.param("_meta")?.decode(&JsonLimits::default()).ok()?;
        let token = meta.get("progressToken").filter(|token| token.is_string() || token.is_number())?.clone();
        Some(Arc::new(Self { token, out: Arc::clone(out), state: Mutex::default() }))
    }

    pub fn report(&self, progress: &Progress) {
        let mut params = json!({"progressToken": self.token, "progress": to_number(progress.progress)});
        if let Some(total) = progress.total {
            params["total"] = to_number(total);
        }
        if let Some(message) = &progress.message {
            params["message"] = message.as_str().into();
        }
        let message = notification("notifications/progress", &params);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_soon = state.last_sent.is_some_and(|last| last.elapsed() < PROGRESS_INTERVAL);
        if is_soon && state.sent >= PROGRESS_BURST {
            state.held_back = Some(message);
        } else {
            (state.last_sent, state.held_back) = (Some(Instant::now()), None);
            state.sent = state.sent.saturating_add(1);
            self.out.send(message);
        }
    }

    /// Sends the last notification.
    pub fn flush(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(message) = state.held_back.take() {
            self.out.send(message);
        }
    }
}

/// Returns a number as most servers write it: without a fraction if it has none.
#[expect(clippy::cast_possible_truncation, reason = "integers up to 2^53 are exact")]
fn to_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 { (number as i64).into() } else { number.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_no_fraction() {
        let shown = [3.0, -2.0, 0.5, 1e300].map(|number| to_number(number).to_string());
        assert_eq!(shown, ["3", "-2", "0.5", "1e+300"]);
    }
}
