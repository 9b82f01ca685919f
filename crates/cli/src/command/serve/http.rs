//! `wharf serve --http`: clients over HTTP, and attached ones at the socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use wharf_serve::{AuthenticatedClient, ClientAccess, HttpContent, HttpExposure, HttpForm, HttpLimits, HttpServer};
use wharf_terminal::failure::Failure;
use wharf_terminal::gateway_socket::ViewRequest;
use wharf_terminal::session::CommandSession;

use super::client_keys::{ClientKeys, KeyFollower};
use super::gateway_process::GatewayProcess;
use super::takeover::GatewaySuccession;
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
    let mut succession = GatewaySuccession::begin(session, options.address).await;
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
    let bound = match succession.take_http_listener() {
        Some(listener) => TcpListener::from_std(listener)
            .and_then(|listener| HttpServer::from_listener(listener, &options.exposure, content)),
        None => HttpServer::bind_exposed(address, &options.exposure, content).await,
    };
    let server = bound.map_err(|error| {
        let failure = Failure::other(format_args!("cannot listen on {address}: {error}"))
            .with_hint("choose another port, or port 0 for a free one");
        succession.refusal.iter().fold(failure, |failure, reason| failure.with_hint(reason))
    })?;
    let url = server.url().map_err(Failure::other)?;
    process.set_http_listener(server.copy_listener().map_err(Failure::other)?);
    let attached = succession.listen(session).await?;
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
    let running = server.run_until_left(process.wait_for_replacement(), process.wait_for_end());
    let serving = async { tokio::join!(serving, running).0 };
    tokio::select! {
        served = serving => served,
        () = keys.follow(known_keys, sessions) => Ok(()),
    }
}
