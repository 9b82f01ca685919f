//! Pages that a server sends the user to.

use serde_json::{Value, json};
use wharf::wire::Era;

use super::{RowCell, retry};
use crate::any_client::AnyClient;
use crate::fixture::{Fixture, text};

impl RowCell {
    pub(super) async fn page(&self, fixture: &Fixture) {
        let pages = json!({"elicitation": {"form": {}, "url": {}}});
        let call = json!({"name": "s__page", "arguments": {}});
        match self.client(fixture, pages).await {
            AnyClient::Session(mut client) => {
                client.request(1, "tools/call", call).await;
                let question = client.question().await;
                let params = &question["params"];
                assert_eq!((&params["mode"], &params["url"]), (&json!("url"), &json!("https://harbour.example/form")));
                client.respond(&question, Ok(json!({"action": "accept"}))).await;
                let done = client.find(|message| message["method"] == "notifications/elicitation/complete").await;
                assert_eq!(done["params"]["elicitationId"], params["elicitationId"]);
                assert!(params["elicitationId"].is_string());
                assert_eq!(text(&client.response(1).await), r#"{"action":"accept"}"#);
                client.close().await;
            }
            AnyClient::Stateless(mut client) => {
                let asked = client.call("tools/call", call.clone()).await;
                assert_eq!(only_request(&asked)["params"]["mode"], "url");
                let retry = retry(call, &asked, json!({"action": "accept"}));
                assert_eq!(text(&client.call("tools/call", retry).await), r#"{"action":"accept"}"#);
                client.close().await;
            }
        }
    }

    pub(super) async fn page_error(&self, fixture: &Fixture) {
        let pages = json!({"elicitation": {"form": {}, "url": {}}});
        let call = json!({"name": "s__page-error", "arguments": {}});
        let done = if self.server == Era::Handshake { "visited" } else { r#"{"action":"accept"}"# };
        match self.client(fixture, pages).await {
            AnyClient::Session(mut client) if self.server == Era::Handshake => {
                client.request(1, "tools/call", call.clone()).await;
                let error = client.response(1).await["error"].clone();
                assert_eq!(error["code"], -32042);
                assert_eq!(error["data"]["elicitations"][0]["elicitationId"], "e-1");
                client.request(2, "tools/call", call).await;
                assert_eq!(text(&client.response(2).await), done);
                client.close().await;
            }
            AnyClient::Session(mut client) => {
                client.request(1, "tools/call", call).await;
                let question = client.question().await;
                client.respond(&question, Ok(json!({"action": "accept"}))).await;
                assert_eq!(text(&client.response(1).await), done);
                client.close().await;
            }
            AnyClient::Stateless(mut client) => {
                let asked = client.call("tools/call", call.clone()).await;
                assert_eq!(only_request(&asked)["params"]["url"], "https://harbour.example/form");
                let retry = retry(call, &asked, json!({"action": "accept"}));
                assert_eq!(text(&client.call("tools/call", retry).await), done);
                client.close().await;
            }
        }
    }
}

fn only_request(asked: &Value) -> &Value {
    let requests = asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("no question in {asked}"));
    assert_eq!(requests.len(), 1);
    requests.values().next().unwrap()
}
