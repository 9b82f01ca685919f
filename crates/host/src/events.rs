//! Events of a host.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use tokio::sync::broadcast;
use wharf_client::CallTag;
use wharf_json::RawJson;
use wharf_spec::{ServerName, ToolId};
use wharf_wire::{LogMessage, Progress};

use crate::server_error::ServerError;
use crate::supervise::ServerState;

/// Capacity of the event buffer. A reader that falls behind loses the oldest events and learns their number.
const EVENT_BUFFER_CAPACITY: usize = 1024;
/// Maximum bytes of server content in one event.
const MAX_EVENT_BYTES: usize = 16 << 10;
/// Maximum bytes of server content in events whose rate the server controls.
const MAX_FREQUENT_EVENT_BYTES: usize = 4 << 10;

/// An event of the host.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A server's state has changed.
    State {
        /// The server.
        server: ServerName,
        /// The new state.
        state: ServerState,
        /// The error, if any.
        last_error: Option<Arc<ServerError>>,
    },
    /// A server's catalog section has changed.
    Catalog {
        /// The server.
        server: ServerName,
        /// Number of tools it offers now.
        tools: usize,
    },
    /// Progress of a call.
    Progress {
        /// The called tool.
        tool: ToolId,
        /// The progress. Untrusted.
        progress: Progress,
    },
    /// A server's log message. Untrusted.
    Log {
        /// The server.
        server: ServerName,
        /// The call that the message belongs to, if known.
        call: Option<CallTag>,
        /// The message. Data of more than 4 KiB is a JSON string of its beginning.
        message: LogMessage,
    },
    /// A subscribed resource has changed.
    ResourceUpdated {
        /// The server.
        server: ServerName,
        /// The resource. Untrusted.
        uri: String,
    },
    /// A poll has ended.
    Polled {
        /// ID of the subscription.
        subscription: String,
        /// The polled server.
        server: ServerName,
        /// The polled tool or resource.
        target: String,
        /// The protocol result, or the error. A result of more than 16 KiB is a JSON string of its beginning.
        outcome: Result<RawJson, String>,
    },
    /// A person is asked a question.
    Asked {
        /// The server that the question concerns.
        server: ServerName,
        /// The kind of question.
        kind: &'static str,
    },
    /// A login to a server has succeeded.
    LoggedIn {
        /// The server.
        server: ServerName,
    },
    /// A call has ended.
    Called {
        /// The called tool.
        tool: ToolId,
        /// Duration of the call.
        duration: Duration,
        /// Set if the call returned a result that is not an error.
        success: bool,
    },
    /// Writing the audit log has failed.
    AuditFailed {
        /// The error.
        text: String,
    },
    /// Saving approved or released definitions has failed: they are lost when the host stops.
    NotKept {
        /// The error.
        text: String,
    },
    /// A problem that does not stop the server.
    Warning {
        /// The server.
        server: ServerName,
        /// The problem; escaped.
        text: String,
    },
}

/// An event and its time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TimedEvent {
    /// Time of the event.
    pub at: SystemTime,
    /// The event.
    pub event: Event,
}

/// A receiver of events. The host never waits for it; a slow receiver loses events and learns their number.
pub struct EventReceiver(broadcast::Receiver<TimedEvent>);

/// An item returned by [`EventReceiver::next`].
#[derive(Debug, Clone)]
pub enum EventDelivery {
    /// An event.
    Event(TimedEvent),
    /// Number of events dropped because the receiver was slow.
    Missed(u64),
}

impl EventReceiver {
    /// Returns the next event, or `None` once the host is closed. Cancel-safe.
    pub async fn next(&mut self) -> Option<EventDelivery> {
        match self.0.recv().await {
            Ok(told) => Some(EventDelivery::Event(told)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(EventDelivery::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// Sender of events.
pub(crate) struct EventBus(ArcSwapOption<broadcast::Sender<TimedEvent>>);

impl EventBus {
    pub fn new() -> Self {
        Self(ArcSwapOption::from_pointee(broadcast::channel(EVENT_BUFFER_CAPACITY).0))
    }

    pub fn subscribe(&self) -> EventReceiver {
        let listener = self.0.load().as_ref().map(|teller| teller.subscribe());
        // After the end: a channel that is closed already.
        EventReceiver(listener.unwrap_or_else(|| broadcast::channel(1).1))
    }

    /// Reports whether there are receivers.
    pub fn has_receivers(&self) -> bool {
        self.0.load().as_ref().is_some_and(|teller| teller.receiver_count() > 0)
    }

    /// Publishes an event. Server content is copied and truncated: events are buffered, and a slice would keep the
    /// whole message in memory.
    pub fn publish(&self, event: Event) {
        if let Some(teller) = self.0.load().as_ref().filter(|teller| teller.receiver_count() > 0) {
            // Fails if the last receiver has just been dropped.
            let _ = teller.send(TimedEvent { at: SystemTime::now(), event: truncate_event(event) });
        }
    }

    /// Closes the channel. Receivers get `None` after the buffered events.
    pub fn close(&self) {
        self.0.store(None);
    }
}

fn truncate_event(mut event: Event) -> Event {
    match &mut event {
        Event::Progress { progress, .. } => {
            progress.token = copy_bounded(&progress.token, MAX_FREQUENT_EVENT_BYTES);
            progress.message.iter_mut().for_each(|message| shorten(message, MAX_FREQUENT_EVENT_BYTES));
        }
        Event::Log { message, .. } => {
            message.data = copy_bounded(&message.data, MAX_FREQUENT_EVENT_BYTES);
            message.logger.iter_mut().for_each(|logger| shorten(logger, MAX_FREQUENT_EVENT_BYTES));
        }
        Event::ResourceUpdated { uri, .. } => shorten(uri, MAX_EVENT_BYTES),
        Event::Polled { target, outcome, .. } => {
            shorten(target, MAX_EVENT_BYTES);
            match outcome {
                Ok(result) => *result = copy_bounded(result, MAX_EVENT_BYTES),
                Err(why) => shorten(why, MAX_EVENT_BYTES),
            }
        }
        _ => {}
    }
    event
}

fn shorten(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
        text.shrink_to_fit();
    }
}

/// Copies a value, or the beginning of its text, into its own memory.
fn copy_bounded(value: &RawJson, most: usize) -> RawJson {
    let text = value.as_str();
    if text.len() <= most {
        return RawJson::new_unchecked(text.to_owned());
    }
    let beginning = format!("{}…", &text[..text.floor_char_boundary(most)]);
    RawJson::from_value(&beginning).unwrap_or_else(|_| RawJson::new_unchecked("null"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_wire::LogLevel;

    async fn publish_and_receive(event: Event) -> Event {
        let event_bus = EventBus::new();
        let mut events = event_bus.subscribe();
        event_bus.publish(event);
        let Some(EventDelivery::Event(told)) = events.next().await else { panic!("nothing was told") };
        told.event
    }

    #[tokio::test]
    async fn events_truncate_server_text() {
        let server = ServerName::new("one").unwrap();
        for (length, whole) in [(10, true), (1 << 20, false)] {
            let text = "ü".repeat(length);
            let data = RawJson::from_value(&text).unwrap();
            let message = LogMessage { level: LogLevel::Info, logger: Some(text.clone()), data: data.clone() };
            let Event::Log { message, .. } =
                publish_and_receive(Event::Log { server: server.clone(), call: None, message }).await
            else {
                panic!("another event")
            };
            assert_eq!((message.data == data, message.logger == Some(text.clone())), (whole, whole));
            let most = MAX_FREQUENT_EVENT_BYTES + 100;
            assert!(message.data.as_bytes().len() < most && message.logger.unwrap().len() < most);
            assert_ne!(message.data.as_bytes().as_ptr(), data.as_bytes().as_ptr());
            let updated =
                publish_and_receive(Event::ResourceUpdated { server: server.clone(), uri: text.clone() }).await;
            assert!(matches!(updated, Event::ResourceUpdated { uri, .. } if (uri == text) == whole));
            let (subscription, target) = ("poll-1".to_owned(), "t".to_owned());
            let polled = Event::Polled { subscription, server: server.clone(), target, outcome: Ok(data.clone()) };
            assert!(
                matches!(publish_and_receive(polled).await, Event::Polled { outcome: Ok(it), .. } if (it == data) == whole)
            );
        }
    }
}
