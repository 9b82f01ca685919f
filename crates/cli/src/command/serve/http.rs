//! `wharf serve --http`: clients over HTTP, and attached ones at the socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use wharf_serve::{AuthenticatedClient, ClientAccess, HttpContent, HttpExposure, HttpForm, HttpLimits, HttpServer};
use wharf_terminal::failure::Failure;
use wharf_terminal::gateway_socket::{GatewayListener, GatewayPlace, ViewRequest};
use wharf_terminal::session::CommandSession;

use super::client_keys::{ClientKeys, KeyFollower};
use super::gateway_process::GatewayProcess;
use super::token;
use crate::command::key;

/// How clients are served over HTTP.
pub struct HttpOptions {
    pub address: SocketAddr,
    pub exposure: HttpExposure,
    /// Origin of the URL that clients use, if it is not that of the address.
    pub public_url: Option<String>,
    pub view: ViewRequest,
    /// Maximum time for requests in progress when the gateway ends.
    pub grace: Duration,
}

/// Serves clients until a signal arrives.
///
/// # Errors
///
/// Fails if the configuration is invalid, or the address cannot be bound.
pub async fn serve(session: &CommandSession, options: &HttpOptions) -> Result<(), Failure> {
    let process = Arc::new(GatewayProcess::new(session, options.grace));
    process.stay();
    let served = serve_clients(session, &process, options).await;
    process.projects.close().await;
    served
}

async fn serve_clients(
    session: &CommandSession,
    process: &Arc<GatewayProcess>,
    options: &HttpOptions,
) -> Result<(), Failure> {
    let token = token::open(session)?;
    // The project has a client as long as the server listens.
    let view = options.view.clone().into();
    let (lease, gateway, warnings) = process.projects.join(session.duplicate()?, &view).await?;
    warnings.iter().for_each(|warning| session.console.warn(warning));
    let (address, service) = (options.address, process.drainable(gateway));
    let local = AuthenticatedClient { principal: "local".into(), service: Arc::clone(&service) };
    let clients = Arc::new(ClientKeys::new(&token.text, local));
    let keys = KeyFollower {
        clients: Arc::clone(&clients),
        file: key::key_file(session)?,
        process,
        lease: &lease,
        view: &options.view,
        console: &session.console,
    };
    let known_keys = keys.load().await;
    let access = ClientAccess::Clients(clients);
    let content = HttpContent { form: HttpForm::Streamable, service, access, limits: HttpLimits::default() };
    let bound = HttpServer::bind_exposed(address, &options.exposure, content).await;
    let server = bound.map_err(|error| {
        Failure::other(format_args!("cannot listen on {address}: {error}"))
            .with_hint("choose another port, or port 0 for a free one")
    })?;
    let url = server.url().map_err(Failure::other)?;
    let attached = listen_for_attached(session).await;
    session.console.say(format_args!("listening on {url}"));
    if let Some(public) = &options.public_url {
        session.console.say(format_args!("clients use {public}/mcp"));
    }
    session.console.say(format_args!(
        "clients send the header `Authorization: Bearer TOKEN`; the token is in {}",
        token.path.display()
    ));
    let serving = async {
        match attached {
            Some(listener) => process.serve(listener).await,
            None => Ok(()),
        }
    };
    let sessions = server.sessions();
    let serving = async { tokio::join!(serving, server.run(process.wait_for_end())).0 };
    tokio::select! {
        served = serving => served,
        () = keys.follow(known_keys, sessions) => Ok(()),
    }
}

/// Becomes the gateway for attached clients, unless another process is.
async fn listen_for_attached(session: &CommandSession) -> Option<GatewayListener> {
    let place = GatewayPlace::new(session)?;
    let listening = wharf_threads::run_blocking(move || place.listen()).await.ok()?;
    let explain = |error: &wharf_store::LockError| {
        session.console.say(format_args!("clients on stdin and stdout are served by another process: {error}"));
    };
    listening.inspect_err(explain).ok()
}
