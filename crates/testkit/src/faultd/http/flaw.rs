//! What only HTTP+SSE can have wrong, L01 to L10.

use super::server::HttpServer;

/// A fault of the old form. Those that concern one request are committed at the moment that the phase names.
#[derive(Clone, Copy)]
pub enum Flaw {
    /// The stream is accepted, and not even its headers come.
    NoHeaders,
    /// The places to post to, in the order in which they are told; the session's id is given.
    Endpoints(fn(&HttpServer, &str) -> Vec<String>),
    NoAnswer,
    PostFails(u16),
    PostCut,
    /// The stream ends in place of the answer, which comes on the next stream.
    Drops,
    AnswerInBody {
        both: bool,
    },
    /// How the answer's event is spelled.
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

    /// The places to post to that a new stream is told.
    pub fn endpoints(flaw: Option<Flaw>, server: &HttpServer, session: &str) -> Vec<String> {
        match flaw {
            Some(Flaw::Endpoints(told)) => told(server, session),
            _ => vec![usual(session)],
        }
    }

    /// Whether it concerns one request and not the stream.
    pub fn strikes(self) -> bool {
        !matches!(self, Flaw::NoHeaders | Flaw::Endpoints(_))
    }
}

fn usual(session: &str) -> String {
    format!("/message?sessionId={session}")
}
