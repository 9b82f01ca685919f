//! Memory of a gateway with many open sessions.

use wharf_peers::load::{ClientEra, ClientOptions, McpClient};

use crate::served::{ServedGateway, ServedHome, block_on};
use crate::{Findings, Scale};

/// Maximum resident memory with a thousand sessions, in KiB.
const MAX_RESIDENT_KIB: u64 = 40 * 1024;

pub fn memory(scale: Scale) -> Findings {
    let sessions = scale.pick(50, 1000);
    let mut found = Findings::new(format!("{sessions} sessions"));
    let served = ServedHome::new(1);
    let gateway = ServedGateway::start(&served);
    let open = async |count: usize| {
        let mut clients = Vec::new();
        for number in 0..count {
            let mut client =
                McpClient::open(&gateway.endpoint, ClientOptions::new(ClientEra::Handshake)).await.unwrap();
            client.request("tools/list", serde_json::json!({}), "").await.unwrap();
            let answer = client.call("s0__note", &number.to_string()).await.unwrap();
            assert_eq!(answer["result"]["content"][0]["text"], number.to_string(), "{answer}");
            clients.push(client);
        }
        clients
    };
    block_on(async {
        let one = open(1).await;
        let before = gateway.resident_kib();
        let clients = open(sessions).await;
        let after = gateway.resident_kib();
        let each = after.saturating_sub(before) as f64 / sessions as f64;
        found.figure(format!("{:.1} MB, {:.1} MB with one session, {each:.1} KB each", mb(after), mb(before)));
        found.require(after <= MAX_RESIDENT_KIB, || format!("{:.1} MB", mb(after)));
        drop((one, clients));
    });
    gateway.terminate();
    found
}

fn mb(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
