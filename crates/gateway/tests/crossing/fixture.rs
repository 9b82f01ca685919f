//! A gateway over one asking server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wharf::Host;
use wharf::tools::AllowAllGate;
use wharf::wire::Era;
use wharf_gateway::{Gateway, GatewayOptions};
use wharf_serve::HttpForm;

use crate::client::{Listener, SessionClient, SessionHello, StatelessClient, Transport};
use crate::feature_server::add_feature_server;
use crate::server::{ReceivedMessages, add_server};

pub struct Fixture {
    pub gateway: Gateway,
    pub received: ReceivedMessages,
    listener: Option<Listener>,
    transport: Transport,
}

/// Everything a client can declare.
pub fn all_capabilities() -> Value {
    json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": true}})
}

pub fn options(question_timeout: Duration) -> GatewayOptions {
    let mut options = GatewayOptions::default();
    options.question_timeout = question_timeout;
    options
}

impl Fixture {
    pub async fn new(era: Era, transport: Transport, options: GatewayOptions) -> Self {
        let received = ReceivedMessages::default();
        let builder = Host::builder().gate(Arc::new(AllowAllGate));
        let host = add_server(builder, era, &received).start().await.unwrap();
        host.wait_until_settled().await;
        let instances = received.clone();
        let gateway = Gateway::builder(host).options(options);
        let gateway = gateway.instances(move |_| Some(add_server(Host::builder(), era, &instances))).build();
        Self::from_gateway(gateway, received, transport).await
    }

    pub async fn from_gateway(gateway: Gateway, received: ReceivedMessages, transport: Transport) -> Self {
        let listener = match transport {
            Transport::Stdio => None,
            Transport::Http => Some(Listener::open(&gateway, HttpForm::Streamable).await),
            Transport::Sse => Some(Listener::open(&gateway, HttpForm::Sse).await),
        };
        Self { gateway, received, listener, transport }
    }

    fn address(&self) -> &str {
        self.listener.as_ref().map(|listener| listener.address.as_str()).unwrap_or_default()
    }

    pub async fn session(&self, capabilities: Value) -> SessionClient {
        self.session_at("2025-11-25", capabilities).await
    }

    pub async fn session_at(&self, revision: &'static str, capabilities: Value) -> SessionClient {
        let hello = SessionHello { revision, capabilities };
        SessionClient::open(&self.gateway, self.address(), self.transport, hello).await
    }

    /// A gateway over the servers `s` and `t`, which have a tool for each feature.
    pub async fn with_features(era: Era, transport: Transport) -> Self {
        let received = ReceivedMessages::default();
        let builder = Host::builder().gate(Arc::new(AllowAllGate));
        let builder = add_feature_server(builder, "s", era, &received);
        let host = add_feature_server(builder, "t", era, &received).start().await.unwrap();
        host.wait_until_settled().await;
        let instances = received.clone();
        let gateway = Gateway::builder(host)
            .instances(move |key| Some(add_feature_server(Host::builder(), key.server.as_str(), era, &instances)));
        Self::from_gateway(gateway.build(), received, transport).await
    }

    pub fn stateless(&self, capabilities: Value) -> StatelessClient {
        StatelessClient::open(&self.gateway, self.address(), self.transport, capabilities)
    }

    pub async fn close(self) {
        self.gateway.close().await;
        self.gateway.host().close().await;
    }
}

/// Returns the text of a result.
pub fn text(response: &Value) -> String {
    let result = &response["result"];
    let found = ["/content/0/text", "/messages/0/content/text", "/contents/0/text"]
        .iter()
        .find_map(|path| result.pointer(path)?.as_str());
    found.unwrap_or_else(|| panic!("no text in {response}")).to_owned()
}
