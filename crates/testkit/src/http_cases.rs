//! All HTTP faults by name, with the applicable forms, phases and eras.
//!
//! The expected client behaviour is defined by the test harness, not here.

pub use crate::faultd::{FaultPhase, Form, ServerEra};

/// One fault, with the forms, phases and eras it applies to.
#[derive(Clone, Copy, Debug)]
pub struct HttpCase {
    /// Unique name.
    pub name: &'static str,
    /// Argument of `faultd http` or `faultd sse`.
    pub fault: &'static str,
    pub forms: &'static [Form],
    /// Applicable phases; the first one is the default of `--phase`.
    pub phases: &'static [FaultPhase],
    pub eras: &'static [ServerEra],
    /// Additional arguments.
    pub args: &'static [&'static str],
    pub about: &'static str,
}

/// Returns the case of a fault in this form, if any.
pub fn find(form: Form, fault: &str) -> Option<&'static HttpCase> {
    CASES.iter().find(|case| case.fault == fault && case.forms.contains(&form))
}

use FaultPhase::{After, Before, During, Ready};

const ALL: &[FaultPhase] = &[During, Before, After];
const IDLE: &[FaultPhase] = &[During, Before, Ready, After];
const CALLS: &[FaultPhase] = &[During];
const ANSWERS: &[FaultPhase] = &[During, Before];
const OPENING: &[FaultPhase] = &[Before];
const BOTH: &[ServerEra] = &[ServerEra::Modern, ServerEra::Legacy];
const MODERN: &[ServerEra] = &[ServerEra::Modern];
const LEGACY: &[ServerEra] = &[ServerEra::Legacy];
const EVERY: &[ServerEra] =
    &[ServerEra::Modern, ServerEra::Legacy, ServerEra::Revision("2025-06-18"), ServerEra::Revision("2025-03-26")];
const HANDSHAKE: &[ServerEra] =
    &[ServerEra::Legacy, ServerEra::Revision("2025-06-18"), ServerEra::Revision("2025-03-26")];
const OLDEST: &[ServerEra] = &[ServerEra::Revision("2024-11-05")];

/// The catalogue of `faults.md`, 2.2 and 2.3, as far as a server can cause them.
pub const CASES: &[HttpCase] = &[
    row("ok", CALLS, EVERY, "a healthy server, answers as JSON"),
    row_with_arguments("ok-sse", "ok", &["--answers", "sse"], EVERY, "a healthy server, answers as event streams"),
    row_with_arguments(
        "ok-bare",
        "ok",
        &["--bare"],
        HANDSHAKE,
        "a healthy server without sessions and GET: both are 405",
    ),
    row("H04", IDLE, BOTH, "401 without a challenge, until a request is authorized"),
    row("H04-challenge", IDLE, BOTH, "401 with a challenge, until a request is authorized"),
    row("H04-malformed", ALL, BOTH, "401 with a malformed challenge"),
    row("H04-two", ALL, BOTH, "401 with two challenges"),
    row("H06", ALL, BOTH, "403 and no reason, always"),
    row("H06-scope", ALL, BOTH, "403 insufficient_scope, once"),
    row("H07-method", ALL, MODERN, "404 with -32601"),
    row("H07-plain", ALL, BOTH, "404 with a page"),
    row("H07-session", &[During, Ready, After], HANDSHAKE, "404: the server has forgotten the session"),
    row("H08-version", ALL, MODERN, "400 with -32022 naming the same revision"),
    row("H08-capability", ALL, MODERN, "400 with -32021"),
    row("H08-header", ALL, MODERN, "400 with -32020"),
    row("H09-405", ALL, BOTH, "405 to a POST"),
    row("H09-406", ALL, BOTH, "406"),
    row("H09-413", ALL, BOTH, "413"),
    row("H09-415", ALL, BOTH, "415"),
    row("H09-421", ALL, BOTH, "421"),
    row("H10-429", ALL, BOTH, "429, Retry-After in seconds, then healthy"),
    row("H10-429-date", ALL, BOTH, "429, Retry-After as a date, then healthy"),
    row("H10-429-zero", ALL, BOTH, "429, Retry-After 0, then healthy"),
    row("H10-429-huge", ALL, BOTH, "429, Retry-After 1e9, then healthy"),
    row("H10-429-garbage", ALL, BOTH, "429, Retry-After unreadable, then healthy"),
    row("H10-503", ALL, BOTH, "503, Retry-After in seconds, then healthy"),
    row("H10-503-date", ALL, BOTH, "503, Retry-After as a date, then healthy"),
    row("H10-503-zero", ALL, BOTH, "503, Retry-After 0, then healthy"),
    row("H10-503-huge", ALL, BOTH, "503, Retry-After 1e9, then healthy"),
    row("H10-503-garbage", ALL, BOTH, "503, Retry-After unreadable, then healthy"),
    row("H11-500", ALL, BOTH, "500 once; the request was executed"),
    row("H11-502", ALL, BOTH, "502 once; the request was executed"),
    row("H11-504", ALL, BOTH, "504 once; the request was executed"),
    row("H11-500-always", ALL, BOTH, "500 always"),
    row("H11-502-always", ALL, BOTH, "502 always"),
    row("H11-504-always", ALL, BOTH, "504 always"),
    row("H12-type", ANSWERS, BOTH, "the answer as text/plain"),
    row("H12-untyped", ANSWERS, BOTH, "the answer without a type"),
    row("H12-charset", ANSWERS, BOTH, "the type with ;charset=utf-8, which is fine"),
    row("H12-login", ALL, BOTH, "200 with a login page"),
    row("H13-202", ANSWERS, BOTH, "202 to a request"),
    row("H13-204", ANSWERS, BOTH, "204 to a request"),
    row("H13-empty", ANSWERS, BOTH, "200 with an empty body"),
    row("H14-long", ALL, BOTH, "Content-Length longer than the body"),
    row("H14-short", ALL, BOTH, "Content-Length shorter than the body"),
    row("H14-crlf", ALL, BOTH, "a chunk that does not end with CRLF"),
    row("H14-overflow", ALL, BOTH, "a chunk size of 2^68"),
    row("H15", ANSWERS, BOTH, "the answer, and garbage behind it"),
    row("H16-id", ANSWERS, BOTH, "the answer to another request"),
    row("H16-array", ANSWERS, EVERY, "the answer in an array"),
    row("H16-notification", ANSWERS, BOTH, "a notification and no answer"),
    row("H17-event", ANSWERS, BOTH, "the stream is cut within the answer"),
    row("H17-character", ANSWERS, BOTH, "the stream is cut within a character"),
    row("H17-headers", ANSWERS, BOTH, "the stream is cut after the headers"),
    row("H17-reset", ANSWERS, BOTH, "the connection is reset within the answer"),
    row("H17-event-ids", CALLS, HANDSHAKE, "cut within the response; it can be resumed"),
    row("H17-character-ids", CALLS, HANDSHAKE, "cut within a character, and can be resumed"),
    row("H17-headers-ids", CALLS, HANDSHAKE, "cut after the priming event, and can be resumed"),
    row("H18", ANSWERS, BOTH, "the stream ends without the answer"),
    row("H18-ids", CALLS, HANDSHAKE, "the stream ends after the priming event, and can be resumed"),
    row("H19-comments", ANSWERS, BOTH, "ten minutes of comments, then the answer"),
    row("H19-empty", ANSWERS, BOTH, "--count (1e6) empty events, then the answer"),
    row("H19-retry-zero", CALLS, BOTH, "retry: 0, and in the handshake era a resumption"),
    row("H19-retry-huge", CALLS, BOTH, "retry: 1e9, and in the handshake era a resumption"),
    row("H19-retry-word", CALLS, BOTH, "retry: abc, and in the handshake era a resumption"),
    row("H19-nul", ANSWERS, BOTH, "an event id with a NUL"),
    row("H19-cr", ANSWERS, BOTH, "lines end with CR"),
    row("H19-crlf", ANSWERS, BOTH, "lines end with CRLF"),
    row("H19-mixed", ANSWERS, BOTH, "lines end with CR, LF and CRLF, also across chunks"),
    row("H19-bom", ANSWERS, BOTH, "a byte order mark before the events"),
    row("H19-nospace", ANSWERS, BOTH, "no space after the colons"),
    row("H19-lines", ANSWERS, BOTH, "an event of --count (10,000) lines"),
    row("H20", CALLS, HANDSHAKE, "the stream ends; the response follows after resuming"),
    row("H20-duplicates", CALLS, HANDSHAKE, "resuming replays received events, and the response twice"),
    row("H20-gap", CALLS, HANDSHAKE, "resuming skips events"),
    row("H20-refused", CALLS, HANDSHAKE, "resuming is answered with 405"),
    row("H20-ignored", CALLS, HANDSHAKE, "resuming gives a stream without the answer"),
    row("H21-twice", ANSWERS, BOTH, "the answer twice on its stream, the second marked duplicate"),
    row("H21-after", ANSWERS, BOTH, "more data after the answer"),
    row("H22", CALLS, BOTH, "progress for unknown tokens, and backwards"),
    row("H23", ANSWERS, MODERN, "server requests in the stateless era"),
    row("H24-301", ALL, BOTH, "301 within the origin"),
    row("H24-302", ALL, BOTH, "302 within the origin"),
    row("H24-303", ALL, BOTH, "303 within the origin"),
    row("H24-307", ALL, BOTH, "307 within the origin"),
    row("H24-308", ALL, BOTH, "308 within the origin"),
    row("H24-301-other", ALL, BOTH, "301 to another origin"),
    row("H24-302-other", ALL, BOTH, "302 to another origin"),
    row("H24-303-other", ALL, BOTH, "303 to another origin"),
    row("H24-307-other", ALL, BOTH, "307 to another origin"),
    row("H24-308-other", ALL, BOTH, "308 to another origin"),
    row("H24-nowhere", ANSWERS, BOTH, "307 without a Location"),
    row("H24-garbage", ANSWERS, BOTH, "307 to an invalid URL"),
    row("H24-loop", ANSWERS, BOTH, "307 to itself, always"),
    row("H25", CALLS, BOTH, "closes the connection after each response without announcing it"),
    row("H25-reset", CALLS, BOTH, "resets the connection when it is used again"),
    row("H27-headers", ANSWERS, BOTH, "one byte a second from the status line on"),
    row("H27-body", ANSWERS, BOTH, "one byte a second from the body on"),
    row("H28", ANSWERS, BOTH, "a gzip bomb of --bytes (10 GiB)"),
    row("H28-fine", ANSWERS, BOTH, "valid gzip"),
    row("H28-trailer", ANSWERS, BOTH, "a gzip whose checksum is wrong"),
    row("H28-twice", ANSWERS, BOTH, "gzip within gzip, declared as such"),
    row("H28-lie", ANSWERS, BOTH, "declared as gzip but plain"),
    row("H28-deflate", ANSWERS, BOTH, "declared as gzip but raw deflate"),
    row("H29-large", ANSWERS, BOTH, "a header of 64 KiB"),
    row("H29-many", ANSWERS, BOTH, "10,000 headers"),
    row("H29-lengths", ANSWERS, BOTH, "two lengths that differ"),
    row("H29-both", ANSWERS, BOTH, "a length and chunks at once"),
    row("H34", CALLS, BOTH, "the stream of notifications drops at once, again and again"),
    row("H34-news", CALLS, BOTH, "it drops after five seconds and a notification, again and again"),
    row("H35-silent", CALLS, MODERN, "subscriptions/listen is never acknowledged"),
    row("H35-early", CALLS, MODERN, "notifications before the acknowledgement"),
    row("H35-smaller", CALLS, MODERN, "less is acknowledged than requested"),
    row("H36-result", CALLS, MODERN, "subscriptions/listen ends with a result"),
    row("H36-cancelled", CALLS, MODERN, "subscriptions/listen ends with notifications/cancelled"),
    row("H36-both", CALLS, MODERN, "subscriptions/listen ends with both"),
    row("H36-closed", CALLS, MODERN, "subscriptions/listen is cut"),
    row("H37", CALLS, BOTH, "switches to the other era after the opening"),
    row("H38", CALLS, MODERN, "a call is retried with a state that is hard to copy"),
    row("H38-changed", CALLS, MODERN, "a call is retried three times, each with another state"),
    row("H38-inputs", CALLS, MODERN, "a call is retried with two user responses"),
    row("H38-endless", CALLS, MODERN, "a call requires input endlessly"),
    row("H39", CALLS, BOTH, "the list changes right after it was listed, well within its minute"),
    row("H39-race", CALLS, BOTH, "the returned list is already outdated"),
    row_with_arguments("H40", "H40", &["--pages", "3"], BOTH, "a cursor is lost once"),
    row_with_arguments("H40-always", "H40-always", &["--pages", "3"], BOTH, "every cursor is lost"),
    row("H42", CALLS, BOTH, "hangs before the headers"),
    row("H42-stream", CALLS, BOTH, "hangs after the headers"),
    row("endless-json", ANSWERS, BOTH, "an answer that never ends"),
    row("endless-sse-event", ANSWERS, BOTH, "an event that never ends"),
    row("success-not-discover", OPENING, LEGACY, "answers discover with an empty object"),
    row("probe-200", OPENING, LEGACY, "answers discover with -32601, 200 and an event stream"),
    row("probe-page", OPENING, LEGACY, "answers discover with 400 and a page"),
    row("probe-empty", OPENING, LEGACY, "answers discover with 405 and nothing"),
    row("32022-legacy", OPENING, LEGACY, "answers discover with -32022 naming handshake revisions"),
    row("32022-disjoint", OPENING, MODERN, "answers everything with -32022 naming 2031-01-01"),
    row("discover-no-overlap", OPENING, LEGACY, "a valid DiscoverResult offering 2031-01-01; initialize works"),
    sse_row("sse-ok", "ok", CALLS, "a healthy HTTP+SSE server"),
    sse_row("L01", "L01", OPENING, "no endpoint"),
    sse_row("L01-headers", "L01-headers", OPENING, "not even headers"),
    sse_row("L02", "L02", OPENING, "an endpoint at another origin"),
    sse_row("L02-relative", "L02-relative", OPENING, "an endpoint at another origin, without its scheme"),
    sse_row("L02-userinfo", "L02-userinfo", OPENING, "an endpoint at another origin, disguised by a user name"),
    sse_row("L03-relative", "L03-relative", OPENING, "a relative endpoint"),
    sse_row("L03-dots", "L03-dots", OPENING, "a relative endpoint with dots in it"),
    sse_row("L03-query", "L03-query", OPENING, "an endpoint that is only a query"),
    sse_row("L03-absolute", "L03-absolute", OPENING, "an absolute endpoint at the same origin"),
    sse_row("L04", "L04", OPENING, "a second endpoint, which is wrong"),
    sse_row("L04-other", "L04-other", OPENING, "a second endpoint at another origin"),
    sse_row("L05", "L05", ANSWERS, "202, and no answer on the stream"),
    sse_row("L06-500", "L06-500", ANSWERS, "500 to a POST, the stream is healthy"),
    sse_row("L06-404", "L06-404", ANSWERS, "404 to a POST, the stream is healthy"),
    sse_row("L06-cut", "L06-cut", ANSWERS, "a POST's connection ends, the stream is healthy"),
    sse_row("L07", "L07", ALL, "the stream drops; the answer comes on the next one"),
    sse_row("L08", "L08", ANSWERS, "the answer in the POST's body"),
    sse_row("L08-both", "L08-both", ANSWERS, "the answer in the POST's body and on the stream"),
    sse_row("L09", "L09", ANSWERS, "an event without a name"),
    sse_row("L09-others", "L09-others", ANSWERS, "an event with an unknown name before the answer"),
    sse_row("L09-unknown", "L09-unknown", ANSWERS, "the answer in an event with an unknown name"),
    sse_row("L10", "L10", ANSWERS, "--count (40) seconds of comments, then the answer"),
];

const fn row(
    name: &'static str,
    phases: &'static [FaultPhase],
    eras: &'static [ServerEra],
    about: &'static str,
) -> HttpCase {
    HttpCase { name, fault: name, forms: &[Form::Http], phases, eras, args: &[], about }
}

const fn row_with_arguments(
    name: &'static str,
    fault: &'static str,
    args: &'static [&'static str],
    eras: &'static [ServerEra],
    about: &'static str,
) -> HttpCase {
    HttpCase { name, fault, forms: &[Form::Http], phases: CALLS, eras, args, about }
}

/// Creates a case for HTTP+SSE.
const fn sse_row(
    name: &'static str,
    fault: &'static str,
    phases: &'static [FaultPhase],
    about: &'static str,
) -> HttpCase {
    HttpCase { name, fault, forms: &[Form::Sse], phases, eras: OLDEST, args: &[], about }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faultd::{FaultOptions, http};

    /// Rows covered by other tests: they need no server, or a different one.
    const COVERED_ELSEWHERE: [u32; 10] = [1, 2, 3, 5, 26, 30, 31, 32, 33, 41];

    #[test]
    fn faultd_supports_every_case() {
        for case in CASES {
            assert!(!case.forms.is_empty() && !case.phases.is_empty() && !case.eras.is_empty(), "{}", case.name);
            for form in case.forms {
                assert!(http::knows(*form, case.fault), "{}", case.name);
                let words = [form.as_str(), case.fault].into_iter().chain(case.args.iter().copied());
                assert!(FaultOptions::parse(words.map(str::to_owned)).is_ok(), "{}", case.name);
            }
        }
        assert!(!http::knows(Form::Http, "H99") && !http::knows(Form::Http, "L05") && !http::knows(Form::Sse, "H04"));
    }

    #[test]
    fn names_are_unique_and_rows_complete() {
        let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        let old = (1..=10).map(|number| format!("L{number:02}"));
        let streamable =
            (1..=42).filter(|number| !COVERED_ELSEWHERE.contains(number)).map(|number| format!("H{number:02}"));
        for row in old.chain(streamable) {
            assert!(names.iter().any(|name| name.starts_with(&row)), "{row}");
        }
    }
}
