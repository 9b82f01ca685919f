//! Updates of resources, for sessions that subscribe and stateless clients that listen.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::json;
use wharf::spec::ServerName;
use wharf::wire::RpcError;
use wharf::{Event, EventDelivery, EventReceiver, RawJson, ResourceWatch};

use crate::errors::{host_error, invalid_params};
use crate::gateway::GatewayShared;
use crate::requests::ClientRequest;
use crate::responses::notification;
use crate::upstream::box_future;

/// Maximum number of subscribed resources per client.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 256;

/// Sends a client the URI of a resource that has changed.
type UpdateSink = Box<dyn Fn(&str) + Send + Sync>;

/// The subscribers of a gateway.
#[derive(Default)]
pub(crate) struct ResourceUpdates {
    made: AtomicU64,
    is_following: AtomicBool,
    subscribers: Mutex<HashMap<u64, Subscriber>>,
}

struct Subscriber {
    server: ServerName,
    /// URI at the server.
    own_uri: String,
    /// URI at the gateway.
    uri: String,
    send: UpdateSink,
}

/// The subscription of one client to one resource. Dropping it ends it.
pub(crate) struct ResourceSubscription {
    shared: Weak<GatewayShared>,
    number: u64,
    _watch: ResourceWatch,
}

impl Drop for ResourceSubscription {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.updates.subscribers().remove(&self.number);
        }
    }
}

/// The subscriptions of one session, by URI.
pub(crate) type SessionSubscriptions = Mutex<HashMap<String, ResourceSubscription>>;

impl ResourceUpdates {
    fn subscribers(&self) -> MutexGuard<'_, HashMap<u64, Subscriber>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the subscribers of a resource, or of one of its parents, that it has changed.
    fn announce(&self, server: &ServerName, changed: &str) {
        for subscriber in self.subscribers().values().filter(|subscriber| subscriber.server == *server) {
            match changed.strip_prefix(&subscriber.own_uri) {
                Some("") => (subscriber.send)(&subscriber.uri),
                Some(rest) if rest.starts_with('/') || subscriber.own_uri.ends_with('/') => (subscriber.send)(changed),
                _ => {}
            }
        }
    }

    /// Tells all subscribers that their resources may have changed.
    fn announce_all(&self) {
        self.subscribers().values().for_each(|subscriber| (subscriber.send)(&subscriber.uri));
    }
}

/// Relays the updates of the host's resources until it closes.
async fn follow(shared: Weak<GatewayShared>, mut events: EventReceiver) {
    while let Some(delivery) = events.next().await {
        let Some(shared) = shared.upgrade() else { return };
        match delivery {
            EventDelivery::Event(told) => {
                if let Event::ResourceUpdated { server, uri } = told.event {
                    shared.updates.announce(&server, &uri);
                }
            }
            EventDelivery::Missed(_) => shared.updates.announce_all(),
        }
    }
}

/// Subscribes to a resource for a client.
pub(crate) async fn subscribe(
    request: &ClientRequest,
    uri: &str,
    send: UpdateSink,
) -> Result<ResourceSubscription, RpcError> {
    let shared = &request.shared;
    let (server, own_uri) = request.find_resource(uri).await?;
    if !shared.updates.is_following.swap(true, Ordering::Relaxed) {
        let events = shared.host.events();
        drop(shared.runtime.spawn(follow(Arc::downgrade(shared), events)));
    }
    let watching = box_future(shared.host.watch_resource(&server, &own_uri, &request.client.caller())).await;
    let watch = watching.map_err(|error| host_error(&error))?;
    let number = shared.updates.made.fetch_add(1, Ordering::Relaxed);
    let subscriber = Subscriber { server, own_uri, uri: uri.to_owned(), send };
    shared.updates.subscribers().insert(number, subscriber);
    Ok(ResourceSubscription { shared: Arc::downgrade(shared), number, _watch: watch })
}

/// Answers `resources/subscribe`. The session's stream gets the updates.
pub(crate) async fn subscribe_session(request: &ClientRequest) -> Result<RawJson, RpcError> {
    let uri: String = request.required("uri")?;
    let is_known = {
        let all = request.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_SUBSCRIPTIONS {
            return Err(invalid_params("too many resources are subscribed"));
        }
        all.contains_key(&uri)
    };
    if !is_known {
        let out = request.out.session_outbox().unwrap_or_else(|| Arc::clone(&request.out));
        let send = move |uri: &str| out.send(notification("notifications/resources/updated", &json!({ "uri": uri })));
        let subscription = subscribe(request, &uri, Box::new(send)).await?;
        request.subscriptions.lock().unwrap_or_else(PoisonError::into_inner).insert(uri, subscription);
    }
    Ok(RawJson::empty_object())
}

/// Answers `resources/unsubscribe`.
pub(crate) fn unsubscribe_session(request: &ClientRequest) -> Result<RawJson, RpcError> {
    let uri: String = request.required("uri")?;
    let ended = request.subscriptions.lock().unwrap_or_else(PoisonError::into_inner).remove(&uri);
    drop(ended);
    Ok(RawJson::empty_object())
}
