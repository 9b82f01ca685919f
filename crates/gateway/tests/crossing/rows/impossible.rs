//! What cannot cross, and what is answered instead.

use serde_json::json;
use wharf::wire::Era;

use super::{RowCell, retry};
use crate::any_client::{Answered, AnyClient};
use crate::fixture::{Fixture, text};

impl RowCell {
    pub(super) async fn outside_of_calls(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({"elicitation": {}})).await;
        assert_eq!(text(&client.tool("outside").await), "later");
        if self.server == Era::Handshake {
            let answered = fixture.received.find(|message| message["id"] == "outside").await;
            assert_eq!(answered["result"], json!({"action": "cancel"}));
        }
        assert_eq!(text(&client.tool("plain").await), "ok");
        client.close().await;
    }

    pub(super) async fn other_methods(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({"elicitation": {}})).await;
        let reference = json!({"type": "ref/resource", "uri": "f://plain"});
        let params = json!({"ref": reference, "argument": {"name": "a", "value": "h"}});
        let Answered { response, notifications } = client.call("completion/complete", params).await;
        assert_eq!(response["result"]["completion"]["values"], json!(["here"]), "{response}");
        assert!(notifications.is_empty(), "{notifications:?}");
        if self.server == Era::Handshake {
            let refused = fixture.received.find(|message| message["id"] == "during").await;
            assert_eq!(refused["error"]["code"], -32601);
        }
        client.close().await;
    }

    pub(super) async fn server_gone(&self, fixture: &Fixture) {
        let pages = json!({"elicitation": {"form": {}, "url": {}}});
        let call = json!({"name": "s__page", "arguments": {}});
        let accepted = json!({"action": "accept"});
        let response = match self.client(fixture, pages).await {
            AnyClient::Session(mut client) => {
                client.request(1, "tools/call", call).await;
                let question = client.question().await;
                fixture.gateway.close().await;
                client.respond(&question, Ok(accepted)).await;
                let response = client.response(1).await;
                client.close().await;
                response
            }
            AnyClient::Stateless(mut client) => {
                let asked = client.call("tools/call", call.clone()).await;
                fixture.gateway.close().await;
                let response = client.call("tools/call", retry(call, &asked, accepted)).await;
                client.close().await;
                response
            }
        };
        match self.server {
            Era::Handshake => {
                assert_eq!(response["error"]["data"]["reason"], "outcome_unknown", "{response}");
                assert_eq!(fixture.received.count("tools/call"), 1);
            }
            // Nothing waits at a stateless server: the call is repeated with the answer.
            Era::Stateless => assert_eq!(text(&response), r#"{"action":"accept"}"#),
        }
    }

    pub(super) async fn older_revision(&self, fixture: &Fixture) {
        let mut client = match self.client {
            Era::Handshake => {
                let pages = json!({"elicitation": {"form": {}, "url": {}}});
                AnyClient::Session(Box::new(fixture.session_at("2025-03-26", pages).await))
            }
            Era::Stateless => self.client(fixture, json!({})).await,
        };
        assert_eq!(text(&client.tool("page").await), "not asked");
        assert_eq!(fixture.gateway.instances(), 0);
        client.close().await;
    }

    pub(super) async fn same_uri(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({})).await;
        let list = client.call("resources/list", json!({})).await.response;
        let uris: Vec<&str> = list["result"]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["uri"].as_str().unwrap())
            .collect();
        assert_eq!(uris, ["f://plain", "t+f://plain"]);
        for uri in uris {
            let read = client.call("resources/read", json!({"uri": uri})).await.response;
            assert_eq!(read["result"]["contents"][0]["uri"], "f://plain", "results are not rewritten: {read}");
        }
        client.close().await;
    }

    pub(super) async fn foreign_answer(&self, fixture: &Fixture) {
        let mut client = self.client(fixture, json!({"elicitation": {}})).await;
        match &mut client {
            AnyClient::Session(session) => {
                session.send(json!({"jsonrpc": "2.0", "id": "wharf-77", "result": {"action": "accept"}})).await;
            }
            AnyClient::Stateless(stateless) => {
                let params =
                    json!({"name": "s__plain", "arguments": {}, "inputResponses": {"q1": {"action": "accept"}}});
                assert_eq!(text(&stateless.call("tools/call", params).await), "ok");
            }
        }
        assert_eq!(text(&client.tool("plain").await), "ok");
        client.close().await;
    }
}
