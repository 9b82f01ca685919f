//! Faults of bytes and lines: the output differs from the intended line.

use std::process::exit;
use std::sync::Arc;
use std::thread;

use super::server::StdioFaultServer;
use super::{FaultOccurrence, StdioFault, frame};

pub fn find(name: &str) -> Option<StdioFault> {
    Some(match name {
        "S14" => StdioFault::once(send_slowly),
        "S15" => StdioFault::once(send_half_a_line),
        "S16" => StdioFault::at_start(noise),
        "S17" => StdioFault::once(|server, strike| server.out.line(format!("listening on port 3000 {}", strike.line))),
        "S18" => {
            StdioFault::once(|server, strike| server.out.line(frame::inject(&strike.line, b"\"odd\":\"\xff\xfe\"")))
        }
        "S19-bom" => StdioFault::at_start(byte_order_mark),
        "S19-crlf" => StdioFault::always(|server, strike| server.out.line(format!("{}\r", strike.line))),
        "S19-cr" => StdioFault::always(lone_carriage_returns),
        "S19-blank" => StdioFault::always(|server, strike| server.out.line(format!("\n\r\n\n{}\n\n", strike.line))),
        "S19-spaces" => StdioFault::always(|server, strike| server.out.line(format!(" \t{} \t ", strike.line))),
        "S20-le" => StdioFault::always(|server, strike| utf16(server, strike, u16::to_le_bytes)),
        "S20-be" => StdioFault::always(|server, strike| utf16(server, strike, u16::to_be_bytes)),
        "S21" => {
            StdioFault::once(|server, strike| server.out.line(frame::inject(&strike.line, b"\"odd\":\"two\nlines\"")))
        }
        "S22-raw" => {
            StdioFault::once(|server, strike| server.out.line(frame::inject(&strike.line, b"\"odd\":\"a\0b\"")))
        }
        "S22-key" => StdioFault::once(nul_in_keys),
        "S23-100m" => StdioFault::once(id_after_the_flood),
        "S23-idfirst" => StdioFault::once(id_before_the_flood),
        "S23-endless" => StdioFault::once(endless_line),
        "S24-minus" => {
            StdioFault::once(|server, strike| send_with_size(server, strike, server.options.max.saturating_sub(1)))
        }
        "S24-exact" => StdioFault::once(|server, strike| send_with_size(server, strike, server.options.max)),
        "S24-plus" => StdioFault::once(|server, strike| send_with_size(server, strike, server.options.max + 1)),
        "S25-two" => StdioFault::once(three_frames_in_one_write),
        "S25-split" => StdioFault::once(one_frame_in_many_writes),
        _ => return None,
    })
}

/// Sends one byte per second, on a thread, so that the end of stdin is still noticed.
fn send_slowly(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let (server, line) = (Arc::clone(server), format!("{}\n", strike.line));
    thread::spawn(move || {
        let held = server.out.hold();
        for byte in line.as_bytes() {
            held.write(&[*byte]);
            thread::sleep(server.options.delay(1000));
        }
    });
}

/// Sends half a line, and the rest after an hour.
fn send_half_a_line(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let (server, line) = (Arc::clone(server), format!("{}\n", strike.line));
    let (began, begin) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let held = server.out.hold();
        let (first, rest) = line.as_bytes().split_at(line.len() / 2);
        held.write(first);
        began.send(()).ok();
        thread::sleep(server.options.delay(3_600_000));
        held.write(rest);
    });
    begin.recv().ok();
}

fn noise(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let lines = ["Server started", "", "> fault@1.0.0 start", "[info] {not json}", "ready in 12 ms", "null", "7"];
    for number in 0..server.options.count.unwrap_or(lines.len()) {
        server.out.line(lines[number % lines.len()]);
    }
    strike.deliver(server);
}

fn byte_order_mark(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    server.out.bytes(b"\xef\xbb\xbf");
    strike.deliver(server);
}

/// A carriage return is JSON whitespace and does not end a line.
fn lone_carriage_returns(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    server.out.line(format!("\r{{\r{}", &strike.line[1..]));
}

/// Sends a byte order mark, the line and its newline as UTF-16.
fn utf16(server: &StdioFaultServer, strike: &FaultOccurrence, bytes: fn(u16) -> [u8; 2]) {
    let text = format!("\u{feff}{}\n", strike.line);
    let units: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
    server.out.bytes(&units);
}

/// Adds decoy members that differ from the real ones by an escaped NUL.
fn nul_in_keys(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let decoys = br#""resultType\u0000":"mystery","content\u0000":[],"isError\u0000":true,"\u0000":0"#;
    server.out.line(frame::inject(&strike.line, decoys));
}

fn id_after_the_flood(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let bare = frame::with_id(&strike.line, &strike.id, None);
    let open = &bare[..bare.len() - 1];
    send_padded(server, &format!(r#"{open},"id":{}}}"#, strike.id));
}

fn id_before_the_flood(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    send_padded(server, &strike.line);
}

/// Sends the line with `--bytes` of padding inside its payload.
fn send_padded(server: &StdioFaultServer, line: &str) {
    let (head, rest) = line.split_at(frame::payload_start(line));
    let held = server.out.hold();
    held.write(format!("{head}\"pad\":\"").as_bytes());
    held.fill(b'a', server.options.bytes.unwrap_or(100_000_000));
    held.write(format!("\",{rest}\n").as_bytes());
}

/// Writes until a write fails.
fn endless_line(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let (server, line) = (Arc::clone(server), strike.line.clone());
    thread::spawn(move || {
        let held = server.out.hold();
        held.write(&line.as_bytes()[..frame::payload_start(&line)]);
        held.write(b"\"pad\":\"");
        while held.fill(b'a', 1 << 20) {}
        exit(0)
    });
}

fn send_with_size(server: &StdioFaultServer, strike: &FaultOccurrence, size: usize) {
    server.out.line(frame::pad_to(&strike.line, size));
}

/// Sends the response in the middle, so that processing only the first or last frame of a read is not sufficient.
fn three_frames_in_one_write(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let chatter = frame::harmless_notification();
    server.out.bytes(format!("{chatter}\n{}\n{chatter}\n", strike.line).as_bytes());
}

fn one_frame_in_many_writes(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let mut line = frame::pad_to(&strike.line, 9_999);
    line.push(b'\n');
    let held = server.out.hold();
    for byte in line {
        held.write(&[byte]);
    }
}
