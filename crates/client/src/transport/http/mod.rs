//! Servers reached over HTTP, with each of the protocol's HTTP transports.
//!
//! Streamable HTTP uses one POST per message. In the stateless era the response to it is everything, and closing it
//! cancels the call. In the handshake era there is a session, with resumable streams and a stream for messages from the
//! server. HTTP+SSE (2024-11-05) delivers every response on one stream. A failure that concerns one call ends only that
//! call; a failure of the server ends the connection.

mod errors;
mod exchange;
mod headers_command;
mod link;
mod link_tasks;
mod post_request;
mod response_body;
mod resume;
mod sensitive_headers;
mod server_stream;
mod session;
mod sse;
mod status;

use std::sync::Arc;

use wharf_net::{AddressPolicy, Net, NetOptions};
use wharf_spec::{HttpSpec, Redactor};

use super::{HeaderParamMode, LinkHandle, LinkSetup, ServerStarter, StartedServer, Transport};
use crate::engine::Engine;
use crate::error::{ConnectCause, DisconnectCause, DisconnectReport};
use crate::options::ConnectOptions;
use crate::services::BoxedFuture;

use headers_command::HeadersCommand;
use link::HttpLink;
use post_request::ConfiguredHeaders;
use sensitive_headers::RedactingAuthorizer;
use session::SessionTarget;

/// A remote server and the HTTP transport to use.
#[derive(Clone)]
pub(crate) struct RemoteServer {
    spec: HttpSpec,
    headers: ConfiguredHeaders,
    net: Net,
    form: HttpTransportKind,
}

/// The HTTP transports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpTransportKind {
    Streamable,
    Sse,
}

impl RemoteServer {
    /// Validates the spec and sets up the HTTP client. Does not connect.
    pub async fn new(
        spec: &HttpSpec,
        form: HttpTransportKind,
        with: &ConnectOptions,
        redactor: &Arc<Redactor>,
    ) -> Result<Self, ConnectCause> {
        if !matches!(spec.url.scheme(), "http" | "https") || spec.url.host_str().is_none() {
            return Err(ConnectCause::BadAddress(spec.masked_url()));
        }
        let mut spec = spec.clone();
        let mut headers = ConfiguredHeaders::new(&spec.headers).map_err(ConnectCause::BadHeader)?;
        headers.move_credentials_from(&mut spec.url).map_err(ConnectCause::BadHeader)?;
        let mut options = NetOptions::default();
        options.proxy.clone_from(&spec.proxy);
        options.extra_ca.clone_from(&spec.extra_ca);
        options.client_certificate.clone_from(&spec.client_certificate);
        options.connect_timeout = with.limits.dial;
        // The address is configured by the owner of this program and may be a local one.
        options.reach = AddressPolicy::Anywhere;
        let mut net = Net::open(&options).await.map_err(ConnectCause::Net)?;
        // Configured credentials take precedence over the authorizer.
        if let Some(source) = spec.headers_source.clone() {
            let command = HeadersCommand::new(source, spec.launch_check.clone(), redactor.clone());
            net = net.with_authorizer(command, &spec.url);
        } else if let Some(authorizer) = with.authorizer.as_ref().filter(|_| !headers.has_authorization()) {
            net = net.with_authorizer(RedactingAuthorizer::new(authorizer.clone(), redactor.clone()), &spec.url);
        }
        Ok(Self { spec, headers, net, form })
    }

    /// Returns the same server with another transport.
    pub fn with_transport(&self, form: HttpTransportKind) -> Self {
        Self { form, ..self.clone() }
    }
}

impl ServerStarter for RemoteServer {
    fn start(&self, opening: LinkSetup) -> BoxedFuture<Result<StartedServer, ConnectCause>> {
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

impl RemoteServer {
    async fn open(self, opening: &LinkSetup) -> Result<StartedServer, ConnectCause> {
        let (home, form, mirror_arguments) = (self.spec.url.clone(), self.form, self.spec.mirror_arguments);
        let shown = self.spec.masked_url();
        let link = HttpLink::new(self, opening);
        let engine = opening.engine(link.clone());
        link.attach(&engine);
        // Dropping this ends everything started so far.
        let handle = HttpLinkHandle { link: link.clone(), engine: engine.clone() };
        link.spawn_expiry(&engine);
        let (transport, header_param_mode) = match form {
            HttpTransportKind::Streamable => {
                link.session.set_target(SessionTarget::new(home));
                (
                    Transport::StreamableHttp,
                    if mirror_arguments { HeaderParamMode::Repeat } else { HeaderParamMode::Withhold },
                )
            }
            HttpTransportKind::Sse => {
                sse::open_session(&link).await?;
                (Transport::HttpSse, HeaderParamMode::Unknown)
            }
        };
        let mut server = StartedServer::new(engine, transport, handle);
        server.header_param_mode = header_param_mode;
        server.detail = shown;
        Ok(server)
    }
}

/// The transport-specific side of the link.
struct HttpLinkHandle {
    link: Arc<HttpLink>,
    engine: Arc<Engine>,
}

impl LinkHandle for HttpLinkHandle {
    fn ready(&self) -> BoxedFuture<()> {
        let link = self.link.clone();
        Box::pin(async move { link.wait_for_server_stream().await })
    }

    fn close(&self) -> BoxedFuture<()> {
        self.link.stop_accepting();
        self.engine.close(DisconnectReport::from_cause(DisconnectCause::Closed));
        let link = self.link.clone();
        let leaving = self.link.runtime().spawn(async move { link.shut_down().await });
        Box::pin(async move { drop(leaving.await) })
    }
}

impl Drop for HttpLinkHandle {
    fn drop(&mut self) {
        self.link.stop_accepting();
        self.link.tasks.abort_all();
        self.engine.close(DisconnectReport::from_cause(DisconnectCause::Closed));
    }
}
