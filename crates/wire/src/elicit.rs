//! Elicitation: requests for user input, and their results (2026-07-28, client/elicitation).
//!
//! A form is a flat object of primitives. Any other schema fails the whole request, because a partial form cannot be
//! answered truthfully.

mod field;
mod form_content;
mod format;
mod number;
mod schema;
mod secret_detection;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;

use crate::{JsonLimits, View};
use wharf_json::{JsonDecodeError, RawJson};

pub use field::{Choice, FieldKind, FormField};
pub use form_content::{FieldError, FieldErrorKind};
pub use format::TextFormat;
pub use number::JsonNumber;
pub use secret_detection::skeleton;

/// Maximum number of fields in a form.
pub const MAX_FIELDS: usize = 64;
/// Maximum number of options of a field.
pub const MAX_OPTIONS: usize = 256;

/// A server's request for user input. Every string is untrusted.
#[derive(Debug, Clone)]
pub enum Elicitation {
    /// A request for form values.
    Form(FormRequest),
    /// A request to open a URL, out of band of the host.
    Url(UrlRequest),
}

/// A form to fill in.
#[derive(Debug, Clone)]
pub struct FormRequest {
    /// The server's explanation, shown to the user.
    pub message: String,
    /// Fields in schema order.
    pub fields: Vec<FormField>,
    /// The complete parameters as received.
    pub raw: RawJson,
}

/// A URL to open.
#[derive(Debug, Clone)]
pub struct UrlRequest {
    /// The server's explanation, shown to the user.
    pub message: String,
    /// The URL as received, not yet parsed.
    pub url: String,
    /// Id under which the server reports completion; 2025-11-25 only.
    pub elicitation_id: Option<String>,
    /// The complete parameters as received.
    pub raw: RawJson,
}

/// The user's response to an elicitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationResponse {
    /// Accepted: with content for a form, without content for a URL.
    Accept(Option<RawJson>),
    /// Explicitly declined.
    Decline,
    /// Dismissed without a choice.
    Cancel,
}

impl Elicitation {
    /// Returns the server's explanation.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(form) => &form.message,
            Self::Url(url) => &url.message,
        }
    }
}

impl View for Elicitation {
    /// Reads the parameters of `elicitation/create`. A missing `mode` means a form.
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        struct WireElicitationMode {
            #[serde(default)]
            mode: Option<String>,
        }
        let WireElicitationMode { mode } = raw.decode(bounds)?;
        match mode.as_deref() {
            None | Some("form") => FormRequest::from_raw(raw, bounds).map(Self::Form),
            Some("url") => UrlRequest::from_raw(raw, bounds).map(Self::Url),
            Some(_) => Err(shape_error("unsupported elicitation mode (expected `form` or `url`)")),
        }
    }
}

impl View for FormRequest {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WireFormRequest<'a> {
            message: String,
            #[serde(borrow)]
            requested_schema: &'a RawValue,
        }
        let WireFormRequest { message, requested_schema } = raw.decode(bounds)?;
        let fields = schema::read_fields(&raw.slice_part(requested_schema), bounds)?;
        Ok(Self { message, fields, raw })
    }
}

impl View for UrlRequest {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WireUrlRequest {
            message: String,
            url: String,
            #[serde(default)]
            elicitation_id: Option<String>,
        }
        let WireUrlRequest { message, url, elicitation_id } = raw.decode(bounds)?;
        Ok(Self { message, url, elicitation_id, raw })
    }
}

impl FormRequest {
    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&FormField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the defaults of the form as an object.
    pub fn defaults(&self) -> RawJson {
        let given = self.fields.iter().filter_map(|field| Some((field, field.default.as_ref()?)));
        form_content::object_from_values(given)
    }

    /// Returns the first field that asks for a password, token, card number or similar secret. Look-alike letters are
    /// folded before matching.
    ///
    /// The specification forbids servers to request secrets through a form. Boolean and choice fields are not checked:
    /// their options come from the server.
    pub fn secret_field(&self) -> Option<&FormField> {
        self.fields.iter().find(|field| field.asks_for_secret())
    }
}

impl ElicitationResponse {
    /// Returns the result to send to the server.
    pub fn to_raw(&self) -> RawJson {
        match self {
            Self::Accept(Some(content)) => {
                RawJson::new_unchecked(format!(r#"{{"action":"accept","content":{}}}"#, content.as_str()))
            }
            Self::Accept(None) => RawJson::new_unchecked(r#"{"action":"accept"}"#.to_owned()),
            Self::Decline => RawJson::new_unchecked(r#"{"action":"decline"}"#.to_owned()),
            Self::Cancel => RawJson::new_unchecked(r#"{"action":"cancel"}"#.to_owned()),
        }
    }
}

/// Returns a decode error for a malformed request.
fn shape_error(message: impl std::fmt::Display) -> JsonDecodeError {
    JsonDecodeError::Shape(serde_json::Error::custom(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str) -> Result<Elicitation, JsonDecodeError> {
        Elicitation::from_raw(RawJson::parse(text.to_owned()).unwrap(), &JsonLimits::default())
    }

    #[test]
    fn mode_defaults_to_form() {
        let form = r#""message":"m","requestedSchema":{"type":"object","properties":{}}"#;
        for mode in ["", r#""mode":"form","#, r#""mode":null,"#] {
            let text = format!("{{{mode}{form}}}");
            let Elicitation::Form(request) = view(&text).unwrap() else { panic!("{text}") };
            assert_eq!((request.message.as_str(), request.raw.as_str()), ("m", text.as_str()));
        }
        let text = r#"{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"e1"}"#;
        let Elicitation::Url(request) = view(text).unwrap() else { panic!("{text}") };
        assert_eq!((request.url.as_str(), request.elicitation_id.as_deref()), ("https://a.example/", Some("e1")));
        for text in [
            r#"{"mode":"voice","message":"m"}"#,
            r#"{"mode":"url","message":"m"}"#,
            r#"{"mode":"url","url":"https://a.example/"}"#,
            r#"{"mode":7,"message":"m","requestedSchema":{}}"#,
            r#"{"message":"m"}"#,
            r#"{"requestedSchema":{"type":"object","properties":{}}}"#,
            "[]",
        ] {
            assert!(view(text).is_err(), "{text}");
        }
    }

    #[test]
    fn responses_include_content_only_if_present() {
        let content = RawJson::parse(r#"{"n":12345678901234567890123}"#).unwrap();
        for (answer, expected) in [
            (
                ElicitationResponse::Accept(Some(content)),
                r#"{"action":"accept","content":{"n":12345678901234567890123}}"#,
            ),
            (ElicitationResponse::Accept(None), r#"{"action":"accept"}"#),
            (ElicitationResponse::Decline, r#"{"action":"decline"}"#),
            (ElicitationResponse::Cancel, r#"{"action":"cancel"}"#),
        ] {
            assert_eq!(answer.to_raw(), RawJson::parse(expected).unwrap());
        }
    }
}
