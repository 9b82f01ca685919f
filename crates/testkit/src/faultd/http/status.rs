//! Faults of the status line: rejected requests, with and without a reason.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::exchange::FaultExchange;
use super::streamable::reply_not_found;
use super::{FaultRepeat, HttpFault, HttpFaultAction, RequestStage};
use crate::faultd::frame::{self, ErrorReply};
use crate::faultd::healthy::unsupported_version;
use crate::faultd::options::MODERN;
use crate::faultd::server::lock_ignoring_poison;

const CHALLENGE: &str =
    r#"Bearer realm="faultd", resource_metadata="http://127.0.0.1:9/.well-known/oauth-protected-resource""#;
const SCOPE: &str = r#"Bearer error="insufficient_scope", scope="files:write", error_description="not enough""#;
const MALFORMED: &str = r#"Bearer realm="never closed, =,,; scope="#;

pub fn find(name: &str) -> Option<HttpFault> {
    Some(match name {
        "H04" => unauthorized(|exchange, _| exchange.reply(401, &[], "")),
        "H04-challenge" => unauthorized(|exchange, _| exchange.reply(401, &[("WWW-Authenticate", CHALLENGE)], "")),
        "H04-malformed" => unauthorized(|exchange, _| exchange.reply(401, &[("WWW-Authenticate", MALFORMED)], "")),
        "H04-two" => unauthorized(|exchange, _| {
            let two = [("WWW-Authenticate", r#"Basic realm="old""#), ("WWW-Authenticate", CHALLENGE)];
            exchange.reply(401, &two, "");
        }),
        "H06" => reject_always(|exchange, _| exchange.reply(403, &[], "Forbidden")),
        "H06-scope" => HttpFault::reject_once(|exchange, _| exchange.reply(403, &[("WWW-Authenticate", SCOPE)], "")),
        "H07-method" => {
            reject_once_arrived(|exchange, _| reply_error(exchange, 404, &ErrorReply::new(-32601, "Method not found")))
        }
        "H07-plain" => reject_once_arrived(|exchange, _| reply_not_found(exchange)),
        "H07-session" => reject_once_arrived(forget_session),
        "H08-version" => HttpFault::reject_once(|exchange, _| {
            reply_error(exchange, 400, &unsupported_version(&[MODERN], &json!("2026-07-28")));
        }),
        "H08-capability" => HttpFault::reject_once(missing_capability),
        "H08-header" => HttpFault::reject_once(|exchange, _| {
            reply_error(exchange, 400, &ErrorReply::new(-32020, "Header mismatch: Mcp-Param-Region is missing"));
        }),
        "H09-405" => reject_once_arrived(|exchange, _| exchange.reply(405, &[("Allow", "GET")], "")),
        "H09-406" => reject_once_arrived(|exchange, _| exchange.reply(406, &[], "")),
        "H09-413" => HttpFault::reject_once(|exchange, _| exchange.reply(413, &[], "")),
        "H09-415" => HttpFault::reject_once(|exchange, _| exchange.reply(415, &[], "")),
        "H09-421" => reject_once_arrived(|exchange, _| exchange.reply(421, &[], "")),
        "H11-500" => HttpFault::modify_response(|exchange, _| exchange.reply(500, &[], "Internal Server Error")),
        "H11-502" => HttpFault::modify_response(|exchange, _| exchange.reply(502, &[], "<h1>Bad Gateway</h1>")),
        "H11-504" => HttpFault::modify_response(|exchange, _| exchange.reply(504, &[], "")),
        "H11-500-always" => always_failing(|exchange, _| exchange.reply(500, &[], "Internal Server Error")),
        "H11-502-always" => always_failing(|exchange, _| exchange.reply(502, &[], "<h1>Bad Gateway</h1>")),
        "H11-504-always" => always_failing(|exchange, _| exchange.reply(504, &[], "")),
        _ => return find_busy(name),
    })
}

/// Returns faults of a busy server with `Retry-After`.
fn find_busy(name: &str) -> Option<HttpFault> {
    Some(match name {
        "H10-429" => HttpFault::reject_once(|exchange, _| reply_busy(exchange, 429, "1")),
        "H10-429-date" => HttpFault::reject_once(|exchange, _| reply_busy(exchange, 429, &in_two_seconds())),
        "H10-429-zero" => HttpFault::reject_once(|exchange, _| reply_busy(exchange, 429, "0")),
        "H10-429-huge" => HttpFault::reject_once(|exchange, _| reply_busy(exchange, 429, "1000000000")),
        "H10-429-garbage" => HttpFault::reject_once(|exchange, _| reply_busy(exchange, 429, "soon; maybe -1")),
        "H10-503" => reject_once_arrived(|exchange, _| reply_busy(exchange, 503, "1")),
        "H10-503-date" => reject_once_arrived(|exchange, _| reply_busy(exchange, 503, &in_two_seconds())),
        "H10-503-zero" => reject_once_arrived(|exchange, _| reply_busy(exchange, 503, "0")),
        "H10-503-huge" => reject_once_arrived(|exchange, _| reply_busy(exchange, 503, "1000000000")),
        "H10-503-garbage" => reject_once_arrived(|exchange, _| reply_busy(exchange, 503, "soon; maybe -1")),
        _ => return None,
    })
}

fn unauthorized(act: HttpFaultAction) -> HttpFault {
    HttpFault::Strike { act, stage: RequestStage::Refused, times: FaultRepeat::UntilAuthorized }
}

fn reject_always(act: HttpFaultAction) -> HttpFault {
    HttpFault::Strike { act, stage: RequestStage::Arrived, times: FaultRepeat::Always }
}

fn reject_once_arrived(act: HttpFaultAction) -> HttpFault {
    HttpFault::Strike { act, stage: RequestStage::Arrived, times: FaultRepeat::Once }
}

fn always_failing(act: HttpFaultAction) -> HttpFault {
    HttpFault::Strike { act, stage: RequestStage::Answered, times: FaultRepeat::Always }
}

pub fn reply_error(exchange: &FaultExchange<'_>, status: u16, refusal: &ErrorReply) {
    exchange.json(status, frame::error(&exchange.message.id(), refusal));
}

/// Ends the session without the client's involvement; its id becomes unknown.
fn forget_session(exchange: &FaultExchange<'_>, _: &str) {
    let id = exchange.request.header("mcp-session-id").unwrap_or_default();
    lock_ignoring_poison(&exchange.server.sessions).remove(id);
    exchange.json(404, frame::error(&Value::Null, &ErrorReply::new(-32001, "Session not found")));
}

fn missing_capability(exchange: &FaultExchange<'_>, _: &str) {
    let data = Some(json!({ "requiredCapabilities": { "elicitation": {} } }));
    let refusal = ErrorReply { code: -32021, message: "Missing required client capability".to_owned(), data };
    reply_error(exchange, 400, &refusal);
}

fn reply_busy(exchange: &FaultExchange<'_>, status: u16, retry_after: &str) {
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
