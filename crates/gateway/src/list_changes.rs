//! Tells clients that a list has changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::sleep;
use wharf::RawJson;
use wharf::wire::RpcError;
use wharf_serve::Outbox;

use crate::catalog_view::CatalogView;
use crate::client_view::ClientView;
use crate::errors::{invalid_params, rpc_error};
use crate::gateway::GatewayShared;
use crate::requests::ClientRequest;
use crate::resource_updates::{self, MAX_SUBSCRIPTIONS, ResourceSubscription};
use crate::responses::notification;

/// Time to wait for further changes before one is announced.
const CHANGE_DELAY: Duration = Duration::from_millis(250);

/// The lists: their name in a subscription, and the notification of a change.
const LISTS: [(&str, &str); 3] = [
    ("toolsListChanged", "notifications/tools/list_changed"),
    ("promptsListChanged", "notifications/prompts/list_changed"),
    ("resourcesListChanged", "notifications/resources/list_changed"),
];

/// Sends a session a notification for each list that has changed, for as long as the host exists.
pub(crate) async fn announce(shared: Arc<GatewayShared>, view: Arc<ClientView>, out: Arc<dyn Outbox>) {
    follow(&shared, &view, |changed| out.send(notification(changed, &json!({})))).await;
}

/// Answers `subscriptions/listen`: acknowledges it, and sends the notifications it asks for until it is cancelled.
pub(crate) async fn listen(request: &ClientRequest) -> Result<RawJson, RpcError> {
    let wanted: Map<String, Value> =
        request.param("notifications")?.ok_or_else(|| invalid_params("`notifications` must be an object"))?;
    let is_wanted = |name: &str| wanted.get(name) == Some(&Value::Bool(true));
    let mut granted: Map<String, Value> =
        LISTS.iter().filter(|(name, _)| is_wanted(name)).map(|(name, _)| ((*name).to_owned(), true.into())).collect();
    let id: Value = serde_json::from_slice(&request.id).unwrap_or_default();
    let send = |method: &str, mut params: Value| {
        params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
        request.out.send(notification(method, &params));
    };
    let subscriptions = watch_resources(request, &wanted, &id).await?;
    if !subscriptions.is_empty() {
        granted.insert("resourceSubscriptions".to_owned(), subscriptions.keys().map(String::as_str).collect());
    }
    send("notifications/subscriptions/acknowledged", json!({ "notifications": granted }));
    follow(&request.shared, &request.view, |changed| {
        if LISTS.iter().any(|(name, method)| *method == changed && granted.contains_key(*name)) {
            send(changed, json!({}));
        }
    })
    .await;
    Err(rpc_error(wharf::wire::code::INTERNAL, "the gateway is closing"))
}

/// Subscribes to the resources that a listen names. Those that their servers do not watch are left out.
async fn watch_resources(
    request: &ClientRequest,
    wanted: &Map<String, Value>,
    id: &Value,
) -> Result<BTreeMap<String, ResourceSubscription>, RpcError> {
    let uris = wanted.get("resourceSubscriptions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if uris.len() > MAX_SUBSCRIPTIONS {
        return Err(invalid_params(format!("a listen names {MAX_SUBSCRIPTIONS} resources at most")));
    }
    let mut granted = BTreeMap::new();
    for uri in uris.iter().filter_map(Value::as_str) {
        let (out, id) = (Arc::clone(&request.out), id.clone());
        let send = move |uri: &str| {
            let params = json!({"uri": uri, "_meta": {"io.modelcontextprotocol/subscriptionId": id}});
            out.send(notification("notifications/resources/updated", &params));
        };
        if let Ok(subscription) = resource_updates::subscribe(request, uri, Box::new(send)).await {
            granted.insert(uri.to_owned(), subscription);
        }
    }
    Ok(granted)
}

/// Calls `report` with the notification of each list whose content has changed.
async fn follow(shared: &GatewayShared, view: &ClientView, report: impl Fn(&'static str)) {
    let mut changes = shared.host.catalog_changes();
    let mut before = view.current();
    while changes.changed().await.is_ok() {
        sleep(CHANGE_DELAY).await;
        changes.mark_unchanged();
        let now = view.current();
        changed_lists(&before, &now).for_each(&report);
        before = now;
    }
}

fn changed_lists(before: &CatalogView, now: &CatalogView) -> impl Iterator<Item = &'static str> + use<> {
    let has_changed = [
        before.tools != now.tools,
        before.prompts != now.prompts,
        before.resources != now.resources || before.templates != now.templates,
    ];
    LISTS.into_iter().zip(has_changed).filter(|(_, has_changed)| *has_changed).map(|((_, method), _)| method)
}
