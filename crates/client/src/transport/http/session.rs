//! Where messages go: the address, and in the handshake eras the session they belong to.
//!
//! A server that has forgotten its session is met again with the same `initialize` as before. Messages wait for that;
//! those that were under way are not sent again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;
use url::Url;
use wharf_net::{HeaderValue, Method, Redirects, Request};
use wharf_wire::{Era, Raw, scan};

use super::Form;
use super::answer;
use super::link::HttpLink;
use super::order::{Order, SESSION};
use super::trouble;
use crate::era::{self, INITIALIZED};
use crate::error::Gone;

/// Between two attempts to meet a server again that could not be met.
const AGAIN: Duration = Duration::from_secs(1);
/// Longer names of a session are none.
const LONGEST: usize = 4 << 10;

/// Where messages go at present.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub url: Url,
    /// The session's name: a secret of ours and the server's.
    pub id: Option<HeaderValue>,
    /// Which of the places so far it is.
    number: u64,
}

impl Place {
    pub fn new(url: Url) -> Self {
        Self { url, id: None, number: 0 }
    }

    /// The same place, under the name a server has given.
    fn named(&self, id: Option<&HeaderValue>) -> Self {
        let good = |id: &&HeaderValue| id.len() <= LONGEST && id.as_bytes().iter().all(u8::is_ascii_graphic);
        let id = id.filter(good).cloned().map(|mut id| {
            id.set_sensitive(true);
            id
        });
        Self { id, ..self.clone() }
    }
}

#[derive(Clone)]
enum State {
    /// Not met yet, or being met again.
    Away,
    Joined(Arc<Place>),
    /// Could not be met again.
    Lost {
        why: Arc<Gone>,
        at: Instant,
    },
}

pub(super) struct Session {
    state: watch::Sender<State>,
    /// Places so far.
    places: AtomicU64,
    /// How the session was opened.
    initialize: OnceLock<Bytes>,
}

impl Default for Session {
    fn default() -> Self {
        Self { state: watch::Sender::new(State::Away), places: AtomicU64::new(0), initialize: OnceLock::new() }
    }
}

impl Session {
    pub fn remember(&self, initialize: Bytes) {
        let _ = self.initialize.set(initialize);
    }

    /// How the session was opened, where there is one.
    pub fn initialize(&self) -> Option<Bytes> {
        self.initialize.get().cloned()
    }

    /// Messages go here from now on.
    pub fn join(&self, mut place: Place) {
        place.number = self.places.fetch_add(1, Ordering::Relaxed) + 1;
        self.state.send_replace(State::Joined(Arc::new(place)));
    }

    /// The server has named the session.
    pub fn adopt(&self, id: Option<&HeaderValue>) {
        self.state.send_modify(|state| {
            if let State::Joined(place) = state {
                *place = Arc::new(place.named(id));
            }
        });
    }

    /// Messages go nowhere until it is met again. False when that is known already.
    pub fn leave(&self, place: &Place) -> bool {
        self.state.send_if_modified(|state| {
            let current = matches!(state, State::Joined(joined) if joined.number == place.number);
            if current {
                *state = State::Away;
            }
            current
        })
    }

    pub fn lose(&self, why: Gone) {
        self.state.send_replace(State::Lost { why: Arc::new(why), at: Instant::now() });
    }

    /// Where messages go, if anywhere.
    pub fn current(&self) -> Option<Arc<Place>> {
        match &*self.state.borrow() {
            State::Joined(place) => Some(place.clone()),
            _ => None,
        }
    }

    /// Takes the attempt to meet a lost server again upon itself, if it is time for that.
    fn take_attempt(&self) -> bool {
        self.state.send_if_modified(|state| {
            let due = matches!(state, State::Lost { at, .. } if at.elapsed() >= AGAIN);
            if due {
                *state = State::Away;
            }
            due
        })
    }

    async fn settled(&self) -> Result<Arc<Place>, Arc<Gone>> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Away)).await;
        match settled.as_deref() {
            Ok(State::Joined(place)) => Ok(place.clone()),
            Ok(State::Lost { why, .. }) => Err(why.clone()),
            // The sender lives as long as this does.
            Ok(State::Away) | Err(_) => Err(Arc::new(trouble::expired())),
        }
    }
}

impl HttpLink {
    /// Where messages go, once that is known.
    pub async fn place(self: &Arc<Self>) -> Result<Arc<Place>, Arc<Gone>> {
        if let Some(place) = self.session.current() {
            return Ok(place);
        }
        if self.session.take_attempt() {
            self.meet_again();
        }
        self.session.settled().await
    }

    /// The server has forgotten the session.
    pub fn expired(self: &Arc<Self>, place: &Place) {
        if self.session.leave(place) {
            self.meet_again();
        }
    }

    fn meet_again(self: &Arc<Self>) {
        let link = self.clone();
        self.tasks.upkeep(async move {
            match link.form {
                Form::Streamable => link.rejoin().await,
                Form::Sse => link.reopen().await,
            }
        });
    }

    /// Opens a session anew, as the first one was opened.
    async fn rejoin(self: Arc<Self>) {
        let (Some(initialize), Some(engine)) = (self.session.initialize(), self.engine()) else { return };
        let place = Place::new(self.home.clone());
        match tokio::time::timeout(self.limits.startup, self.introduce(&place, initialize)).await {
            Ok(Ok(place)) => {
                self.session.join(place);
                self.say(Order::word(&self, Bytes::from_static(INITIALIZED.as_bytes()))).await;
                tracing::info!("the server had forgotten the session; a new one is open");
                self.dialect.begun_anew();
                self.listen();
            }
            Ok(Err(why)) if why.is_final() => engine.lose(why),
            Ok(Err(why)) => self.session.lose(why),
            Err(_) => self.session.lose(trouble::unanswered(self.limits.startup)),
        }
    }

    async fn introduce(&self, place: &Place, initialize: Bytes) -> Result<Place, Gone> {
        let order = Order::opening(self, initialize);
        let response = self.post(place, &order).await.map_err(|error| trouble::unsent(&error))?;
        if !response.status.is_success() {
            return Err(trouble::status(response.status, ""));
        }
        let place = place.named(response.headers.get(SESSION));
        let message = answer::first_answer(response, &self.limits).await.map_err(|what| trouble::cut(&what))?;
        self.check_introduction(&message)?;
        Ok(place)
    }

    /// Whether the server is still the one that was met.
    pub fn check_introduction(&self, message: &Bytes) -> Result<(), Gone> {
        let result = scan(message).ok().and_then(|envelope| envelope.result.map(|result| result.copy(message)));
        let judged = era::judge_initialize(result.unwrap_or_else(Raw::empty_object), &self.limits.bounds);
        match judged {
            Ok((revision, _)) if Some(revision) == self.dialect.revision() => Ok(()),
            Ok(_) => Err(trouble::changed()),
            Err(cause) => Err(trouble::cut(&cause.to_string())),
        }
    }

    /// Posts one message.
    pub async fn post(&self, place: &Place, order: &Order) -> Result<wharf_net::Response, wharf_net::SendError> {
        let mut headers = order.headers.clone();
        // In the stateless era whatever a server calls a session is ignored.
        if let Some(id) = place.id.as_ref().filter(|_| order.era == Era::Handshake && !order.opens) {
            headers.insert(SESSION, id.clone());
        }
        let (url, body) = (place.url.clone(), order.body.clone());
        self.net.send(Request { method: Method::POST, url, headers, body, redirects: Redirects::SameOrigin }).await
    }

    /// Posts a message that gets no answer. That it was not taken is noted, and no more can be done.
    pub async fn say(self: &Arc<Self>, order: Order) {
        let Ok(place) = self.place().await else { return };
        match self.post(&place, &order).await {
            Ok(response) if response.status.is_success() => answer::finish(response.body).await,
            Ok(response) if response.status == 404 && place.id.is_some() => self.expired(&place),
            Ok(response) => tracing::debug!(status = response.status.as_u16(), "a notification or reply was not taken"),
            Err(error) => tracing::debug!(%error, "a notification or reply could not be sent"),
        }
    }

    /// Tells the server that the session is over, where there is one.
    pub async fn part(&self) {
        let Some(place) = self.session.current() else { return };
        let (url, Some(id)) = (place.url.clone(), place.id.clone()) else { return };
        let mut headers = self.headers.leaving(self.dialect.revision());
        headers.insert(SESSION, id);
        let request =
            Request { method: Method::DELETE, url, headers, body: Bytes::new(), redirects: Redirects::SameOrigin };
        // Whatever it says: servers that keep no sessions answer 405.
        let _ = self.net.send(request).await;
    }
}
