//! One call over HTTP: its POST, and whatever brings the answer to it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use wharf_net::{BodyError, Method, Redirects, Request, Response, SendError, StatusCode, header};
use wharf_spec::Untrusted;
use wharf_wire::{Era, RpcError, View, code, scan};

use super::Form;
use super::answer::{EXCERPT, Events, Kind, Piece, excerpt, finish, message_of};
use super::link::{HttpLink, Queued};
use super::order::{LAST_EVENT, Order, SESSION};
use super::session::Place;
use super::status::{Meaning, meaning, retry_after, spread};
use super::tasks::Departure;
use super::trouble;
use crate::engine::{Channel, Engine, Heard, Left, Nonsense};
use crate::error::{CallError, Gone, GoneCause};

/// How often a server that asks for patience is asked again.
const MOST_TRIES: u32 = 5;
/// How long the end of a stream is waited for that has brought its answer.
const AT_END: Duration = Duration::from_millis(2);
/// Bytes of a refusal that may be a message.
const REFUSAL: usize = 64 << 10;
/// How often a stream that cannot be taken up again is tried for.
const MOST_RESUMES: u32 = 5;
/// What was said so far that a stream taken up again may say once more.
const NAMES_KEPT: usize = 256;
/// Bounds of what a server may ask for before a stream is taken up again.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

pub(super) struct Exchange {
    pub link: Arc<HttpLink>,
    pub engine: Arc<Engine>,
    pub order: Order,
    pub departure: Departure,
    pub queued: Option<Queued>,
}

/// What comes after an attempt.
enum Next {
    Done,
    /// The same once more, after a while.
    Again(Duration),
}

impl Exchange {
    /// Sees the call through to an outcome. Dropped, it closes whatever is open.
    pub async fn run(mut self) {
        let link = self.link.clone();
        let _room = match self.order.lasts {
            true => None,
            false => link.room.acquire().await.ok(),
        };
        let mut tries = 0;
        while let Next::Again(wait) = self.attempt(tries).await {
            tries += 1;
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&mut self, tries: u32) -> Next {
        let place = match self.link.place().await {
            Ok(place) => place,
            Err(why) => return self.lose(Gone::clone(&why), Left::Never),
        };
        self.departure.note();
        match self.link.post(&place, &self.order).await {
            Ok(response) => {
                self.queued = None;
                self.judge(response, &place, tries).await
            }
            Err(error) => self.unsent(&error, tries),
        }
    }

    fn unsent(&self, error: &SendError, tries: u32) -> Next {
        match error {
            SendError::Redirected { .. } | SendError::RedirectLoop => self.fail(CallError::Protocol(error.to_string())),
            _ if !error.never_left() => self.lose(trouble::unsent(error), Left::Perhaps),
            // Nobody has seen it: once more cannot do it twice.
            SendError::Refused(_) | SendError::Unresolved { .. } if tries == 0 => {
                self.departure.take_back();
                Next::Again(spread(self.link.limits.send_again))
            }
            _ => self.lose(trouble::unsent(error), Left::Never),
        }
    }

    async fn judge(&mut self, response: Response, place: &Place, tries: u32) -> Next {
        if response.status.is_success() {
            return self.answered(response, place).await;
        }
        let in_session = place.id.is_some() && self.order.era == Era::Handshake && !self.order.opens;
        match meaning(response.status, self.order.effect, in_session) {
            Meaning::Login => self.login(response).await,
            Meaning::Later => self.later(response, tries).await,
            Meaning::SessionExpired => self.forgotten(place),
            Meaning::Refused | Meaning::Unclear => self.refused(response, place, in_session).await,
        }
    }

    async fn answered(&mut self, mut response: Response, place: &Place) -> Next {
        if self.order.opens && self.link.form == Form::Streamable {
            self.link.session.adopt(response.headers.get(SESSION));
        }
        let kind = Kind::of(&response.headers);
        if self.link.form == Form::Sse {
            return self.taken(response, kind).await;
        }
        match kind {
            Kind::Events => self.follow(Events::new(response.body, &self.link.limits), place).await,
            Kind::Json => match response.body.collect(self.link.limits.message).await {
                Ok(body) if body.trim_ascii().is_empty() => self.no_answer(response.status, ""),
                Ok(body) => self.deliver(&body, Channel::Body).map_or_else(|next| next, |_| Next::Done),
                Err(error) => self.unread(&error),
            },
            Kind::Other => {
                let shown = excerpt(&mut response.body).await;
                self.no_answer(response.status, &shown)
            }
        }
    }

    fn no_answer(&self, status: StatusCode, shown: &str) -> Next {
        let what = if shown.is_empty() { String::new() } else { format!(": {shown}") };
        self.fail(CallError::Protocol(format!("HTTP {status} without an answer{what}")))
    }

    fn unread(&self, error: &BodyError) -> Next {
        match error {
            BodyError::TooLarge { limit } => self.fail(CallError::TooLarge { limit: *limit }),
            BodyError::Broken(_) => self.lose(trouble::cut(&error.to_string()), Left::Perhaps),
        }
    }

    /// Before 2025-03-26 a POST is only taken; the answer comes on the stream. Some servers put it here all the same.
    async fn taken(&self, mut response: Response, kind: Kind) -> Next {
        if kind == Kind::Json
            && let Ok(body) = response.body.collect(self.link.limits.message).await
        {
            if !body.trim_ascii().is_empty() {
                let _ = self.deliver(&body, Channel::Shared);
            }
        } else {
            finish(response.body).await;
        }
        Next::Done
    }

    /// Reads a stream until it has brought the answer, taking it up again where that can be done.
    async fn follow(&mut self, mut events: Events, place: &Place) -> Next {
        let channel = if self.order.era == Era::Stateless { Channel::Own } else { Channel::Shared };
        let mut past = Past::default();
        loop {
            match events.next().await {
                Piece::Event(event) => {
                    if !past.is_new(event.id.as_deref()) {
                        continue;
                    }
                    let Some(message) = message_of(event) else { continue };
                    match self.deliver_at_end(&message, channel, &mut events).await {
                        Ok(Heard::Answer) => {
                            finish(events.into_body()).await;
                            return Next::Done;
                        }
                        Ok(Heard::Other) => {}
                        Err(next) => return next,
                    }
                }
                Piece::TooLarge => return self.fail(CallError::TooLarge { limit: self.link.limits.message }),
                Piece::End(what) => {
                    past.note(&events);
                    events = match self.resume(&past, place, &what).await {
                        Ok(events) => events,
                        Err(next) => return next,
                    };
                }
            }
        }
    }

    /// Delivers a message. If it is the answer, what ends the stream is read before anybody is woken, where it comes at
    /// once as it should: then the connection is free for what is asked next.
    async fn deliver_at_end(&self, message: &Bytes, channel: Channel, events: &mut Events) -> Result<Heard, Next> {
        let mut wakers = Vec::new();
        let heard = self.engine.deliver_for(self.order.id, message, channel, &mut wakers);
        if matches!(heard, Ok(Heard::Answer)) {
            let _ = tokio::time::timeout(AT_END, events.next()).await;
        }
        wakers.into_iter().for_each(std::task::Waker::wake);
        heard.map_err(|nonsense| self.nonsense(nonsense))
    }

    /// Takes up a stream of the handshake eras where it was cut (2025-11-25, basic/transports): always by GET.
    async fn resume(&self, past: &Past, place: &Place, what: &str) -> Result<Events, Next> {
        let last = match &past.last {
            Some(last) if self.order.era == Era::Handshake => last,
            _ => return Err(self.lose(trouble::cut(what), Left::Perhaps)),
        };
        let wait = past.retry.unwrap_or(self.link.limits.resume).clamp(SHORTEST_RETRY, LONGEST_RETRY);
        for _ in 0..MOST_RESUMES {
            tokio::time::sleep(wait).await;
            let Some(request) = self.link.stream_request(place, Some(last)) else { break };
            match self.link.net.send(request).await {
                Ok(response) if response.status.is_success() && Kind::of(&response.headers) == Kind::Events => {
                    return Ok(Events::new(response.body, &self.link.limits));
                }
                Ok(response) if response.status.is_server_error() => {}
                Ok(response) if response.status == StatusCode::NOT_FOUND && place.id.is_some() => {
                    return Err(self.forgotten(place));
                }
                Ok(response) => {
                    let what = format!("{what}, and it cannot be taken up again (HTTP {})", response.status);
                    return Err(self.lose(trouble::cut(&what), Left::Perhaps));
                }
                Err(_) => {}
            }
        }
        Err(self.lose(trouble::cut(&format!("{what}, and it cannot be taken up again")), Left::Perhaps))
    }

    async fn login(&self, mut response: Response) -> Next {
        let challenge = response.headers.get(header::WWW_AUTHENTICATE);
        let challenge = challenge.map(|text| Untrusted::from_bytes(text.as_bytes()).shortened(300).to_string());
        let status = response.status.as_u16();
        let said = excerpt(&mut response.body).await;
        self.fail(CallError::Unauthorized { status, challenge, said })
    }

    async fn later(&self, mut response: Response, tries: u32) -> Next {
        let asked = retry_after(&response.headers, SystemTime::now());
        let wait = spread(asked.unwrap_or(self.link.limits.send_again * 2u32.pow(tries)));
        let left = self.engine.time_left(self.order.id).unwrap_or_default();
        if tries < MOST_TRIES && wait < left {
            finish(response.body).await;
            return Next::Again(wait);
        }
        let (status, detail) = (response.status.as_u16(), excerpt(&mut response.body).await);
        self.fail(CallError::Status { status, detail, retry_after: asked })
    }

    fn forgotten(&self, place: &Place) -> Next {
        self.link.expired(place);
        self.lose(trouble::expired(), Left::Perhaps)
    }

    /// A status that is an error. Often the message that says why comes with it.
    async fn refused(&self, mut response: Response, place: &Place, in_session: bool) -> Next {
        let status = response.status;
        let body = tokio::time::timeout(self.link.limits.dial, response.body.collect(REFUSAL)).await;
        let body = body.ok().and_then(Result::ok).unwrap_or_default();
        if let Some(error) = refusal_in(&body, &self.link.limits) {
            if in_session && means_no_session(status, &error) {
                return self.forgotten(place);
            }
            if error.code == code::UNSUPPORTED_REVISION && self.link.dialect.revision().is_some() {
                return self.changed();
            }
            if self.order.opens
                && matches!(status.as_u16(), 400 | 404 | 405)
                && error.code != code::UNSUPPORTED_REVISION
            {
                // Perhaps it speaks the older form: then the status says more than the message.
                let message = Untrusted::new(error.message.as_str());
                let detail = format!("{} (code {})", message.shortened(200), error.code);
                return self.fail(CallError::Status { status: status.as_u16(), detail, retry_after: None });
            }
            return self.deliver(&body, Channel::Refusal).map_or_else(|next| next, |_| Next::Done);
        }
        let shown = Untrusted::from_bytes(body.trim_ascii()).shortened(EXCERPT).to_string();
        if status.is_server_error() {
            return self.lose(trouble::status(status, &shown), Left::Perhaps);
        }
        self.fail(CallError::Status { status: status.as_u16(), detail: shown, retry_after: None })
    }

    /// The server no longer speaks the revision that was agreed on; whoever connects again learns what it does speak.
    fn changed(&self) -> Next {
        tracing::warn!("the server no longer speaks the revision that was agreed on");
        self.lose(trouble::changed(), Left::Never);
        self.engine.lose(trouble::changed());
        Next::Done
    }

    fn deliver(&self, message: &Bytes, channel: Channel) -> Result<Heard, Next> {
        let mut wakers = Vec::new();
        let heard = self.engine.deliver_for(self.order.id, message, channel, &mut wakers);
        wakers.into_iter().for_each(std::task::Waker::wake);
        heard.map_err(|nonsense| self.nonsense(nonsense))
    }

    fn nonsense(&self, Nonsense(what): Nonsense) -> Next {
        self.engine.lose(Gone::because(GoneCause::NotMcp(what)));
        Next::Done
    }

    fn fail(&self, error: CallError) -> Next {
        self.engine.fail_call(self.order.id, error);
        Next::Done
    }

    fn lose(&self, gone: Gone, left: Left) -> Next {
        self.engine.lose_call(self.order.id, gone, left);
        Next::Done
    }
}

/// What a call's streams have said so far.
#[derive(Default)]
struct Past {
    last: Option<String>,
    retry: Option<Duration>,
    names: std::collections::VecDeque<String>,
}

impl Past {
    /// Whether an event has not been seen: a stream that is taken up again may repeat some.
    fn is_new(&mut self, id: Option<&str>) -> bool {
        let Some(id) = id.filter(|id| !id.is_empty()) else { return true };
        if self.names.iter().any(|name| name == id) {
            return false;
        }
        if self.names.len() == NAMES_KEPT {
            self.names.pop_front();
        }
        self.names.push_back(id.to_owned());
        true
    }

    fn note(&mut self, events: &Events) {
        self.last = events.last_id().map(str::to_owned).or(self.last.take());
        self.retry = events.retry().or(self.retry);
    }
}

/// The error a body carries, if it is a message that does.
fn refusal_in(body: &Bytes, limits: &crate::limits::Limits) -> Option<RpcError> {
    let envelope = scan(body).ok().filter(|envelope| envelope.method.is_none())?;
    RpcError::view(envelope.error?.copy(body), &limits.bounds).ok()
}

/// Servers on the TypeScript SDK 1 that were started anew say 400 instead of 404 of a session they do not know.
fn means_no_session(status: StatusCode, error: &RpcError) -> bool {
    status == StatusCode::BAD_REQUEST && error.code == -32000 && error.message.to_ascii_lowercase().contains("session")
}

impl HttpLink {
    /// A GET for a stream: a new one, or one to be taken up after an event.
    pub fn stream_request(&self, place: &Place, after: Option<&str>) -> Option<Request> {
        let mut headers = self.headers.listening(self.dialect.revision());
        if let Some(id) = &place.id {
            headers.insert(SESSION, id.clone());
        }
        if let Some(last) = after {
            headers.insert(LAST_EVENT, last.parse().ok()?);
        }
        let url = place.url.clone();
        Some(Request { method: Method::GET, url, headers, body: Bytes::new(), redirects: Redirects::SameOrigin })
    }
}
