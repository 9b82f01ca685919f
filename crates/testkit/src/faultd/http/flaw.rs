//! Faults specific to HTTP+SSE, L01 to L10.

use super::server::HttpServer;

/// A fault of HTTP+SSE. Faults of a single request occur in the configured phase.
#[derive(Clone, Copy)]
pub enum Flaw {
    /// The stream is accepted, but not even its headers are sent.
    NoHeaders,
    /// The POST endpoints announced, in order, given the session id.
    Endpoints(fn(&HttpServer, &str) -> Vec<String>),
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

impl Flaw {
    pub fn find(name: &str) -> Option<Flaw> {
        Some(match name {
            "L01" => Flaw::Endpoints(|_, _| Vec::new()),
            "L01-headers" => Flaw::NoHeaders,
            "L02" => Flaw::Endpoints(|server, session| vec![format!("http://{}{}", server.elsewhere, usual(session))]),
            "L02-relative" => {
                Flaw::Endpoints(|server, session| vec![format!("//{}{}", server.elsewhere, usual(session))])
            }
            "L02-userinfo" => Flaw::Endpoints(|server, session| {
                vec![format!("http://{}@{}{}", server.address.ip(), server.elsewhere, usual(session))]
            }),
            "L03-relative" => Flaw::Endpoints(|_, session| vec![format!("message?sessionId={session}")]),
            "L03-dots" => Flaw::Endpoints(|_, session| vec![format!("./x/../message?sessionId={session}")]),
            "L03-query" => Flaw::Endpoints(|_, session| vec![format!("?sessionId={session}")]),
            "L03-absolute" => {
                Flaw::Endpoints(|server, session| vec![format!("http://{}{}", server.address, usual(session))])
            }
            "L04" => Flaw::Endpoints(|_, session| vec![usual(session), format!("/nowhere?sessionId={session}")]),
            "L04-other" => Flaw::Endpoints(|server, session| {
                vec![usual(session), format!("http://{}{}", server.elsewhere, usual(session))]
            }),
            "L05" => Flaw::NoAnswer,
            "L06-500" => Flaw::PostFails(500),
            "L06-404" => Flaw::PostFails(404),
            "L06-cut" => Flaw::PostCut,
            "L07" => Flaw::Drops,
            "L08" => Flaw::AnswerInBody { both: false },
            "L08-both" => Flaw::AnswerInBody { both: true },
            "L09" => Flaw::Events(|line| format!("data: {line}\n\n")),
            "L09-others" => Flaw::Events(|line| {
                format!("event: weather\ndata: {{\"rain\":true}}\n\nevent: message\ndata: {line}\n\n")
            }),
            "L09-unknown" => Flaw::Events(|line| format!("event: answer\ndata: {line}\n\n")),
            "L10" => Flaw::Pings,
            _ => return None,
        })
    }

    /// Returns the POST endpoints announced on a new stream.
    pub fn endpoints(flaw: Option<Flaw>, server: &HttpServer, session: &str) -> Vec<String> {
        match flaw {
            Some(Flaw::Endpoints(told)) => told(server, session),
            _ => vec![usual(session)],
        }
    }

    /// Reports whether the fault concerns a single request instead of the stream.
    pub fn strikes(self) -> bool {
        !matches!(self, Flaw::NoHeaders | Flaw::Endpoints(_))
    }
}

fn usual(session: &str) -> String {
    format!("/message?sessionId={session}")
}
