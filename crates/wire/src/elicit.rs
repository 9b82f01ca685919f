//! Elicitation: what a server asks a person, and what is answered (2026-07-28, client/elicitation).
//!
//! A form is a flat object of primitives. Whatever else its schema holds refuses the whole request: half a form
//! cannot be answered truthfully.

mod complete;
mod field;
mod format;
mod number;
mod schema;
mod secret;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;

use crate::{Bounds, View};
use wharf_json::{DecodeError, Raw};

pub use complete::{Problem, Reason};
pub use field::{Choice, Field, FieldKind};
pub use format::TextFormat;
pub use number::Number;
pub use secret::skeleton;

/// The most fields a form may have.
pub const MOST_FIELDS: usize = 64;
/// The most options a field may offer.
pub const MOST_OPTIONS: usize = 256;

/// What a server wants of a person. Every string is untrusted.
#[derive(Debug, Clone)]
pub enum Elicitation {
    /// Values for the fields of a form.
    Form(FormRequest),
    /// A visit to an address, outside of anything the host sees.
    Url(UrlRequest),
}

/// A form to fill in.
#[derive(Debug, Clone)]
pub struct FormRequest {
    /// Why the server asks.
    pub message: String,
    /// The fields in the schema's order.
    pub fields: Vec<Field>,
    /// The whole parameters as they came.
    pub raw: Raw,
}

/// An address to visit.
#[derive(Debug, Clone)]
pub struct UrlRequest {
    /// Why the server asks.
    pub message: String,
    /// The address as the server wrote it; nobody has parsed it yet.
    pub url: String,
    /// What the server calls this request when it tells of its end; 2025-11-25 only.
    pub elicitation_id: Option<String>,
    /// The whole parameters as they came.
    pub raw: Raw,
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitAnswer {
    /// Yes: with the form's content, or without any to an address.
    Accept(Option<Raw>),
    /// An explicit no.
    Decline,
    /// Dismissed without a choice.
    Cancel,
}

impl Elicitation {
    /// Why the server asks.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(form) => &form.message,
            Self::Url(url) => &url.message,
        }
    }
}

impl View for Elicitation {
    /// Reads the parameters of `elicitation/create`. No `mode` means a form.
    fn view(raw: Raw, bounds: &Bounds) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Shape {
            #[serde(default)]
            mode: Option<String>,
        }
        let Shape { mode } = raw.decode(bounds)?;
        match mode.as_deref() {
            None | Some("form") => FormRequest::view(raw, bounds).map(Self::Form),
            Some("url") => UrlRequest::view(raw, bounds).map(Self::Url),
            Some(_) => Err(wrong("the mode is neither `form` nor `url`")),
        }
    }
}

impl View for FormRequest {
    fn view(raw: Raw, bounds: &Bounds) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            message: String,
            #[serde(borrow)]
            requested_schema: &'a RawValue,
        }
        let Shape { message, requested_schema } = raw.decode(bounds)?;
        let fields = schema::read_fields(&raw.part(requested_schema), bounds)?;
        Ok(Self { message, fields, raw })
    }
}

impl View for UrlRequest {
    fn view(raw: Raw, bounds: &Bounds) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape {
            message: String,
            url: String,
            #[serde(default)]
            elicitation_id: Option<String>,
        }
        let Shape { message, url, elicitation_id } = raw.decode(bounds)?;
        Ok(Self { message, url, elicitation_id, raw })
    }
}

impl FormRequest {
    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// What the server filled in beforehand, as an object.
    pub fn defaults(&self) -> Raw {
        let given = self.fields.iter().filter_map(|field| Some((field, field.default.as_ref()?)));
        complete::object(given)
    }

    /// The first field that asks for a password, a token, a card number or the like, also in look-alike letters.
    ///
    /// A form is no place for these: the specification forbids servers to ask for them. Fields that only choose among
    /// what the server already knows are not looked at.
    pub fn secret_field(&self) -> Option<&Field> {
        self.fields.iter().find(|field| field.asks_for_secret())
    }
}

impl ElicitAnswer {
    /// The result to send.
    pub fn to_raw(&self) -> Raw {
        match self {
            Self::Accept(Some(content)) => Raw::known(format!(r#"{{"action":"accept","content":{}}}"#, content.get())),
            Self::Accept(None) => Raw::known(r#"{"action":"accept"}"#.to_owned()),
            Self::Decline => Raw::known(r#"{"action":"decline"}"#.to_owned()),
            Self::Cancel => Raw::known(r#"{"action":"cancel"}"#.to_owned()),
        }
    }
}

/// An error in the shape of a request.
fn wrong(message: impl std::fmt::Display) -> DecodeError {
    DecodeError::Shape(serde_json::Error::custom(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str) -> Result<Elicitation, DecodeError> {
        Elicitation::view(Raw::parse(text.to_owned()).unwrap(), &Bounds::default())
    }

    #[test]
    fn the_mode_decides_and_a_form_needs_none() {
        let form = r#""message":"m","requestedSchema":{"type":"object","properties":{}}"#;
        for mode in ["", r#""mode":"form","#, r#""mode":null,"#] {
            let text = format!("{{{mode}{form}}}");
            let Elicitation::Form(request) = view(&text).unwrap() else { panic!("{text}") };
            assert_eq!((request.message.as_str(), request.raw.get()), ("m", text.as_str()));
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
    fn answers_carry_content_only_where_there_is_some() {
        let content = Raw::parse(r#"{"n":12345678901234567890123}"#).unwrap();
        for (answer, expected) in [
            (ElicitAnswer::Accept(Some(content)), r#"{"action":"accept","content":{"n":12345678901234567890123}}"#),
            (ElicitAnswer::Accept(None), r#"{"action":"accept"}"#),
            (ElicitAnswer::Decline, r#"{"action":"decline"}"#),
            (ElicitAnswer::Cancel, r#"{"action":"cancel"}"#),
        ] {
            assert_eq!(answer.to_raw(), Raw::parse(expected).unwrap());
        }
    }
}
