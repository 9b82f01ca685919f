//! Semantic faults: valid JSON lines with wrong, excessive or late content.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::server::{StdioFaultServer, lock_ignoring_poison};
use super::{FaultMoment, FaultOccurrence, StdioFault, frame};

pub fn find(name: &str) -> Option<StdioFault> {
    Some(match name {
        "S12" => StdioFault::once(answer_after_cancellation),
        "S12-mute" => StdioFault::once(|_, _| ()),
        "S13" => StdioFault::once(progress_for_ever),
        "S26" => StdioFault::once(unknown_ids),
        "S27" => StdioFault::once(duplicate_response),
        "S28" => StdioFault::always(shuffle_responses),
        "S29-string" => {
            StdioFault::once(|server, strike| send_with_id(server, strike, Some(&id_as_string(&strike.id))))
        }
        "S29-float" => StdioFault::once(|server, strike| {
            send_with_id(server, strike, Some(&format!("{}.0", id_as_number(strike))))
        }),
        "S29-null" => StdioFault::once(|server, strike| send_with_id(server, strike, Some("null"))),
        "S29-missing" => StdioFault::once(|server, strike| send_with_id(server, strike, None)),
        "S29-bool" => StdioFault::once(|server, strike| send_with_id(server, strike, Some("true"))),
        "S29-huge" => StdioFault::once(|server, strike| send_with_id(server, strike, Some("18446744073709551616"))),
        "S29-null-error" => StdioFault::once(|server, _| server.out.line(anonymous_error(r#","id":null"#))),
        "S29-missing-error" => StdioFault::once(|server, _| server.out.line(anonymous_error(""))),
        "S30-both" => StdioFault::once(result_and_error),
        "S30-neither" => {
            StdioFault::once(|server, strike| server.out.line(format!(r#"{{"jsonrpc":"2.0","id":{}}}"#, strike.id)))
        }
        "S31" => StdioFault::once(batch),
        "S32" => StdioFault::once(ask_everything),
        "S33-ping" => StdioFault::once(|server, strike| ask_first(server, strike, "ping")),
        "S33-roots" => StdioFault::once(|server, strike| ask_first(server, strike, "roots/list")),
        "S33-sampling" => StdioFault::once(|server, strike| ask_first(server, strike, "sampling/createMessage")),
        "S34" => StdioFault::once(|server, strike| result_type(server, strike, Some("mystery"))),
        "S34-absent" => StdioFault::once(|server, strike| result_type(server, strike, None)),
        "S35" => StdioFault::once(unknown_everything),
        "S36" => StdioFault::once(notification_flood),
        "bomb-nodes" => StdioFault::once(many_nodes),
        "bomb-depth" => StdioFault::once(deep_nesting),
        _ => return None,
    })
}

fn answer_after_cancellation(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    lock_ignoring_poison(&server.late).insert(strike.id.to_string(), strike.line.clone());
}

/// Stops when cancelled, without a response.
fn progress_for_ever(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let (server, id, token) = (Arc::clone(server), strike.id.clone(), strike.token.clone());
    thread::spawn(move || {
        let mut progress = 0u64;
        while !server.cancelled_within(&id, server.options.delay(1000)) {
            progress += 1;
            if let Some(token) = &token {
                let params = json!({ "progressToken": token, "progress": progress });
                server.out.line(frame::notification("notifications/progress", &params));
            }
        }
    });
}

fn unknown_ids(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    for id in [json!(987_654_321), json!(-1), json!("no-such-id")] {
        server.out.line(frame::result(&id, &json!({ "content": [], "resultType": "complete" })));
        server.out.line(frame::error(&id, &frame::ErrorReply::new(-32603, "nobody asked")));
    }
    strike.deliver(server);
}

/// The second response is marked as a duplicate.
fn duplicate_response(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    strike.deliver(server);
    let answer = if strike.moment == FaultMoment::Idle { &strike.previous } else { &strike.line };
    server.out.line(frame::inject(answer, br#""duplicate":true"#));
}

/// Collects responses until there are `--count`, or until no more arrive, and sends them out of order.
fn shuffle_responses(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let mut gathered = lock_ignoring_poison(&server.gathered);
    gathered.push(strike.line.clone());
    let so_far = gathered.len();
    if so_far >= server.options.count.unwrap_or(1000) {
        drop(gathered);
        return release(server);
    }
    if so_far == 1 {
        let server = Arc::clone(server);
        thread::spawn(move || release_when_quiet(&server));
    }
}

fn release_when_quiet(server: &StdioFaultServer) {
    let mut seen = 0;
    loop {
        thread::sleep(server.options.delay(10_000).max(Duration::from_millis(1)));
        let now = lock_ignoring_poison(&server.gathered).len();
        if now == seen || now == 0 {
            return release(server);
        }
        seen = now;
    }
}

fn release(server: &StdioFaultServer) {
    let mut lines = std::mem::take(&mut *lock_ignoring_poison(&server.gathered));
    lines.reverse();
    // A fixed shuffle: the same order every time.
    let mut random = 0x2545_f491usize;
    for last in (1..lines.len()).rev() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        lines.swap(last, (random >> 33) % (last + 1));
    }
    for line in lines {
        server.out.line(line);
    }
}

fn send_with_id(server: &StdioFaultServer, strike: &FaultOccurrence, token: Option<&str>) {
    server.out.line(frame::with_id(&strike.line, &strike.id, token));
}

/// Returns the id as a JSON string: `7` becomes `"7"`.
fn id_as_string(id: &Value) -> String {
    if id.is_string() { Value::String(id.to_string()).to_string() } else { format!("\"{id}\"") }
}

/// Returns the id as a number; zero if it is not a number.
fn id_as_number(strike: &FaultOccurrence) -> i64 {
    strike.id.as_i64().unwrap_or_default()
}

fn anonymous_error(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0"{id},"error":{{"code":-32600,"message":"Invalid request"}}}}"#)
}

fn result_and_error(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let open = strike.line.trim_end().len() - 1;
    let error = r#""error":{"code":-32603,"message":"both"}"#;
    server.out.line(format!("{},{error}}}", &strike.line[..open]));
}

fn batch(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    server.out.line(format!("[{},{}]", frame::harmless_notification(), strike.line));
}

fn ask_everything(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    for method in ["ping", "roots/list", "sampling/createMessage"] {
        server.send_request(method, &ask_params(method), None);
    }
    strike.deliver(server);
}

/// Sends the response only after the client's reply or a timeout.
fn ask_first(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence, method: &'static str) {
    let then = (strike.moment == FaultMoment::Answer).then(|| strike.line.clone());
    server.send_request(method, &ask_params(method), then);
}

fn ask_params(method: &str) -> Value {
    match method {
        "sampling/createMessage" => json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Say something." } }],
            "maxTokens": 10,
        }),
        _ => json!({}),
    }
}

fn result_type(server: &StdioFaultServer, strike: &FaultOccurrence, name: Option<&str>) {
    let usual = r#""resultType":"complete""#;
    let bare = strike.line.replace(&format!(",{usual}"), "").replace(&format!("{usual},"), "").replace(usual, "");
    match name {
        Some(name) => server.out.line(frame::inject(&bare, format!(r#""resultType":"{name}""#).as_bytes())),
        None => server.out.line(bare),
    }
}

fn unknown_everything(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    server.out.line(frame::notification("notifications/from/the/future", &json!({ "when": "later" })));
    server.out.line(r#"{"jsonrpc":"2.0","method":"notifications/bare","extra":[1,{"two":3}]}"#);
    let bytes = frame::inject(&strike.line, br#""futureField":{"b":[1,null],"a":"kept"}"#);
    let line = String::from_utf8_lossy(&bytes);
    server.out.line(format!(r#"{{"futureMember":true,{}"#, &line[1..]));
}

/// Sends `--count` notifications of three kinds, with the response halfway through.
fn notification_flood(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let token = strike.token.clone().unwrap_or_else(|| json!("unknown-token"));
    let kinds = [
        frame::harmless_notification(),
        frame::notification("notifications/tools/list_changed", &json!({})),
        frame::notification("notifications/progress", &json!({ "progressToken": token, "progress": 1 })),
    ];
    let total = server.options.count.unwrap_or(1_000_000);
    let answer = (strike.moment == FaultMoment::Answer).then(|| strike.line.clone());
    let server = Arc::clone(server);
    thread::spawn(move || {
        send_in_batches(&server, &kinds, total / 2);
        if let Some(answer) = answer {
            server.out.line(answer);
        }
        send_in_batches(&server, &kinds, total - total / 2);
    });
}

/// Sends in batches, so that other responses can interleave.
fn send_in_batches(server: &StdioFaultServer, kinds: &[String], total: usize) {
    let mut handful = String::new();
    for number in 0..total {
        handful.push_str(&kinds[number % kinds.len()]);
        handful.push('\n');
        if handful.len() > 1 << 15 || number + 1 == total {
            if !server.out.bytes(handful.as_bytes()) {
                return;
            }
            handful.clear();
        }
    }
}

/// Sends `--bytes` of `[{"":0},…]`: small on the wire, large once parsed.
fn many_nodes(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let nodes = server.options.bytes.unwrap_or(6 << 20) / r#"{"":0},"#.len();
    let list = vec![r#"{"":0}"#; nodes.max(1)].join(",");
    server.out.line(frame::inject(&strike.line, format!(r#""structuredContent":[{list}]"#).as_bytes()));
}

/// Sends `--count` nested arrays.
fn deep_nesting(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let depth = server.options.count.unwrap_or(1_000_000);
    let nest = format!(r#""structuredContent":{}{}"#, "[".repeat(depth), "]".repeat(depth));
    server.out.line(frame::inject(&strike.line, nest.as_bytes()));
}
