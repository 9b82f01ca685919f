//! The three demo servers of the tour.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;
use wharf_client::{ClientServices, ConnectOptions, Connection, Direction, Tap, TappedMessage, connect};
use wharf_spec::{ServerSpec, StdioSpec};

use super::interaction_scenes::QuestionRecorder;
use wharf_terminal::failure::Failure;
use wharf_terminal::services::ServiceArgs;
use wharf_terminal::session::CommandSession;

/// An environment variable that no server may see.
pub const SECRET: &str = "WHARF_DEMO_SECRET";

/// Name of each server, and the only revision it speaks, if restricted.
const DEMO_SERVERS: [(&str, Option<&str>); 3] =
    [("north", None), ("east", Some("2025-11-25")), ("west", Some("2024-11-05"))];

/// Source of the answers to a server's questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerSource {
    Tour,
    Person,
}

/// The tour's own answer. The other fields have defaults.
const AUTOMATIC_ANSWER: &str = "email=ada@harbour.example";

pub struct DemoServers<'a> {
    pub session: &'a CommandSession,
    pub answers: AnswerSource,
    /// Records the questions of the servers.
    pub recorder: QuestionRecorder,
    services: ClientServices,
    /// Empty until all servers are connected.
    pub servers: Vec<Connection>,
    pub cancellations: Arc<CancellationCounter>,
    pub program: OsString,
}

/// Counts the cancellations sent.
#[derive(Default)]
pub struct CancellationCounter(AtomicUsize);

impl Tap for CancellationCounter {
    fn message(&self, passing: &TappedMessage<'_>) {
        let method: &[u8] = b"\"notifications/cancelled\"";
        if passing.direction == Direction::Sent && passing.bytes.windows(method.len()).any(|part| part == method) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl CancellationCounter {
    pub fn sent(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl<'a> DemoServers<'a> {
    pub fn new(session: &'a CommandSession, answers: AnswerSource) -> Result<Self, Failure> {
        let given: &[&str] = if answers == AnswerSource::Tour { &[AUTOMATIC_ANSWER] } else { &[] };
        let (recorder, services) = QuestionRecorder::wrap(ServiceArgs::with_answers(given).prepare(session)?.services);
        let program = std::env::current_exe()
            .map_err(|error| Failure::other(format_args!("cannot determine the path of this program: {error}")))?;
        Ok(Self {
            session,
            answers,
            recorder,
            services: services.tasks(),
            servers: Vec::new(),
            cancellations: Arc::default(),
            program: program.into(),
        })
    }

    /// Connects to all servers in parallel.
    ///
    /// # Errors
    ///
    /// Fails if a connection fails.
    pub async fn connect_all(&mut self) -> Result<(), Failure> {
        let mut arriving = JoinSet::new();
        for (position, (name, revision)) in DEMO_SERVERS.into_iter().enumerate() {
            let (spec, options) = (self.spec(revision), self.options(name));
            arriving.spawn(async move {
                let environment = options.surroundings.clone();
                let connected = connect(&spec, options).await;
                (
                    position,
                    connected.map_err(|error| {
                        Failure::from_connect_error(name, &ServerSpec::Stdio(spec), &environment, error)
                    }),
                )
            });
        }
        let mut arrived = Vec::new();
        while let Some(joined) = arriving.join_next().await {
            let (position, connected) = joined.map_err(Failure::other)?;
            let connection = connected?;
            self.session.track_connection(&connection);
            arrived.push((position, connection));
        }
        arrived.sort_by_key(|(position, _)| *position);
        self.servers = arrived.into_iter().map(|(_, connection)| connection).collect();
        Ok(())
    }

    fn spec(&self, revision: Option<&str>) -> StdioSpec {
        let mut args: Vec<OsString> = vec!["demo-server".into(), "--stdio".into()];
        if let Some(revision) = revision {
            args.extend(["--revision".into(), revision.into()]);
        }
        StdioSpec { program: self.program.clone(), args, ..StdioSpec::default() }
    }

    /// Returns the usual connect options, plus a secret in the environment and a tap that counts cancellations.
    pub fn options(&self, name: &str) -> ConnectOptions {
        let mut options = self.session.connect_options(name);
        options.surroundings.env.push((SECRET.into(), "do not tell".into()));
        options.tap = Some(self.cancellations.clone());
        options.services = self.services.clone();
        options
    }

    /// Returns the server that speaks every revision.
    pub fn north(&self) -> &Connection {
        &self.servers[0]
    }

    /// Returns the server that crashes later.
    pub fn east(&self) -> &Connection {
        &self.servers[1]
    }

    /// Returns the server with the oldest revision.
    pub fn west(&self) -> &Connection {
        &self.servers[2]
    }
}
