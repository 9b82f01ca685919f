//! Redirects, and the other origin that some of them lead to.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::json;

use super::exchange::FaultExchange;
use super::{FaultRepeat, HttpFault, HttpFaultAction, RequestStage};
use crate::faultd::frame::{self, ClientMessage};
use crate::faultd::options::FaultOptions;
use crate::request::Request;

pub fn find(name: &str) -> Option<HttpFault> {
    let act: HttpFaultAction = match name {
        "H24-301" => |exchange, _| redirect(exchange, 301, "/moved"),
        "H24-302" => |exchange, _| redirect(exchange, 302, "/moved"),
        "H24-303" => |exchange, _| redirect(exchange, 303, "/moved"),
        "H24-307" => |exchange, _| redirect(exchange, 307, "/moved"),
        "H24-308" => |exchange, _| redirect(exchange, 308, "/moved"),
        "H24-301-other" => |exchange, _| redirect_away(exchange, 301),
        "H24-302-other" => |exchange, _| redirect_away(exchange, 302),
        "H24-303-other" => |exchange, _| redirect_away(exchange, 303),
        "H24-307-other" => |exchange, _| redirect_away(exchange, 307),
        "H24-308-other" => |exchange, _| redirect_away(exchange, 308),
        "H24-nowhere" => |exchange, _| exchange.reply(307, &[], ""),
        "H24-garbage" => |exchange, _| redirect(exchange, 307, "http://[not an address/"),
        "H24-loop" => {
            let act: HttpFaultAction = |exchange, _| redirect(exchange, 307, "/mcp");
            return Some(HttpFault::Strike { act, stage: RequestStage::Refused, times: FaultRepeat::Always });
        }
        _ => return None,
    };
    Some(HttpFault::reject_once(act))
}

fn redirect(exchange: &FaultExchange<'_>, status: u16, target: &str) {
    exchange.reply(status, &[("Location", target)], "");
}

fn redirect_away(exchange: &FaultExchange<'_>, status: u16) {
    redirect(exchange, status, &format!("http://{}/mcp", exchange.server.elsewhere));
}

/// Opens the other origin: every request is recorded and answered.
pub fn listen(options: FaultOptions) -> Result<SocketAddr, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let options = options.clone();
            std::thread::spawn(move || serve_other_origin(&options, &stream));
        }
    });
    Ok(address)
}

fn serve_other_origin(options: &FaultOptions, mut stream: &TcpStream) {
    let mut input = BufReader::new(stream);
    while let Some(Ok(request)) = Request::read(&mut input) {
        options.record(&format!("elsewhere {} {}", request.method, request.target));
        for (name, value) in &request.headers {
            options.record(&format!("elsewhere header {}: {value}", name.to_ascii_lowercase()));
        }
        let id = ClientMessage::parse(&request.body).map(|message| message.id()).unwrap_or_default();
        let text = json!({ "content": [{ "type": "text", "text": "elsewhere" }], "resultType": "complete" });
        let body = frame::result(&id, &text);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json";
        if write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).is_err() {
            return;
        }
    }
}
