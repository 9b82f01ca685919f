//! One round of input requests within a call.

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::watch;
use wharf_spec::UntrustedText;
use wharf_wire::{ElicitationResponse, InputRequest, InputRequired, RawJson, RpcError, UrlRequest, View, code};

use crate::connection::Connection;
use crate::engine::{RequestOrigin, RequestRefusal};
use crate::error::CallError;
use crate::notifications::NotificationHub;
use crate::options::CallTag;
use crate::server_requests::{SAMPLE, USER_REJECTED};

/// Maximum delay before a call without input requests is repeated.
const MAX_REPEAT_DELAY: Duration = Duration::from_secs(5);

/// Answers one round of input requests. Returns the additional members of the repeated request, starting with a comma.
pub(super) async fn answer_round(
    connection: &Connection,
    result: RawJson,
    round: usize,
    call: Option<CallTag>,
) -> Result<String, CallError> {
    let limits = connection.limits();
    let asked = InputRequired::from_raw(result, &limits.bounds)?;
    if asked.requests.len() > limits.round_questions {
        return Err(CallError::Protocol(format!("too many input requests in one round ({})", asked.requests.len())));
    }
    if asked.state.as_ref().is_some_and(|state| state.as_bytes().len() > limits.round_state + 2) {
        return Err(CallError::Protocol(format!("requestState exceeds {} bytes", limits.round_state)));
    }
    let mut more = String::new();
    if asked.requests.is_empty() {
        // The server only wants the call repeated later.
        let wait = limits.listen_again.saturating_mul(1 << round.min(16)).min(MAX_REPEAT_DELAY);
        while_connected(connection, tokio::time::sleep(wait)).await?;
    } else {
        more.push_str(",\"inputResponses\":");
        more.push_str(&answer_requests(connection, asked.requests, call).await?);
    }
    if let Some(state) = asked.state {
        more.push_str(",\"requestState\":");
        more.push_str(state.as_str());
    }
    Ok(more)
}

/// Answers input requests in order and returns a JSON object of the responses by key.
pub(super) async fn answer_requests(
    connection: &Connection,
    requests: Vec<InputRequest>,
    call: Option<CallTag>,
) -> Result<String, CallError> {
    let mut text = String::from("{");
    for InputRequest { key, method, params } in requests {
        let origin = RequestOrigin { call, id: Some(key.as_str()) };
        let pending_reply = connection.inner().protocol.request_handler.begin_reply(&method, params, origin);
        let pending_reply = pending_reply.map_err(|refusal| input_error(&method, refusal))?;
        let pause = pending_reply.person.then(|| connection.inner().server.engine.pause_deadlines());
        let response =
            while_connected(connection, pending_reply.work).await?.map_err(|refusal| input_error(&method, refusal))?;
        drop(pause);
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(key.as_str());
        text.push(':');
        text.push_str(response.as_str());
    }
    text.push('}');
    Ok(text)
}

/// Runs `work` while the server is connected, so that the user is not prompted for a server that is gone.
async fn while_connected<T>(connection: &Connection, work: impl Future<Output = T>) -> Result<T, CallError> {
    tokio::select! {
        done = work => Ok(done),
        gone = connection.inner().server.engine.wait_until_gone() => Err(gone),
    }
}

fn input_error(method: &str, RequestRefusal { code, message }: RequestRefusal) -> CallError {
    let method_shown = UntrustedText::new(method).truncate(60).to_string();
    match code {
        USER_REJECTED if method == SAMPLE => CallError::Declined("use of a model"),
        code::METHOD_NOT_FOUND => {
            CallError::Protocol(format!("input request `{method_shown}` uses an undeclared capability"))
        }
        _ => CallError::Protocol(format!("input request `{method_shown}`: {message}")),
    }
}

/// Reports whether an error asks for pages to be visited (2025-11-25, client/elicitation) and the elicitor can show
/// them.
pub(super) fn requires_pages(connection: &Connection, error: &RpcError) -> bool {
    let elicitor = &connection.inner().protocol.request_handler.services().elicitation;
    error.code == code::URL_ELICITATION_REQUIRED && elicitor.as_ref().is_some_and(|elicitor| elicitor.supports_pages())
}

/// Shows every page to the user, and waits until the server or the user reports that it is done. An error whose data
/// lists no valid pages is returned as the server sent it.
pub(super) async fn visit_pages(
    connection: &Connection,
    error: RpcError,
    call: Option<CallTag>,
) -> Result<(), CallError> {
    #[derive(Deserialize)]
    struct WireUrlElicitations<'a> {
        #[serde(borrow)]
        elicitations: Vec<&'a serde_json::value::RawValue>,
    }
    let limits = connection.limits();
    let data = error.data.clone().unwrap_or_else(RawJson::empty_object);
    let Ok(WireUrlElicitations { elicitations }) = data.decode(&limits.bounds) else {
        return Err(CallError::ErrorResponse(error));
    };
    if elicitations.is_empty() || elicitations.len() > limits.round_questions {
        return Err(CallError::ErrorResponse(error));
    }
    for page in elicitations {
        let page = RawJson::parse(page.get().to_owned()).ok();
        let page = page.and_then(|page| UrlRequest::from_raw(page, &limits.bounds).ok());
        let Some(page) = page else { return Err(CallError::ErrorResponse(error)) };
        while_connected(connection, visit_page(connection, page, call)).await??;
    }
    Ok(())
}

async fn visit_page(connection: &Connection, page: UrlRequest, call: Option<CallTag>) -> Result<(), CallError> {
    let inner = connection.inner();
    // Registered before the page is opened: the server may report completion while the user still reads the prompt.
    let mut waited = page.elicitation_id.as_deref().map(|id| PageRegistration::new(&inner.protocol.notifications, id));
    let _pause = inner.server.engine.pause_deadlines();
    if !matches!(inner.protocol.request_handler.show_page(page.clone(), call).await, ElicitationResponse::Accept(_)) {
        return Err(CallError::Declined("a visit to a web page"));
    }
    let told = async {
        match waited.as_mut().and_then(|waited| waited.done.as_mut()) {
            Some(done) => drop(done.wait_for(|done| *done).await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = told => {}
        () = inner.protocol.request_handler.wait_for_page(&page, call) => {}
        // No completion was reported: repeat the call, and the server decides.
        () = tokio::time::sleep(inner.limits.ask_timeout) => {}
    }
    Ok(())
}

/// Registration for the completion of a page.
struct PageRegistration<'a> {
    notifications: &'a NotificationHub,
    id: &'a str,
    done: Option<watch::Receiver<bool>>,
}

impl<'a> PageRegistration<'a> {
    fn new(notifications: &'a NotificationHub, id: &'a str) -> Self {
        Self { notifications, id, done: Some(notifications.watch_page(id)) }
    }
}

impl Drop for PageRegistration<'_> {
    fn drop(&mut self) {
        self.done = None;
        self.notifications.forget_page(self.id);
    }
}
