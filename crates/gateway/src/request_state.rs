//! The `requestState` of the gateway: where a call that waits for answers continues.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;
use wharf::RawJson;
use wharf::tools::Principal;
use wharf::wire::JsonLimits;

use crate::sealed::SealingKey;

/// Time for which a forwarded round carries the permission of its first one.
const MAX_PERMISSION_AGE: Duration = Duration::from_secs(3600);

/// A call that is repeated with answers. A state is valid for this call of this principal only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateBinding<'a> {
    pub principal: &'a Principal,
    pub method: &'a str,
    /// Name of the tool or prompt, or the URI.
    pub target: &'a str,
    pub arguments: &'a RawJson,
}

/// What a `requestState` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// The call waits in this gateway.
    Parked { call: u64 },
    /// The server keeps its state in this string, if it sent one.
    Relayed {
        state: Option<RawJson>,
        /// Whether the call was permitted a short time ago.
        is_permitted: bool,
    },
}

impl StateBinding<'_> {
    fn to_bytes(self) -> Vec<u8> {
        let arguments = digest(&SHA256, canonical_text(self.arguments).as_bytes());
        let parts = [format!("{:?}", self.principal).into_bytes(), self.method.into(), self.target.into()];
        let mut bytes = arguments.as_ref().to_vec();
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(&part);
        }
        bytes
    }
}

impl RequestState {
    /// Seals the state as a JSON string.
    pub fn seal(&self, key: &SealingKey, binding: StateBinding<'_>) -> Option<String> {
        let content = match self {
            Self::Parked { call } => [b"p".as_slice(), &call.to_be_bytes()].concat(),
            Self::Relayed { state, .. } => {
                let state = state.as_ref().map(RawJson::as_bytes).unwrap_or_default();
                [b"r".as_slice(), &unix_seconds().to_be_bytes(), state].concat()
            }
        };
        key.seal(&binding.to_bytes(), &content)
    }

    /// Opens a sealed state. `None` if it is not valid for this call.
    pub fn open(key: &SealingKey, binding: StateBinding<'_>, sealed: &str) -> Option<Self> {
        let content = key.open(&binding.to_bytes(), sealed)?;
        let (kind, rest) = content.split_first()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let number = u64::from_be_bytes(*number);
        match kind {
            b'p' => Some(Self::Parked { call: number }),
            b'r' => {
                let is_permitted = unix_seconds().saturating_sub(number) <= MAX_PERMISSION_AGE.as_secs();
                let state = (!rest.is_empty()).then(|| RawJson::new_unchecked(rest.to_vec()));
                Some(Self::Relayed { state, is_permitted })
            }
            _ => None,
        }
    }
}

/// Returns JSON text that is the same for the same content: some clients write the arguments anew for every attempt.
fn canonical_text(raw: &RawJson) -> String {
    match raw.decode::<Value>(&JsonLimits::default()) {
        Ok(mut value) => {
            value.sort_all_objects();
            value.to_string()
        }
        Err(_) => raw.as_str().to_owned(),
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::new_unchecked(text.to_owned())
    }

    #[test]
    fn state_is_valid_for_its_own_call_only() {
        let (key, ada, bob) = (SealingKey::random(), Principal::client("ada"), Principal::client("bob"));
        let arguments = raw(r#"{"a":1,"b":{"c":2,"d":3}}"#);
        let binding = StateBinding { principal: &ada, method: "tools/call", target: "s__t", arguments: &arguments };
        for state in [
            RequestState::Parked { call: 7 },
            RequestState::Relayed { state: None, is_permitted: true },
            RequestState::Relayed { state: Some(raw(r#""\u0041 é""#)), is_permitted: true },
        ] {
            let sealed = state.seal(&key, binding).unwrap();
            assert_eq!(RequestState::open(&key, binding, &sealed), Some(state));
            let rewritten = raw(r#"{ "b": {"d":3, "c":2}, "a": 1 }"#);
            assert!(RequestState::open(&key, StateBinding { arguments: &rewritten, ..binding }, &sealed).is_some());
            let other_arguments = raw(r#"{"a":2,"b":{"c":2,"d":3}}"#);
            for foreign in [
                StateBinding { principal: &bob, ..binding },
                StateBinding { method: "prompts/get", ..binding },
                StateBinding { target: "s__u", ..binding },
                StateBinding { arguments: &other_arguments, ..binding },
            ] {
                assert_eq!(RequestState::open(&key, foreign, &sealed), None, "{foreign:?}");
            }
        }
    }
}
