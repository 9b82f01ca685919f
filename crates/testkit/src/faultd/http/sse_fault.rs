//! Faults specific to HTTP+SSE, L01 to L10.

use super::server::HttpFaultServer;

/// A fault of HTTP+SSE. Faults of a single request occur in the configured phase.
#[derive(Clone, Copy)]
pub enum SseFault {
    /// The stream is accepted, but not even its headers are sent.
    NoHeaders,
    /// The POST endpoints announced, in order, given the session id.
    Endpoints(fn(&HttpFaultServer, &str) -> Vec<String>),
    NoAnswer,
    PostFails(u16),
    PostCut,
    /// The stream ends instead of the response, which follows on the next stream.
    Drops,
    AnswerInBody {
        both: bool,
    },
    /// Formats the event of the response.
    Events(fn(&str) -> String),
    Pings,
}

impl SseFault {
    pub fn find(name: &str) -> Option<SseFault> {
        Some(match name {
            "L01" => SseFault::Endpoints(|_, _| Vec::new()),
            "L01-headers" => SseFault::NoHeaders,
            "L02" => SseFault::Endpoints(|server, session| {
                vec![format!("http://{}{}", server.elsewhere, default_endpoint(session))]
            }),
            "L02-relative" => SseFault::Endpoints(|server, session| {
                vec![format!("//{}{}", server.elsewhere, default_endpoint(session))]
            }),
            "L02-userinfo" => SseFault::Endpoints(|server, session| {
                vec![format!("http://{}@{}{}", server.address.ip(), server.elsewhere, default_endpoint(session))]
            }),
            "L03-relative" => SseFault::Endpoints(|_, session| vec![format!("message?sessionId={session}")]),
            "L03-dots" => SseFault::Endpoints(|_, session| vec![format!("./x/../message?sessionId={session}")]),
            "L03-query" => SseFault::Endpoints(|_, session| vec![format!("?sessionId={session}")]),
            "L03-absolute" => SseFault::Endpoints(|server, session| {
                vec![format!("http://{}{}", server.address, default_endpoint(session))]
            }),
            "L04" => SseFault::Endpoints(|_, session| {
                vec![default_endpoint(session), format!("/nowhere?sessionId={session}")]
            }),
            "L04-other" => SseFault::Endpoints(|server, session| {
                vec![default_endpoint(session), format!("http://{}{}", server.elsewhere, default_endpoint(session))]
            }),
            "L05" => SseFault::NoAnswer,
            "L06-500" => SseFault::PostFails(500),
            "L06-404" => SseFault::PostFails(404),
            "L06-cut" => SseFault::PostCut,
            "L07" => SseFault::Drops,
            "L08" => SseFault::AnswerInBody { both: false },
            "L08-both" => SseFault::AnswerInBody { both: true },
            "L09" => SseFault::Events(|line| format!("data: {line}\n\n")),
            "L09-others" => SseFault::Events(|line| {
                format!("event: weather\ndata: {{\"rain\":true}}\n\nevent: message\ndata: {line}\n\n")
            }),
            "L09-unknown" => SseFault::Events(|line| format!("event: answer\ndata: {line}\n\n")),
            "L10" => SseFault::Pings,
            _ => return None,
        })
    }

    /// Returns the POST endpoints announced on a new stream.
    pub fn endpoints(flaw: Option<SseFault>, server: &HttpFaultServer, session: &str) -> Vec<String> {
        match flaw {
            Some(SseFault::Endpoints(told)) => told(server, session),
            _ => vec![default_endpoint(session)],
        }
    }

    /// Reports whether the fault concerns a single request instead of the stream.
    pub fn affects_request(self) -> bool {
        !matches!(self, SseFault::NoHeaders | SseFault::Endpoints(_))
    }
}

fn default_endpoint(session: &str) -> String {
    format!("/message?sessionId={session}")
}
