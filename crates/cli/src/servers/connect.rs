//! Connecting: all at once, each on its own, with a word on what takes long.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use wharf_client::{Connection, ServerFacts, Services, connect_to};

use super::Server;
use crate::failure::Failure;
use crate::session::Session;

/// After this long a start is worth a word.
const SLOW_START: Duration = Duration::from_secs(2);
/// How often that word changes.
const TICK: Duration = Duration::from_secs(1);

/// Connects to one server, with what is done for it.
pub async fn connect_one(session: &Session, server: &Server, services: &Services) -> Result<Connection, Failure> {
    let ready = |connection| async { Ok(connection) };
    let mut connected = each_served(session, std::slice::from_ref(server), services, ready).await;
    let connection = connected.pop().unwrap_or_else(|| Err(Failure::other("no server was asked for")))?;
    let ServerFacts { name, capabilities, .. } = connection.facts();
    // With --debug nobody may have asked for them.
    if services.logs.is_some() && !capabilities.logging && !session.console.manner.debug {
        session.console.warn(format_args!("{name} offers no logs, so none will be shown"));
    }
    Ok(connection)
}

/// Connects to all servers, doing nothing for them: see [`each_served`].
pub async fn each<T, F>(
    session: &Session,
    servers: &[Server],
    work: impl Fn(Connection) -> F,
) -> Vec<Result<T, Failure>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    each_served(session, servers, &Services::default(), work).await
}

/// Connects to all servers in parallel and does something with each as soon as it is there. What one of them does
/// takes nothing from the others. The results come in the order of the servers.
///
/// Dropped while it waits, it ends what is still connecting; what is connected is the session's to close.
async fn each_served<T, F>(
    session: &Session,
    servers: &[Server],
    services: &Services,
    work: impl Fn(Connection) -> F,
) -> Vec<Result<T, Failure>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for (position, Server { name, spec }) in servers.iter().cloned().enumerate() {
        let mut options = session.connect_options(&name);
        options.services = services.clone();
        tasks.spawn(async move {
            let around = options.surroundings.clone();
            let connected = connect_to(&spec, options).await;
            let connected = connected.map_err(|error| Failure::connecting(&name, &spec, &around, error));
            News { position, what: Stage::Connected(connected) }
        });
    }
    let mut waiting = Waiting { names: servers.iter().map(|server| Some(server.name.as_str())).collect() };
    let mut results: Vec<Option<Result<T, Failure>>> = servers.iter().map(|_| None).collect();
    let began = Instant::now();
    while let Some(news) = next(&mut tasks, session, &waiting, began).await {
        let News { position, what } = news;
        waiting.names[position] = None;
        match what {
            Stage::Connected(Ok(connection)) => {
                session.keep(&connection);
                let work = work(connection);
                tasks.spawn(async move { News { position, what: Stage::Done(work.await) } });
            }
            Stage::Connected(Err(failure)) => results[position] = Some(Err(failure)),
            Stage::Done(result) => results[position] = Some(result),
        }
    }
    session.console.clear();
    let lost = || Err(Failure::other("the task of this server was lost"));
    results.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
}

/// What a task has to tell.
struct News<T> {
    position: usize,
    what: Stage<T>,
}

enum Stage<T> {
    Connected(Result<Connection, Failure>),
    Done(Result<T, Failure>),
}

/// The servers that are not connected yet.
struct Waiting<'a> {
    names: Vec<Option<&'a str>>,
}

/// The next news; meanwhile the person is told what is being waited for.
async fn next<T: 'static>(
    tasks: &mut JoinSet<News<T>>,
    session: &Session,
    waiting: &Waiting<'_>,
    began: Instant,
) -> Option<News<T>> {
    loop {
        let tick = (Instant::now() + TICK).max(began + SLOW_START);
        tokio::select! {
            // A task that panicked has been reported by the hook; its server stays without a result.
            news = tasks.join_next() => if let Ok(news) = news? {
                return Some(news);
            },
            () = tokio::time::sleep_until(tick) => session.console.status(&waiting.told(began)),
        }
    }
}

impl Waiting<'_> {
    fn told(&self, began: Instant) -> String {
        let names: Vec<&str> = self.names.iter().copied().flatten().collect();
        if names.is_empty() {
            return "waiting for an answer".to_owned();
        }
        format!("{} · still starting, {} s", names.join(", "), began.elapsed().as_secs())
    }
}
