//! Connects to servers in parallel, with a status line for slow ones.

use tokio::task::JoinSet;
use tokio::time::Instant;
use wharf::{Host, HostError, ListingMode};
use wharf_client::{ClientServices, Connection};
use wharf_spec::ServerEntry;

use crate::failure::Failure;
use crate::one_shot_host::{OneShotHost, OneShotOptions};
use crate::progress::{starting_text, with_startup_status};
use crate::services::warn_of_logs;
use crate::session::CommandSession;

/// Connects to one server and provides these services to it.
///
/// # Errors
///
/// Fails if the connection fails.
pub async fn connect_one(
    session: &CommandSession,
    server: &ServerEntry,
    services: &ClientServices,
) -> Result<Connection, Failure> {
    let ready = |connection| async { Ok(connection) };
    let mut connected = connect_each_with(session, std::slice::from_ref(server), services, ready).await?;
    let connection =
        connected.pop().unwrap_or_else(|| Err(Failure::other("internal error: no server to connect to")))?;
    warn_of_logs(session, services, &connection);
    Ok(connection)
}

/// Starts a host that connects to the servers and lists nothing. The session closes it.
///
/// # Errors
///
/// Fails if the configuration or its rules are invalid.
pub async fn start_connections<'a>(
    session: &'a CommandSession,
    servers: &[ServerEntry],
    services: &ClientServices,
) -> Result<OneShotHost<'a>, Failure> {
    let with = OneShotOptions { services: services.clone(), lists: ListingMode::Nothing, ..OneShotOptions::default() };
    OneShotHost::start(session, servers.to_vec(), with).await
}

/// Connects to all servers in parallel, without providing services, and starts the work for each as soon as it is
/// connected. A failure of one server does not affect the others. Results are in the order of the servers.
pub async fn connect_each<T, F>(
    session: &CommandSession,
    servers: &[ServerEntry],
    work: impl Fn(Connection) -> F,
) -> Result<Vec<Result<T, Failure>>, Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    connect_each_with(session, servers, &ClientServices::default(), work).await
}

/// Connects to all servers in parallel and starts the work for each as soon as it is connected. A failure of one server
/// does not affect the others. Results are in the order of the servers.
///
/// # Errors
///
/// Fails if the configuration or its rules are invalid.
async fn connect_each_with<T, F>(
    session: &CommandSession,
    servers: &[ServerEntry],
    services: &ClientServices,
    work: impl Fn(Connection) -> F,
) -> Result<Vec<Result<T, Failure>>, Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let hosted = start_connections(session, servers, services).await?;
    let mut tasks = JoinSet::new();
    for (position, server) in servers.iter().enumerate() {
        tasks.spawn(wait_for_server(position, hosted.host.clone(), server.name.as_str().to_owned()));
    }
    let mut waiting = PendingServers { names: servers.iter().map(|server| Some(server.name.as_str())).collect() };
    let mut results: Vec<Option<Result<T, Failure>>> = servers.iter().map(|_| None).collect();
    let began = Instant::now();
    while let Some(message) = next_message(&mut tasks, session, &waiting, began).await {
        let TaskMessage { position, what } = message;
        waiting.names[position] = None;
        match what {
            TaskStage::Connected(Ok(connection)) => {
                let work = work(connection);
                tasks.spawn(async move { TaskMessage { position, what: TaskStage::Done(work.await) } });
            }
            TaskStage::Connected(Err(error)) => {
                results[position] = Some(Err(hosted.failure(&servers[position].name, error)));
            }
            TaskStage::Done(result) => results[position] = Some(result),
        }
    }
    session.console.clear_status();
    let task_failed = || Err(Failure::other("internal error: the connection task failed"));
    let with_hint = |result: Result<T, Failure>| result.map_err(|failure| session.with_login_hint(failure));
    Ok(results.into_iter().map(|result| with_hint(result.unwrap_or_else(task_failed))).collect())
}

async fn wait_for_server<T>(position: usize, host: Host, name: String) -> TaskMessage<T> {
    TaskMessage { position, what: TaskStage::Connected(host.wait_until_ready(&name).await) }
}

/// A message from a task.
struct TaskMessage<T> {
    position: usize,
    what: TaskStage<T>,
}

enum TaskStage<T> {
    Connected(Result<Connection, HostError>),
    Done(Result<T, Failure>),
}

/// Servers that are not connected yet.
struct PendingServers<'a> {
    names: Vec<Option<&'a str>>,
}

/// Waits for the next message, with a status line in the meantime.
async fn next_message<T: 'static>(
    tasks: &mut JoinSet<TaskMessage<T>>,
    session: &CommandSession,
    waiting: &PendingServers<'_>,
    began: Instant,
) -> Option<TaskMessage<T>> {
    with_startup_status(session, began, || waiting.status_text(), async {
        loop {
            // The panic hook has reported a task that panicked. Its server has no result.
            if let Ok(message) = tasks.join_next().await? {
                return Some(message);
            }
        }
    })
    .await
}

impl PendingServers<'_> {
    fn status_text(&self) -> String {
        let names: Vec<&str> = self.names.iter().copied().flatten().collect();
        if names.is_empty() { "waiting for a response".to_owned() } else { starting_text(&names) }
    }
}
