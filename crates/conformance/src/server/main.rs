//! Server with everything that the public MCP conformance suite expects to find, put behind the gateway that is under
//! test.
//!
//! It speaks the handshake revisions, the stateless one or both, on stdio or over HTTP. It declares and does what the
//! scenarios describe and nothing else.

#![forbid(unsafe_code)]

mod catalog;
mod client_requests;
mod connection;
mod input_rounds;
mod list_changes;
mod methods;
mod tools;

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::io::BufReader;
use wharf_serve::{ClientAccess, HttpForm, HttpLimits, HttpServer, serve_lines};

use connection::{Eras, FixtureService};

const HELP: &str = "usage: wharf-conformance-server [--era handshake|stateless|both] [--http ADDR]";

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime.map_err(Into::into).and_then(|runtime| {
        let served = runtime.block_on(serve());
        // A blocked read of stdin does not hold up the end.
        runtime.shutdown_background();
        served
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let options = FixtureOptions::parse(std::env::args().skip(1))?;
    let service = FixtureService::new(options.eras);
    let Some(address) = options.http else {
        let input = BufReader::new(tokio::io::stdin());
        return Ok(serve_lines(&service, input, tokio::io::stdout()).await?);
    };
    let limits = HttpLimits::default();
    let bound = HttpServer::bind(address, HttpForm::Streamable, Arc::new(service), ClientAccess::Anyone, limits).await;
    let server = bound?;
    writeln!(std::io::stdout(), "listening on {}", server.url()?)?;
    server.run(std::future::pending()).await;
    Ok(())
}

struct FixtureOptions {
    eras: Eras,
    http: Option<SocketAddr>,
}

impl FixtureOptions {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self { eras: Eras::Both, http: None };
        while let Some(word) = words.next() {
            let value = words.next().ok_or(HELP)?;
            match (word.as_str(), value.as_str()) {
                ("--era", "handshake") => options.eras = Eras::Handshake,
                ("--era", "stateless") => options.eras = Eras::Stateless,
                ("--era", "both") => options.eras = Eras::Both,
                ("--http", address) => options.http = Some(address.parse()?),
                _ => return Err(HELP.into()),
            }
        }
        Ok(options)
    }
}
