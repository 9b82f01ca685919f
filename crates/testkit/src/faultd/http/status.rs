//! Faults of the status line: rejected requests, with and without a reason.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::exchange::Exchange;
use super::streamable::not_here;
use super::{Act, Fault, Stage, Times};
use crate::faultd::frame::{self, Refusal};
use crate::faultd::healthy::unsupported_version;
use crate::faultd::options::MODERN;
use crate::faultd::server::locked;

const CHALLENGE: &str =
    r#"Bearer realm="faultd", resource_metadata="http://127.0.0.1:9/.well-known/oauth-protected-resource""#;
const SCOPE: &str = r#"Bearer error="insufficient_scope", scope="files:write", error_description="not enough""#;
const MALFORMED: &str = r#"Bearer realm="never closed, =,,; scope="#;

pub fn find(name: &str) -> Option<Fault> {
    Some(match name {
        "H04" => unauthorized(|exchange, _| exchange.reply(401, &[], "")),
        "H04-challenge" => unauthorized(|exchange, _| exchange.reply(401, &[("WWW-Authenticate", CHALLENGE)], "")),
        "H04-malformed" => unauthorized(|exchange, _| exchange.reply(401, &[("WWW-Authenticate", MALFORMED)], "")),
        "H04-two" => unauthorized(|exchange, _| {
            let two = [("WWW-Authenticate", r#"Basic realm="old""#), ("WWW-Authenticate", CHALLENGE)];
            exchange.reply(401, &two, "");
        }),
        "H06" => always(|exchange, _| exchange.reply(403, &[], "Forbidden")),
        "H06-scope" => Fault::refuse(|exchange, _| exchange.reply(403, &[("WWW-Authenticate", SCOPE)], "")),
        "H07-method" => arrived(|exchange, _| refuse(exchange, 404, &Refusal::new(-32601, "Method not found"))),
        "H07-plain" => arrived(|exchange, _| not_here(exchange)),
        "H07-session" => arrived(forget_session),
        "H08-version" => Fault::refuse(|exchange, _| {
            refuse(exchange, 400, &unsupported_version(&[MODERN], &json!("2026-07-28")));
        }),
        "H08-capability" => Fault::refuse(missing_capability),
        "H08-header" => Fault::refuse(|exchange, _| {
            refuse(exchange, 400, &Refusal::new(-32020, "Header mismatch: Mcp-Param-Region is missing"));
        }),
        "H09-405" => arrived(|exchange, _| exchange.reply(405, &[("Allow", "GET")], "")),
        "H09-406" => arrived(|exchange, _| exchange.reply(406, &[], "")),
        "H09-413" => Fault::refuse(|exchange, _| exchange.reply(413, &[], "")),
        "H09-415" => Fault::refuse(|exchange, _| exchange.reply(415, &[], "")),
        "H09-421" => arrived(|exchange, _| exchange.reply(421, &[], "")),
        "H11-500" => Fault::spoil(|exchange, _| exchange.reply(500, &[], "Internal Server Error")),
        "H11-502" => Fault::spoil(|exchange, _| exchange.reply(502, &[], "<h1>Bad Gateway</h1>")),
        "H11-504" => Fault::spoil(|exchange, _| exchange.reply(504, &[], "")),
        "H11-500-always" => always_failing(|exchange, _| exchange.reply(500, &[], "Internal Server Error")),
        "H11-502-always" => always_failing(|exchange, _| exchange.reply(502, &[], "<h1>Bad Gateway</h1>")),
        "H11-504-always" => always_failing(|exchange, _| exchange.reply(504, &[], "")),
        _ => return later(name),
    })
}

/// Returns faults of a busy server with `Retry-After`.
fn later(name: &str) -> Option<Fault> {
    Some(match name {
        "H10-429" => Fault::refuse(|exchange, _| busy(exchange, 429, "1")),
        "H10-429-date" => Fault::refuse(|exchange, _| busy(exchange, 429, &in_two_seconds())),
        "H10-429-zero" => Fault::refuse(|exchange, _| busy(exchange, 429, "0")),
        "H10-429-huge" => Fault::refuse(|exchange, _| busy(exchange, 429, "1000000000")),
        "H10-429-garbage" => Fault::refuse(|exchange, _| busy(exchange, 429, "soon; maybe -1")),
        "H10-503" => arrived(|exchange, _| busy(exchange, 503, "1")),
        "H10-503-date" => arrived(|exchange, _| busy(exchange, 503, &in_two_seconds())),
        "H10-503-zero" => arrived(|exchange, _| busy(exchange, 503, "0")),
        "H10-503-huge" => arrived(|exchange, _| busy(exchange, 503, "1000000000")),
        "H10-503-garbage" => arrived(|exchange, _| busy(exchange, 503, "soon; maybe -1")),
        _ => return None,
    })
}

fn unauthorized(act: Act) -> Fault {
    Fault::Strike { act, stage: Stage::Refused, times: Times::UntilAuthorized }
}

fn always(act: Act) -> Fault {
    Fault::Strike { act, stage: Stage::Arrived, times: Times::Always }
}

fn arrived(act: Act) -> Fault {
    Fault::Strike { act, stage: Stage::Arrived, times: Times::Once }
}

fn always_failing(act: Act) -> Fault {
    Fault::Strike { act, stage: Stage::Answered, times: Times::Always }
}

pub fn refuse(exchange: &Exchange<'_>, status: u16, refusal: &Refusal) {
    exchange.json(status, frame::error(&exchange.message.id(), refusal));
}

/// Ends the session without the client's involvement; its id becomes unknown.
fn forget_session(exchange: &Exchange<'_>, _: &str) {
    let id = exchange.request.header("mcp-session-id").unwrap_or_default();
    locked(&exchange.server.sessions).remove(id);
    exchange.json(404, frame::error(&Value::Null, &Refusal::new(-32001, "Session not found")));
}

fn missing_capability(exchange: &Exchange<'_>, _: &str) {
    let data = Some(json!({ "requiredCapabilities": { "elicitation": {} } }));
    let refusal = Refusal { code: -32021, message: "Missing required client capability".to_owned(), data };
    refuse(exchange, 400, &refusal);
}

fn busy(exchange: &Exchange<'_>, status: u16, retry_after: &str) {
    exchange.reply(status, &[("Retry-After", retry_after)], "");
}

fn in_two_seconds() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    http_date((since + Duration::from_secs(2)).as_secs())
}

/// Formats an HTTP date, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (mut day, second) = (seconds / 86_400, seconds % 86_400);
    let weekday = DAYS[usize::try_from(day % 7).unwrap_or_default()];
    let mut year = 1970;
    while day >= days_of_year(year) {
        day -= days_of_year(year);
        year += 1;
    }
    let february = days_of_year(year) - 337;
    let mut month = 0;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday}, {:02} {} {year} {hour:02}:{minute:02}:{second:02} GMT", day + 1, MONTHS[month])
}

fn days_of_year(year: u64) -> u64 {
    let leaps = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    365 + u64::from(leaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_spelled_as_http_spells_them() {
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(1_709_164_800), "Thu, 29 Feb 2024 00:00:00 GMT");
        assert_eq!(http_date(1_798_761_599), "Thu, 31 Dec 2026 23:59:59 GMT");
    }
}
