//! Input required before a result: one round of a multi-round-trip request (2026-07-28, basic/patterns/mrtr).

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{JsonLimits, View};
use wharf_json::{JsonDecodeError, RawJson, object_members};

/// An intermediate result that asks the client for input.
#[derive(Debug, Clone)]
pub struct InputRequired {
    /// The input requests in the server's order. Each response is returned under the request's key.
    pub requests: Vec<InputRequest>,
    /// Opaque JSON string, returned byte for byte with the responses.
    pub state: Option<RawJson>,
}

/// One input request.
#[derive(Debug, Clone)]
pub struct InputRequest {
    /// Key of the request, as a JSON string with quotes.
    pub key: RawJson,
    /// Method of the request.
    pub method: String,
    /// Parameters of the request, if any.
    pub params: Option<RawJson>,
}

impl View for InputRequired {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            #[serde(borrow, default)]
            input_requests: Option<&'a RawValue>,
            #[serde(borrow, default)]
            request_state: Option<&'a RawValue>,
        }
        let shape: Shape = raw.decode(bounds)?;
        let requests = shape.input_requests.map(|list| input_requests(&raw.slice_part(list), bounds)).transpose()?;
        let state = shape.request_state.map(|state| raw.slice_part(state));
        let wrong = |what: &str| JsonDecodeError::Shape(serde::de::Error::custom(what));
        if state.as_ref().is_some_and(|state| state.as_bytes().first() != Some(&b'"')) {
            return Err(wrong("`requestState` is not a string"));
        }
        if requests.is_none() && state.is_none() {
            return Err(wrong("`input_required` result without `inputRequests` or `requestState`"));
        }
        Ok(Self { requests: requests.unwrap_or_default(), state })
    }
}

/// Reads a map of input requests, from a result or from a task.
///
/// # Errors
///
/// Fails if the map or a request in it is malformed or exceeds `bounds`.
pub fn input_requests(raw: &RawJson, bounds: &JsonLimits) -> Result<Vec<InputRequest>, JsonDecodeError> {
    #[derive(Deserialize)]
    struct Shape<'a> {
        method: String,
        #[serde(borrow, default)]
        params: Option<&'a RawValue>,
    }
    let list = object_members(raw, bounds)?.into_iter().map(|(key, value)| {
        let shape: Shape = value.decode(bounds)?;
        let params = shape.params.map(|params| value.slice_part(params));
        let key = RawJson::from_value(key.as_ref())
            .map_err(|_| JsonDecodeError::Shape(serde::de::Error::custom("invalid key")))?;
        Ok(InputRequest { key, method: shape.method, params })
    });
    list.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str) -> Result<InputRequired, JsonDecodeError> {
        InputRequired::from_raw(RawJson::parse(text.to_owned()).unwrap(), &JsonLimits::default())
    }

    #[test]
    fn state_is_preserved_byte_for_byte() {
        let found =
            view(r#"{"requestState":"a\u0062\/\"\\ é","inputRequests":{"k\"1":{"method":"roots/list"}}}"#).unwrap();
        assert_eq!(found.state.unwrap().as_str(), r#""a\u0062\/\"\\ é""#);
        assert_eq!(found.requests[0].key.as_str(), r#""k\"1""#);
        assert_eq!(found.requests[0].method, "roots/list");
        assert!(found.requests[0].params.is_none());
    }

    #[test]
    fn requests_or_state_is_required() {
        assert!(view("{}").is_err());
        assert!(view(r#"{"requestState":7}"#).is_err());
        assert!(view(r#"{"inputRequests":[]}"#).is_err());
        assert!(view(r#"{"inputRequests":{"a":1}}"#).is_err());
        assert!(view(r#"{"requestState":""}"#).unwrap().requests.is_empty());
    }
}
