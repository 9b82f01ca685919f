//! Task that performs a supervisor's effects: starts, dials, closes and keeps time. It makes no decisions.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use wharf_client::{Connection, DisconnectReport, RequestOptions};

use super::phase::Phase;
use super::step::{ClockReading, Supervisor, SupervisorEffect, SupervisorEvent};
use super::{OpenConnection, ServerSnapshot, ServerState};
use crate::context::HostContext;
use crate::lister::run_lister;
use crate::login::LoginFlow;
use crate::server::{Server, SupervisorMessage};
use crate::server_error::ServerError;

/// Time that calls in progress have to finish before the connection is closed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of a health check.
const HEALTH_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// State of one supervisor's task.
pub(crate) struct SupervisorTask {
    pub context: Arc<HostContext>,
    pub server: Arc<Server>,
    pub supervisor: Supervisor<ServerConnectAttempt, OpenConnection>,
    pub messages: mpsc::UnboundedReceiver<SupervisorMessage>,
    pub snapshot: watch::Sender<ServerSnapshot>,
    pub closing: ClosingConnections,
    /// The health check in progress.
    pub check: Option<HealthCheck>,
    /// The login flow, until the server is connected or no longer wanted.
    pub login: Option<LoginFlow>,
}

/// A health check in progress. Dropping it cancels the check.
pub(crate) struct HealthCheck(JoinHandle<Result<(), ServerError>>);

impl Drop for HealthCheck {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connections that are being closed. A new attempt waits until all of them are closed, because both servers may need
/// the same file or port.
#[derive(Default)]
pub(crate) struct ClosingConnections {
    tasks: JoinSet<()>,
    left: watch::Sender<usize>,
}

impl ClosingConnections {
    /// Closes a connection after the future `first` has completed.
    fn close(&mut self, connection: Connection, first: impl Future<Output = ()> + Send + 'static) {
        self.left.send_modify(|left| *left += 1);
        let left = self.left.clone();
        self.tasks.spawn(async move {
            first.await;
            connection.close().await;
            left.send_modify(|left| *left -= 1);
        });
    }
}

/// A connection attempt in progress. Dropping it cancels the attempt and stops everything it has started.
pub(crate) struct ServerConnectAttempt {
    task: JoinHandle<Result<Connection, ServerError>>,
}

impl Drop for ServerConnectAttempt {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Supervises one server until a leave message arrives or all senders are dropped, then disconnects it.
pub(crate) async fn supervise(mut task: SupervisorTask) {
    while let Some(event) = task.next_event().await {
        let is_command = matches!(event, SupervisorEvent::Command(_));
        let effects = task.supervisor.step(event, current_time());
        task.perform(effects);
        if is_command {
            task.server.commands_done.send_modify(|done| *done += 1);
        }
    }
    task.finish().await;
}

/// Returns the current time by both clocks.
pub(crate) fn current_time() -> ClockReading {
    ClockReading { at: Instant::now(), date: SystemTime::now() }
}

impl SupervisorTask {
    /// Takes the first step, before the server becomes visible: a server about to connect is not at rest.
    pub fn begin(&mut self) {
        let effects = self.supervisor.begin(current_time());
        self.perform(effects);
    }

    /// Returns the next event for `step`.
    async fn next_event(&mut self) -> Option<SupervisorEvent<OpenConnection>> {
        let Self { context, server, supervisor, messages, closing, check, .. } = self;
        let due = supervisor.next_due(server.usage.activity(), Instant::now());
        let epoch = supervisor.epoch();
        tokio::select! {
            message = messages.recv() => match message {
                Some(SupervisorMessage::Do(command)) => Some(SupervisorEvent::Command(command)),
                Some(SupervisorMessage::LoginRequired { epoch, error }) => {
                    Some(SupervisorEvent::LoginRequired { epoch, error: Arc::new(ServerError::LoginRequired(error)) })
                }
                Some(SupervisorMessage::ScopeRequired(error)) => {
                    context.prompt_for_scope(server, &error);
                    Some(SupervisorEvent::Due(server.usage.activity()))
                }
                Some(SupervisorMessage::Leave) | None => None,
            },
            () = server.demand.notified() => Some(SupervisorEvent::Demand),
            change = wait_for_phase_event(supervisor.phase_mut()) => Some(match change {
                PhaseEvent::Attempted(outcome) => on_connect_result(context, server, epoch, outcome),
                PhaseEvent::Lost(gone) => SupervisorEvent::Lost { epoch, error: Arc::new(ServerError::Lost(gone)) },
            }),
            error = wait_for_health_check(check) => Some(match error {
                Some(error) => SupervisorEvent::Lost { epoch, error },
                None => SupervisorEvent::Due(server.usage.activity()),
            }),
            () = sleep_until(due) => Some(SupervisorEvent::Due(server.usage.activity())),
            // Removes finished tasks from the set.
            Some(_) = closing.tasks.join_next() => Some(SupervisorEvent::Due(server.usage.activity())),
        }
    }

    fn perform(&mut self, effects: Vec<SupervisorEffect<OpenConnection>>) {
        for effect in effects {
            match effect {
                SupervisorEffect::Connect(_) => self.connect(),
                SupervisorEffect::Close(open) => self.close(open),
                SupervisorEffect::Check(_) => self.start_health_check(),
            }
        }
        self.publish();
    }

    fn connect(&mut self) {
        let (context, server) = (Arc::clone(&self.context), Arc::clone(&self.server));
        let mut left = self.closing.left.subscribe();
        let task = tokio::spawn(async move {
            // Fails only if the sender is dropped, and then no connection is left.
            let _ = left.wait_for(|left| *left == 0).await;
            server.connect(&context).await
        });
        self.supervisor.store_attempt(ServerConnectAttempt { task });
    }

    fn close(&mut self, open: OpenConnection) {
        self.check = None;
        // One call was rejected; calls accepted earlier may still be in progress.
        let drains = self.supervisor.state() == ServerState::AuthRequired;
        let server = Arc::clone(&self.server);
        self.closing.close(open.into_connection(), async move {
            if drains {
                let _ = tokio::time::timeout(DRAIN_TIMEOUT, server.usage.wait_until_unused()).await;
            }
        });
    }

    fn start_health_check(&mut self) {
        let Phase::Ready { open, .. } = self.supervisor.phase() else { return };
        // Restarting the check would reset its timeout, so that an unresponsive server would never be detected.
        if self.check.is_some() {
            return;
        }
        let connection = open.connection.clone();
        self.check = Some(HealthCheck(tokio::spawn(async move {
            match connection.ping(RequestOptions::default().timeout(HEALTH_CHECK_TIMEOUT)).await {
                Err(error) if error.needs_login() => Err(ServerError::LoginRequired(error)),
                // A server that refuses the ping is alive.
                Err(error) if !error.is_error_response() => Err(ServerError::Silent(error.to_string())),
                _ => Ok(()),
            }
        })));
    }

    /// Publishes the current snapshot, and unpublishes the server's tools if it no longer offers them.
    fn publish(&mut self) {
        let snapshot = ServerSnapshot::from_supervisor(&self.supervisor);
        let before = self.snapshot.send_replace(snapshot.clone());
        if !snapshot.offers_tools() {
            self.context.unpublish(&self.server);
        }
        match snapshot.state {
            ServerState::AuthRequired if before.state == ServerState::AuthRequired => {}
            // A login prompt is open already.
            ServerState::AuthRequired if self.login.as_ref().is_some_and(LoginFlow::is_asking) => {}
            ServerState::AuthRequired => self.login = self.context.start_login_flow(&self.server, &snapshot),
            ServerState::Connecting | ServerState::Reconnecting | ServerState::Failed => {}
            ServerState::Ready
            | ServerState::Disabled
            | ServerState::Unapproved
            | ServerState::Idle
            | ServerState::Disconnected => self.login = None,
        }
        // A replaced server publishes no more events, because its name belongs to the replacement.
        if before.state != snapshot.state && !self.context.is_replaced(&self.server) {
            self.context.publish_state(&self.server, &snapshot);
        }
    }

    /// Disconnects the server: unpublishes it, lets calls in progress finish unless the host is closing, then closes
    /// the connection.
    async fn finish(mut self) {
        let phase = self.supervisor.end(current_time());
        self.publish();
        self.context.end_polling(&self.server);
        self.context.end_subscriptions(&self.server);
        if let Some(open) = phase {
            let connection = open.into_connection();
            if !self.context.is_closing() {
                let _ = tokio::time::timeout(DRAIN_TIMEOUT, self.server.usage.wait_until_unused()).await;
            }
            connection.close().await;
        }
        while self.closing.tasks.join_next().await.is_some() {}
    }
}

/// An event that arises from the resources of a phase.
enum PhaseEvent {
    Attempted(Result<Connection, ServerError>),
    Lost(Arc<DisconnectReport>),
}

/// Waits for the attempt or the connection that the phase holds. Pends forever if it holds neither.
async fn wait_for_phase_event(phase: &mut Phase<ServerConnectAttempt, OpenConnection>) -> PhaseEvent {
    match phase {
        Phase::Connecting { task: Some(attempt) } => PhaseEvent::Attempted(match (&mut attempt.task).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ServerError::NotMade("internal error: the connection task was cancelled".to_owned())),
        }),
        Phase::Ready { open, .. } => PhaseEvent::Lost(open.connection.wait_until_gone().await),
        _ => pending().await,
    }
}

fn on_connect_result(
    context: &Arc<HostContext>,
    server: &Arc<Server>,
    epoch: u64,
    outcome: Result<Connection, ServerError>,
) -> SupervisorEvent<OpenConnection> {
    match outcome {
        Ok(connection) => {
            let attendant = run_lister(Arc::clone(context), Arc::clone(server), connection.clone(), epoch);
            SupervisorEvent::Connected { epoch, open: OpenConnection::new(connection, tokio::spawn(attendant)) }
        }
        Err(error) => SupervisorEvent::NotConnected { epoch, error: Arc::new(error) },
    }
}

/// Returns the error of a failed health check. Pends forever if no check is in progress.
async fn wait_for_health_check(check: &mut Option<HealthCheck>) -> Option<Arc<ServerError>> {
    let Some(asked) = check else { return pending().await };
    let outcome = (&mut asked.0).await;
    *check = None;
    match outcome {
        Ok(Err(error)) => Some(Arc::new(error)),
        _ => None,
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => pending().await,
    }
}
