//! Progress notifications.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{JsonLimits, View};
use wharf_json::{JsonDecodeError, RawJson};

/// One `notifications/progress`.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Token of the request, raw: number or string.
    pub token: RawJson,
    /// Completed amount; increases with each notification.
    pub progress: f64,
    /// Total amount, if known.
    pub total: Option<f64>,
    /// Current activity: untrusted text.
    pub message: Option<String>,
}

impl View for Progress {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WireProgress<'a> {
            #[serde(borrow)]
            progress_token: &'a RawValue,
            progress: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(default)]
            message: Option<String>,
        }
        let shape: WireProgress = raw.decode(bounds)?;
        let token = raw.slice_part(shape.progress_token);
        Ok(Self { token, progress: shape.progress, total: shape.total, message: shape.message })
    }
}
