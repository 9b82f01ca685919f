//! A server reached over HTTP, in each of the forms the protocol has had there.
//!
//! Streamable HTTP is one POST a message: in the stateless era the answer to it is all there is, and closing it withdraws
//! the call; in the handshake eras there is a session, streams that can be taken up again, and a stream of the
//! server's own. HTTP+SSE (2024-11-05) brings every answer on one stream. All of them end a call on their own where
//! only that call is concerned, and lose the connection where the server as a whole is.

mod answer;
mod confided;
mod exchange;
mod link;
mod listening;
mod order;
mod past;
mod session;
mod sse;
mod status;
mod tasks;
mod trouble;

use std::sync::Arc;

use wharf_net::{Net, NetOptions, Reach};
use wharf_spec::{HttpSpec, Redactor};

use super::{Hold, Mirroring, Open, Opening, Start, Transport};
use crate::engine::Engine;
use crate::error::{ConnectCause, Gone, GoneCause};
use crate::options::ConnectOptions;
use crate::services::Pending;

use confided::Confided;
use link::HttpLink;
use order::Headers;
use session::Place;

/// A server to be dialled, in one form.
#[derive(Clone)]
pub(crate) struct Remote {
    spec: HttpSpec,
    headers: Headers,
    net: Net,
    form: Form,
}

/// The forms there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Streamable,
    Sse,
}

impl Remote {
    /// Checks what is said of the server and makes the way out. Dials nobody.
    pub async fn new(
        spec: &HttpSpec,
        form: Form,
        with: &ConnectOptions,
        redactor: &Arc<Redactor>,
    ) -> Result<Self, ConnectCause> {
        if !matches!(spec.url.scheme(), "http" | "https") || spec.url.host_str().is_none() {
            return Err(ConnectCause::BadAddress(spec.shown_url()));
        }
        let mut spec = spec.clone();
        let mut headers = Headers::new(&spec.headers).map_err(ConnectCause::BadHeader)?;
        headers.log_in(&mut spec.url).map_err(ConnectCause::BadHeader)?;
        let mut options = NetOptions::default();
        options.proxy.clone_from(&spec.proxy);
        options.extra_ca.clone_from(&spec.extra_ca);
        options.client_certificate.clone_from(&spec.client_certificate);
        options.connect_timeout = with.limits.dial;
        // The address was given by whoever owns this program, who may mean their own machine by it.
        options.reach = Reach::Anywhere;
        let mut net = Net::open(&options).await.map_err(ConnectCause::Net)?;
        // Whoever owns this program and says who asks is not contradicted.
        if let Some(authorizer) = with.authorizer.as_ref().filter(|_| !headers.say_who_asks()) {
            net = net.authorized_by(Confided::new(authorizer.clone(), redactor.clone()), &spec.url);
        }
        Ok(Self { spec, headers, net, form })
    }

    /// The same server in another form.
    pub fn in_form(&self, form: Form) -> Self {
        Self { form, ..self.clone() }
    }
}

impl Start for Remote {
    fn start(&self, opening: Opening) -> Pending<Result<Open, ConnectCause>> {
        let remote = self.clone();
        Box::pin(async move { remote.open(&opening).await })
    }

    fn can_restart(&self) -> bool {
        false
    }

    fn is_remote(&self) -> bool {
        true
    }
}

impl Remote {
    async fn open(self, opening: &Opening) -> Result<Open, ConnectCause> {
        let (home, form, mirror) = (self.spec.url.clone(), self.form, self.spec.mirror_arguments);
        let shown = self.spec.shown_url();
        let link = HttpLink::new(self, opening);
        let engine = opening.engine(link.clone());
        link.attach(&engine);
        // Whatever was begun ends with this.
        let held = Held { link: link.clone(), engine: engine.clone() };
        link.keep_time(&engine);
        let (transport, mirroring) = match form {
            Form::Streamable => {
                link.session.join(Place::new(home));
                (Transport::StreamableHttp, if mirror { Mirroring::Repeat } else { Mirroring::Withhold })
            }
            Form::Sse => {
                sse::open(&link).await?;
                (Transport::HttpSse, Mirroring::Unknown)
            }
        };
        let mut open = Open::new(engine, transport, held);
        open.mirroring = mirroring;
        open.detail = shown;
        Ok(open)
    }
}

/// The far side of the link.
struct Held {
    link: Arc<HttpLink>,
    engine: Arc<Engine>,
}

impl Hold for Held {
    fn ready(&self) -> Pending<()> {
        let link = self.link.clone();
        Box::pin(async move { link.listening().await })
    }

    fn close(&self) -> Pending<()> {
        self.link.refuse();
        self.engine.lose(Gone::because(GoneCause::Closed));
        let link = self.link.clone();
        let leaving = self.link.runtime().spawn(async move { link.leave().await });
        Box::pin(async move { drop(leaving.await) })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.link.refuse();
        self.link.tasks.abort_all();
        self.engine.lose(Gone::because(GoneCause::Closed));
    }
}
