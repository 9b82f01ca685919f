//! A server as a child process, with one message per line over its standard streams.

mod driver;
mod lines;
mod link;
mod prepare;
mod stderr;

use std::io;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use tracing::Instrument as _;

use super::{LinkHandle, LinkSetup, ServerProcess, ServerStarter, StartedServer, Transport, check_launch};
use crate::error::ConnectCause;
use crate::process_log::{ProcessNote, ServerProcessLog};
use crate::services::BoxedFuture;
use wharf_guard::{LaunchError, launch};

use driver::StdioDriver;
use link::StdioLink;
pub(crate) use prepare::{PreparedCommand, prepare};
use stderr::StderrBuffer;

/// The streams and the process of a server. Dropping it ends the server without waiting.
struct StdioLinkHandle {
    link: Arc<StdioLink>,
    stderr: Arc<Mutex<StderrBuffer>>,
    driver: tokio::task::AbortHandle,
    /// Changes to true when all processes of the server have ended.
    ended: watch::Receiver<bool>,
}

impl ServerStarter for Arc<PreparedCommand> {
    fn start(&self, opening: LinkSetup) -> BoxedFuture<Result<StartedServer, ConnectCause>> {
        let prepared = Self::clone(self);
        Box::pin(async move { open(&prepared, opening).await })
    }

    fn can_restart(&self) -> bool {
        true
    }
}

/// Starts the server and the task that drives its streams.
async fn open(prepared: &PreparedCommand, opening: LinkSetup) -> Result<StartedServer, ConnectCause> {
    check_launch(prepared.launch_check.as_ref(), Some(&prepared.program)).await?;
    let start_request = prepared.start_request(opening.limits.orphan_grace);
    let (process, streams) = launch(start_request, opening.guard.clone()).await.map_err(|error| match error {
        LaunchError::Server(error) if is_executable_error(&error) => {
            ConnectCause::NotExecutable { program: prepared.program.clone(), error }
        }
        LaunchError::Server(error) | LaunchError::Around(error) => ConnectCause::Spawn(error),
    })?;
    let limits = opening.limits.clone();
    let link = Arc::new(StdioLink::new(streams.stdin, limits.queued).map_err(ConnectCause::Spawn)?);
    let engine = opening.engine(link.clone());
    let log = opening.log.map(|log| ServerProcessLog { log, server: opening.observer.server });
    let ring = Arc::new(Mutex::new(StderrBuffer::new(&limits, opening.observer.redactor, log.clone())));
    let facts = ServerProcess { pid: process.pid, containment: process.containment };
    if let Some(log) = &log {
        log.record(ProcessNote::Started(facts.pid));
    }
    let stderr_reader =
        stderr::spawn_reader(streams.stderr, ring.clone(), engine.budget().clone()).map_err(ConnectCause::Spawn)?;
    let (mut exit, exited_link) = (process.exit(), link.clone());
    tokio::spawn(async move { exited_link.server_exited(driver::wait_for_exit(&mut exit).await) });
    let (done, ended) = watch::channel(false);
    let driver =
        StdioDriver::new(engine.clone(), link.clone(), streams.stdout, process, limits).map_err(ConnectCause::Spawn)?;
    let lines = ring.clone();
    let drive = async move {
        let exit = driver.run(stderr_reader, lines).await;
        if let Some(log) = log {
            log.record(ProcessNote::Ended(exit));
        }
        let _ = done.send(true);
    };
    let task = tokio::spawn(drive.instrument(opening.span));
    let streams = StdioLinkHandle { link, stderr: ring, driver: task.abort_handle(), ended };
    let mut server = StartedServer::new(engine, Transport::Stdio, streams);
    server.process = Some(facts);
    server.detail = format!("process {}, containment: {}", facts.pid, facts.containment);
    Ok(server)
}

fn is_executable_error(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::EACCES | libc::ENOEXEC | libc::ENOTDIR | libc::ELIBBAD | libc::EISDIR)
    )
}

impl LinkHandle for StdioLinkHandle {
    fn stderr_tail(&self, lines: usize) -> Vec<String> {
        self.stderr.lock().unwrap_or_else(std::sync::PoisonError::into_inner).tail(lines)
    }

    fn has_read_input(&self) -> bool {
        self.link.has_read_input()
    }

    fn has_unread_input(&self) -> bool {
        self.link.has_unread_input()
    }

    fn close(&self) -> BoxedFuture<()> {
        self.link.close();
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let _ = ended.wait_for(|ended| *ended).await;
        })
    }
}

impl Drop for StdioLinkHandle {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
