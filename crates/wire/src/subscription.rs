//! Subscriptions to server changes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{JsonLimits, View};
use wharf_json::{JsonDecodeError, RawJson};

/// The set of notifications a client requests, or that a server acknowledges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Interest {
    /// Changes to the tool list.
    #[serde(rename = "toolsListChanged", skip_serializing_if = "is_false")]
    pub tools: bool,
    /// Changes to the prompt list.
    #[serde(rename = "promptsListChanged", skip_serializing_if = "is_false")]
    pub prompts: bool,
    /// Changes to the resource list.
    #[serde(rename = "resourcesListChanged", skip_serializing_if = "is_false")]
    pub resources: bool,
    /// Updates of these resources.
    #[serde(rename = "resourceSubscriptions", skip_serializing_if = "Vec::is_empty")]
    pub uris: Vec<String>,
    /// Updates of these tasks.
    #[serde(rename = "taskIds", skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Interest {
    /// Reports whether the set is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the set difference `self` − `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let rest = |wanted: &[String], had: &[String]| {
            wanted.iter().filter(|one| !had.contains(one)).cloned().collect::<Vec<_>>()
        };
        Self {
            tools: self.tools && !other.tools,
            prompts: self.prompts && !other.prompts,
            resources: self.resources && !other.resources,
            uris: rest(&self.uris, &other.uris),
            tasks: rest(&self.tasks, &other.tasks),
        }
    }
}

/// A `notifications/subscriptions/acknowledged`: the notifications the server will send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledged(pub Interest);

impl View for Acknowledged {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Shape {
            notifications: Interest,
        }
        let Shape { notifications } = raw.decode(bounds)?;
        Ok(Self(notifications))
    }
}

/// Returns `_meta["io.modelcontextprotocol/subscriptionId"]` of a notification, raw: number or string as in the
/// request.
pub fn subscription_id(params: &RawJson) -> Option<RawJson> {
    #[derive(Deserialize)]
    struct WireSubscriptionMeta<'a> {
        #[serde(rename = "io.modelcontextprotocol/subscriptionId", borrow, default)]
        id: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Shape<'a> {
        #[serde(rename = "_meta", borrow, default)]
        meta: Option<WireSubscriptionMeta<'a>>,
    }
    let shape: Shape = params.decode_unbounded().ok()?;
    shape.meta?.id.map(|id| params.slice_part(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requested_kinds_are_serialized() {
        let interest = Interest { tools: true, uris: vec!["a:b".to_owned()], ..Interest::default() };
        let text = RawJson::from_value(&interest).unwrap();
        assert_eq!(text.as_str(), r#"{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}"#);
        assert_eq!(RawJson::from_value(&Interest::default()).unwrap().as_str(), "{}");
        let honoured = Interest { tools: true, ..Interest::default() };
        assert_eq!(interest.without(&honoured).uris, ["a:b"]);
        assert!(interest.without(&interest).is_empty());
    }

    #[test]
    fn subscription_id_keeps_its_type() {
        for (text, id) in [
            (r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#, Some("7")),
            (r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"7"}}"#, Some("\"7\"")),
            (r#"{"_meta":{}}"#, None),
            ("{}", None),
            ("[]", None),
        ] {
            let found = subscription_id(&RawJson::parse(text).unwrap());
            assert_eq!(found.as_ref().map(RawJson::as_str), id, "{text}");
        }
    }
}
