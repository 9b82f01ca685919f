//! The server over Streamable HTTP: the SDK's own service for both eras, on a plain HTTP server.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::RmcpPeer;

type SdkHttpService = StreamableHttpService<RmcpPeer, LocalSessionManager>;

/// Listens on a free loopback port, prints the address, and serves until the standard input ends.
pub async fn serve(peer: RmcpPeer) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening http://{}/mcp", listener.local_addr().unwrap());
    let config = StreamableHttpServerConfig::default();
    let service = SdkHttpService::new(move || Ok(peer.clone()), Arc::new(LocalSessionManager::default()), config);
    tokio::select! {
        () = accept(listener, service) => {}
        () = wait_for_stdin_end() => {}
    }
}

async fn accept(listener: TcpListener, service: SdkHttpService) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(serve_connection(stream, service.clone()));
    }
}

/// Serves one connection and prints each request, so that tests can inspect them.
async fn serve_connection(stream: TcpStream, service: SdkHttpService) {
    let answer = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        println!("{} {}", request.method(), request.uri().path());
        let service = service.clone();
        async move { Ok::<_, Infallible>(service.handle(request).await) }
    });
    // Ignore disconnects.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}

async fn wait_for_stdin_end() {
    let mut input = tokio::io::stdin();
    let mut rest = [0; 64];
    while input.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}
