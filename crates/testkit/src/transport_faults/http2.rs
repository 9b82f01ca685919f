//! HTTP/2 over TLS: a minimal healthy server, and servers that violate the protocol (H30).
//!
//! The server does not decode request headers. Stream id and body are sufficient for a stateless JSON-RPC request.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use super::FaultCount;
use super::certificates::TestCa;
use super::endpoint::Endpoint;
use super::frames::{
    ACK, CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, Http2Frame, INITIAL_WINDOW_SIZE, NO_ERROR, PING,
    PREFACE, REFUSED_STREAM, RST_STREAM, SETTINGS, header_block,
};
use super::reply::healthy_reply;
use super::tls::{self, TlsStream};

/// Fault of an HTTP/2 server. Floods continue until the client disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2Fault {
    None,
    /// GOAWAY for stream 0 before any request.
    GoAwayFirst,
    /// GOAWAY for stream 0 after the request: the request was provably not processed.
    GoAwayRefusing,
    /// GOAWAY that includes the request, then its response, then close: graceful shutdown.
    GoAwayDraining,
    /// GOAWAY that includes the request, then close: the outcome is unknown.
    GoAwayAbandoning,
    /// RST_STREAM with REFUSED_STREAM: the request was provably not processed.
    RefusedStream,
    /// RST_STREAM with CANCEL, on every stream.
    ResetStream,
    /// Endless RST_STREAM for the request's stream.
    ResetFlood,
    /// Endless empty SETTINGS from the start, without reading the acknowledgements.
    SettingsFlood,
    /// Endless PING from the start, likewise.
    PingFlood,
    /// A header block that never ends.
    ContinuationFlood,
    /// An initial window of 0 that never opens: the request body cannot be sent.
    ZeroWindow,
    /// Endless empty DATA.
    EmptyDataFlood,
    /// Accepts the request and then never responds, also not to pings (H26).
    Silent,
}

/// Serves `h2` with this fault; healthy after `times` connections.
pub fn serve(authority: &TestCa, fault: Http2Fault, times: FaultCount) -> io::Result<Endpoint> {
    let config = tls::server_config(&authority.server(), &["h2"])?;
    Endpoint::start(move |guest| {
        let fault = if times.applies_to(guest.number()) { fault } else { Http2Fault::None };
        let Ok(secured) = tls::accept_tls(guest, &config) else { return };
        let mut conversation = Http2Connection { stream: secured, bodies: HashMap::new() };
        match conversation.run(fault) {
            Ok(ConnectionEnd::Leave) => tls::close_tls(conversation.stream),
            Ok(ConnectionEnd::StandStill) => conversation.stream.sock.wait_for_disconnect(),
            Err(_) => {}
        }
    })
}

/// Action after the last frame.
enum ConnectionEnd {
    Leave,
    StandStill,
}

struct Http2Connection {
    stream: TlsStream,
    /// Incomplete bodies by stream.
    bodies: HashMap<u32, Vec<u8>>,
}

/// A complete request.
struct Http2Request {
    stream: u32,
    body: Vec<u8>,
}

impl Http2Connection {
    fn run(&mut self, fault: Http2Fault) -> io::Result<ConnectionEnd> {
        self.exchange_settings(fault)?;
        match fault {
            Http2Fault::GoAwayFirst => {
                self.send(&Http2Frame::go_away(0, NO_ERROR))?;
                return Ok(ConnectionEnd::Leave);
            }
            Http2Fault::SettingsFlood => return self.flood(&Http2Frame::settings(&[])),
            Http2Fault::PingFlood => return self.flood(&Http2Frame::new(PING, 0, 0, [0; 8])),
            _ => {}
        }
        loop {
            let Some(request) = self.next_request()? else { return Ok(ConnectionEnd::Leave) };
            if !request.body.is_empty() {
                self.stream.sock.count_request();
            }
            if let Some(exit) = self.serve(fault, &request)? {
                return Ok(exit);
            }
        }
    }

    fn exchange_settings(&mut self, fault: Http2Fault) -> io::Result<()> {
        let mut preface = [0; PREFACE.len()];
        self.stream.read_exact(&mut preface)?;
        if preface != PREFACE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let closed_window = [(INITIAL_WINDOW_SIZE, 0)];
        self.send(&Http2Frame::settings(if fault == Http2Fault::ZeroWindow { &closed_window } else { &[] }))
    }

    /// Applies the fault to a request. Returns `None` if another request may follow.
    fn serve(&mut self, fault: Http2Fault, request: &Http2Request) -> io::Result<Option<ConnectionEnd>> {
        let stream = request.stream;
        match fault {
            Http2Fault::GoAwayRefusing => self.send(&Http2Frame::go_away(0, NO_ERROR))?,
            Http2Fault::GoAwayDraining => {
                self.send(&Http2Frame::go_away(stream, NO_ERROR))?;
                self.answer(request)?;
            }
            Http2Fault::GoAwayAbandoning => self.send(&Http2Frame::go_away(stream, NO_ERROR))?,
            Http2Fault::ResetFlood => return self.flood(&Http2Frame::reset(stream, CANCEL)).map(Some),
            Http2Fault::ContinuationFlood => return self.flood_headers(stream).map(Some),
            Http2Fault::EmptyDataFlood => {
                self.send(&response_headers(stream, 200, END_HEADERS))?;
                return self.flood(&Http2Frame::new(DATA, 0, stream, [])).map(Some);
            }
            Http2Fault::Silent => return Ok(Some(ConnectionEnd::StandStill)),
            Http2Fault::RefusedStream => return self.send(&Http2Frame::reset(stream, REFUSED_STREAM)).map(|()| None),
            Http2Fault::ResetStream => return self.send(&Http2Frame::reset(stream, CANCEL)).map(|()| None),
            _ => return self.answer(request).map(|()| None),
        }
        Ok(Some(ConnectionEnd::Leave))
    }

    fn answer(&mut self, request: &Http2Request) -> io::Result<()> {
        let reply = healthy_reply(&request.body);
        self.send(&response_headers(request.stream, reply.status, END_HEADERS))?;
        self.send(&Http2Frame::new(DATA, END_STREAM, request.stream, reply.body))
    }

    /// Reads until a request is complete, and answers SETTINGS and PING meanwhile. Returns `None` if the peer has
    /// disconnected.
    fn next_request(&mut self) -> io::Result<Option<Http2Request>> {
        loop {
            let frame = match Http2Frame::read(&mut self.stream) {
                Ok(frame) => frame,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            };
            if let Some(request) = self.on_frame(frame)? {
                return Ok(Some(request));
            }
        }
    }

    fn on_frame(&mut self, frame: Http2Frame) -> io::Result<Option<Http2Request>> {
        match frame.kind {
            SETTINGS | PING if !frame.has_flag(ACK) => {
                let echo = if frame.kind == PING { frame.payload } else { Vec::new() };
                self.send(&Http2Frame::new(frame.kind, ACK, 0, echo))?;
            }
            HEADERS => drop(self.bodies.insert(frame.stream, Vec::new())),
            DATA => self.on_data(&frame)?,
            RST_STREAM => drop(self.bodies.remove(&frame.stream)),
            _ => {}
        }
        let ended = matches!(frame.kind, HEADERS | DATA) && frame.flags & END_STREAM != 0;
        let body = if ended { self.bodies.remove(&frame.stream) } else { None };
        Ok(body.map(|body| Http2Request { stream: frame.stream, body }))
    }

    fn on_data(&mut self, frame: &Http2Frame) -> io::Result<()> {
        if let Some(body) = self.bodies.get_mut(&frame.stream) {
            body.extend(&frame.payload);
        }
        let length = frame.payload.len() as u32;
        if length > 0 {
            self.send(&Http2Frame::window_update(0, length))?;
        }
        if length > 0 && !frame.has_flag(END_STREAM) {
            self.send(&Http2Frame::window_update(frame.stream, length))?;
        }
        Ok(())
    }

    /// Sends one frame repeatedly, until the write fails because the client disconnects.
    fn flood(&mut self, frame: &Http2Frame) -> io::Result<ConnectionEnd> {
        let many = frame.bytes().repeat(256);
        loop {
            self.stream.write_all(&many)?;
        }
    }

    fn flood_headers(&mut self, stream: u32) -> io::Result<ConnectionEnd> {
        self.send(&response_headers(stream, 200, 0))?;
        self.flood(&Http2Frame::new(CONTINUATION, 0, stream, header_block(&[("x-more", "a")])))
    }

    fn send(&mut self, frame: &Http2Frame) -> io::Result<()> {
        frame.write(&mut self.stream)
    }
}

fn response_headers(stream: u32, status: u16, flags: u8) -> Http2Frame {
    let block = header_block(&[(":status", &status.to_string()), ("content-type", "application/json")]);
    Http2Frame::new(HEADERS, flags, stream, block)
}
