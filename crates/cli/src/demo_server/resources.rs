//! The resources: a greeting, a logo, a clock, and a template for the berths of a dock.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::content;
use super::message::RpcError;
use super::revision::Revision;

/// The one template's URI, as listed and as completion refers to it.
pub const DOCK_TEMPLATE: &str = "demo://dock/{berth}";

const DOCK_PREFIX: &str = "demo://dock/";

/// Who lies where. Any other berth is free.
pub const BERTHS: [(&str, &str); 6] = [
    ("east-1", "the barge Patience, with gravel"),
    ("east-2", "the tug Little Persuasion"),
    ("north-1", "the freighter Meridian, with oranges"),
    ("north-2", "the ferry Hourly"),
    ("west-1", "the schooner Second Draft"),
    ("west-2", "the icebreaker Small Talk"),
];

/// What was read, and for how long a client may keep it.
pub struct Reading {
    pub result: Value,
    pub ttl_ms: u64,
}

/// All resources; the first of them is the greeting.
pub fn definitions(revision: Revision) -> Vec<Value> {
    let resources = [
        ("greeting", "Greeting", "A friendly word.", "text/plain"),
        ("logo", "Logo", "An anchor, as a small PNG image.", "image/png"),
        ("clock", "Clock", "The time at which it is read, in UTC.", "text/plain"),
    ];
    let listed = resources.map(|(name, title, description, mime_type)| {
        let mut resource = json!({
            "uri": format!("demo://{name}"),
            "name": name,
            "description": description,
            "mimeType": mime_type,
        });
        if revision.has_titles() {
            resource["title"] = title.into();
        }
        resource
    });
    listed.into()
}

pub fn templates(revision: Revision) -> Vec<Value> {
    let mut template = json!({
        "uriTemplate": DOCK_TEMPLATE,
        "name": "berth",
        "description": "Which ship lies at a berth of the dock, such as north-1.",
        "mimeType": "text/plain",
    });
    if revision.has_titles() {
        template["title"] = "Berth".into();
    }
    vec![template]
}

/// Reads the resource that `params` name.
pub fn read(params: &Map<String, Value>, revision: Revision) -> Result<Reading, RpcError> {
    let uri =
        params.get("uri").and_then(Value::as_str).ok_or_else(|| RpcError::invalid_params("`uri` must be a string"))?;
    let (contents, ttl_ms) = match uri {
        "demo://greeting" => (greeting(), 3_600_000),
        "demo://logo" => {
            let blob = content::LOGO_PNG;
            (json!({"uri": uri, "mimeType": "image/png", "blob": blob}), 3_600_000)
        }
        "demo://clock" => (plain(uri, &timestamp(SystemTime::now())), 0),
        _ => {
            let berth = berth_of(uri).ok_or_else(|| not_found(uri, revision))?;
            (plain(uri, &occupant_of(berth)), 60_000)
        }
    };
    Ok(Reading { result: json!({"contents": [contents]}), ttl_ms })
}

/// The contents of `demo://greeting`.
pub fn greeting() -> Value {
    plain("demo://greeting", "Ahoy! Welcome to the Wharf demo server.")
}

fn plain(uri: &str, text: &str) -> Value {
    json!({"uri": uri, "mimeType": "text/plain", "text": text})
}

/// The berth in a URI that matches the template: one segment that needs no decoding.
fn berth_of(uri: &str) -> Option<&str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~".contains(letter);
    uri.strip_prefix(DOCK_PREFIX).filter(|berth| !berth.is_empty() && berth.chars().all(is_plain))
}

fn occupant_of(berth: &str) -> String {
    match BERTHS.iter().find(|(name, _)| *name == berth) {
        Some((_, ship)) => format!("At berth {berth} lies {ship}."),
        None => format!("Berth {berth} is free."),
    }
}

fn not_found(uri: &str, revision: Revision) -> RpcError {
    RpcError::new(revision.resource_not_found(), format!("unknown resource `{uri}`")).with_data(json!({"uri": uri}))
}

/// A time as RFC 3339 writes it, in UTC, to the second. Times before 1970 count as 1970.
fn timestamp(time: SystemTime) -> String {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (mut days, seconds) = (since_1970.as_secs() / 86_400, since_1970.as_secs() % 86_400);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let day = days + 1;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        let table = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_785_196_799, "2026-07-27T23:59:59Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, expected) in table {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[track_caller]
    fn check(uri: &str, expected: &str) {
        let params = Map::from_iter([("uri".to_owned(), uri.into())]);
        match read(&params, Revision::V2026_07_28) {
            Ok(reading) => {
                let contents = &reading.result["contents"][0];
                assert_eq!(contents["uri"], uri);
                assert_eq!(contents["text"].as_str().unwrap_or("(blob)"), expected);
            }
            Err(error) => assert_eq!(error.message, expected),
        }
    }

    #[test]
    fn resources_are_read_and_the_template_matches_one_segment() {
        check("demo://greeting", "Ahoy! Welcome to the Wharf demo server.");
        check("demo://logo", "(blob)");
        check("demo://dock/north-2", "At berth north-2 lies the ferry Hourly.");
        check("demo://dock/north-9", "Berth north-9 is free.");
        check("demo://dock/", "unknown resource `demo://dock/`");
        check("demo://dock/a/b", "unknown resource `demo://dock/a/b`");
        check("demo://nothing", "unknown resource `demo://nothing`");
    }
}
