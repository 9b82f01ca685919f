//! Subscribers of both eras.

use std::collections::HashSet;
use std::sync::Mutex;

use rmcp::model::{RequestId, ResourceUpdatedNotificationParam};
use rmcp::service::{SubscriptionContext, SubscriptionSink};
use tokio::sync::{Notify, watch};

use crate::RmcpContext;

/// Resource subscriptions of handshake-era clients, and open subscriptions of stateless clients.
#[derive(Default)]
pub struct SubscriberSet {
    wanted: Mutex<HashSet<String>>,
    sinks: Mutex<Vec<SubscriptionSink>>,
    /// Number of subscriptions the SDK is about to open.
    opening: watch::Sender<usize>,
    end: Notify,
}

impl SubscriberSet {
    pub fn subscribe(&self, uri: String) {
        self.wanted.lock().unwrap().insert(uri);
    }

    pub fn unsubscribe(&self, uri: &str) {
        self.wanted.lock().unwrap().remove(uri);
    }

    /// Registers a pending subscription. The SDK notifies the client before this server, and changes in between must
    /// not be lost.
    pub fn announce_subscription(&self) {
        self.opening.send_modify(|opening| *opening += 1);
    }

    /// Holds the subscription until the client cancels it or [`Self::end`] is called.
    pub async fn hold_subscription(&self, subscription: SubscriptionContext) {
        let sink = subscription.sink().clone();
        let id = sink.id().clone();
        self.sinks.lock().unwrap().push(sink);
        self.opening.send_modify(|opening| *opening -= 1);
        tokio::select! {
            () = subscription.cancelled() => {}
            () = self.end.notified() => {}
        }
        self.remove(&id);
    }

    /// Ends the open subscriptions gracefully, in the protocol's sense.
    pub async fn end(&self) {
        self.wait_until_opened().await;
        self.end.notify_waiters();
    }

    pub async fn notify_resource_updated(&self, uri: &str, context: &RmcpContext) {
        for sink in self.sinks().await {
            // The sink filters out notifications the subscriber did not request.
            let _ = sink.notify_resource_updated(uri).await;
        }
        let wanted = self.wanted.lock().unwrap().contains(uri);
        if wanted {
            let _ = context.peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
        }
    }

    pub async fn notify_tools_changed(&self, context: &RmcpContext) {
        for sink in self.sinks().await {
            let _ = sink.notify_tool_list_changed().await;
        }
        if !crate::input_tools::is_stateless(context) {
            let _ = context.peer.notify_tool_list_changed().await;
        }
    }

    async fn sinks(&self) -> Vec<SubscriptionSink> {
        self.wait_until_opened().await;
        self.sinks.lock().unwrap().clone()
    }

    /// Waits until no subscription is about to open.
    async fn wait_until_opened(&self) {
        let _ = self.opening.subscribe().wait_for(|opening| *opening == 0).await;
    }

    fn remove(&self, id: &RequestId) {
        self.sinks.lock().unwrap().retain(|sink| sink.id() != id);
    }
}
