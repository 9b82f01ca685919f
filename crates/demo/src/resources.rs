//! The resources: a greeting, a logo, a clock, the tide, possibly a buoy, and two templates for the berths of a dock.

use std::time::SystemTime;

use serde_json::{Map, Value, json};
use wharf_spec::Timestamp;

use super::content;
use super::message::RpcError;
use super::port::{BUOY_URI, HarbourView, LOG_URI, TIDE_URI};
use super::revision::DemoRevision;
use super::skills;

/// URIs of the templates, as listed and as completion refers to them.
pub const DOCK_TEMPLATE: &str = "demo://dock/{berth}";
pub const QUAY_TEMPLATE: &str = "quay://{side}/{no}";

const DOCK_PREFIX: &str = "demo://dock/";
const QUAY_PREFIX: &str = "quay://";

/// Ships by berth. Other berths are free.
pub const BERTHS: [(&str, &str); 7] = [
    ("east-1", "the barge Patience, with gravel"),
    ("east-2", "the tug Little Persuasion"),
    ("north-1", "the freighter Meridian, with oranges"),
    ("north-2", "the ferry Hourly"),
    ("north-3", "the lightship Margin Note"),
    ("west-1", "the schooner Second Draft"),
    ("west-2", "the icebreaker Small Talk"),
];

/// Contents of a resource and their cache lifetime.
pub struct ResourceReading {
    pub result: Value,
    pub ttl_ms: u64,
}

/// Returns all resources. The greeting comes first.
pub fn definitions(revision: DemoRevision, view: HarbourView) -> Vec<Value> {
    let mut resources = vec![
        ("demo://greeting", "greeting", "Greeting", "A friendly word.", "text/plain"),
        ("demo://logo", "logo", "Logo", "An anchor, as a small PNG image.", "image/png"),
        ("demo://clock", "clock", "Clock", "The time at which it is read, in UTC.", "text/plain"),
        (TIDE_URI, "tide", "Tide", "How high the water stands; `raise_tide` changes it.", "text/plain"),
    ];
    if revision.is_stateless() {
        resources.push((LOG_URI, "log", "Log", "Asks something before it can be read.", "text/plain"));
    }
    if view.has_buoy {
        resources.push((BUOY_URI, "buoy", "Buoy", "A buoy, since `lay_buoy` was called.", "text/plain"));
    }
    let define = |(uri, name, title, description, mime_type)| {
        let resource = json!({"uri": uri, "name": name, "description": description, "mimeType": mime_type});
        with_title(resource, title, revision)
    };
    resources.into_iter().map(define).collect()
}

pub fn templates(revision: DemoRevision) -> Vec<Value> {
    let templates = [
        (DOCK_TEMPLATE, "berth", "Berth", "Which ship lies at a berth of the dock, such as north-1."),
        (QUAY_TEMPLATE, "quay", "Berth of a quay", "The same by side and number, such as north and 1."),
    ];
    let define = |(uri, name, title, description)| {
        let template = json!({"uriTemplate": uri, "name": name, "description": description, "mimeType": "text/plain"});
        with_title(template, title, revision)
    };
    templates.map(define).into()
}

fn with_title(mut definition: Value, title: &str, revision: DemoRevision) -> Value {
    if revision.has_titles() {
        definition["title"] = title.into();
    }
    definition
}

/// Returns the URI that `params` name.
///
/// # Errors
///
/// Fails with invalid params if it is not a string.
pub fn uri_of(params: &Map<String, Value>) -> Result<&str, RpcError> {
    params.get("uri").and_then(Value::as_str).ok_or_else(|| RpcError::invalid_params("`uri` must be a string"))
}

/// Reads the resource `uri`.
///
/// # Errors
///
/// Fails if there is no such resource.
pub fn read(uri: &str, revision: DemoRevision, view: HarbourView) -> Result<ResourceReading, RpcError> {
    let (contents, ttl_ms) = match uri {
        "demo://greeting" => (greeting(), 3_600_000),
        "demo://logo" => {
            let blob = content::LOGO_PNG;
            (json!({"uri": uri, "mimeType": "image/png", "blob": blob}), 3_600_000)
        }
        "demo://clock" => (plain(uri, &format!("{:.0}", Timestamp(SystemTime::now()))), 0),
        TIDE_URI => (plain(uri, &format!("The tide stands at {} cm.", view.tide)), 1_000),
        BUOY_URI if view.has_buoy => (plain(uri, "Ding, says the buoy."), 60_000),
        _ => match skills::contents(uri).filter(|_| revision.is_stateless()) {
            Some(file) => (file, 3_600_000),
            None => {
                let berth = berth_of(uri).ok_or_else(|| not_found(uri, revision))?;
                (plain(uri, &berth_text(&berth)), 60_000)
            }
        },
    };
    Ok(ResourceReading { result: json!({"contents": [contents]}), ttl_ms })
}

/// Returns the contents of `demo://greeting`.
pub fn greeting() -> Value {
    plain("demo://greeting", "Ahoy! Welcome to the Wharf demo server.")
}

fn plain(uri: &str, text: &str) -> Value {
    json!({"uri": uri, "mimeType": "text/plain", "text": text})
}

/// Returns the berth of a URI that matches a template. Its segments need no decoding.
fn berth_of(uri: &str) -> Option<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~".contains(letter);
    let is_segment = |text: &str| !text.is_empty() && text.chars().all(is_plain);
    if let Some(berth) = uri.strip_prefix(DOCK_PREFIX) {
        return is_segment(berth).then(|| berth.to_owned());
    }
    let (side, number) = uri.strip_prefix(QUAY_PREFIX)?.split_once('/')?;
    (is_segment(side) && is_segment(number)).then(|| format!("{side}-{number}"))
}

/// Splits a berth's name into side and number.
pub fn split_berth(berth: &str) -> Option<(&str, &str)> {
    berth.split_once('-')
}

fn berth_text(berth: &str) -> String {
    match BERTHS.iter().find(|(name, _)| *name == berth) {
        Some((_, ship)) => format!("At berth {berth} lies {ship}."),
        None => format!("Berth {berth} is free."),
    }
}

fn not_found(uri: &str, revision: DemoRevision) -> RpcError {
    RpcError::new(revision.resource_not_found(), format!("unknown resource `{uri}`")).with_data(json!({"uri": uri}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(uri: &str, expected: &str) {
        match read(uri, DemoRevision::V2026_07_28, HarbourView::default()) {
            Ok(reading) => {
                let contents = &reading.result["contents"][0];
                assert_eq!(contents["uri"], uri);
                assert_eq!(contents["text"].as_str().unwrap_or("(blob)"), expected);
            }
            Err(error) => assert_eq!(error.message, expected),
        }
    }

    #[test]
    fn resources_are_read_and_template_matches_one_segment() {
        check("demo://greeting", "Ahoy! Welcome to the Wharf demo server.");
        check("demo://logo", "(blob)");
        check("demo://dock/north-2", "At berth north-2 lies the ferry Hourly.");
        check("demo://dock/north-9", "Berth north-9 is free.");
        check("quay://north/2", "At berth north-2 lies the ferry Hourly.");
        check("quay://north", "unknown resource `quay://north`");
        check("harbour://tide", "The tide stands at 0 cm.");
        check("harbour://buoy", "unknown resource `harbour://buoy`");
        check("demo://dock/", "unknown resource `demo://dock/`");
        check("demo://dock/a/b", "unknown resource `demo://dock/a/b`");
        check("demo://nothing", "unknown resource `demo://nothing`");
    }
}
