//! A server as a child process, spoken to by lines over its standard streams.

mod driver;
mod frames;
mod link;
mod prepare;
mod stderr;

use std::io;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use crate::engine::{Dialect, Engine};
use crate::error::ConnectCause;
use crate::guard::{Containment, GuardProgram, LaunchError, launch};
use crate::limits::Limits;
use crate::tap::Tap;

use driver::Driver;
use link::StdioLink;
pub(crate) use prepare::{Prepared, prepare};
use stderr::Ring;

/// An open link to a server, held together. Dropping it ends the server without waiting.
pub(crate) struct Open {
    pub engine: Arc<Engine>,
    pub pid: i32,
    pub containment: Containment,
    link: Arc<StdioLink>,
    stderr: Arc<Mutex<Ring>>,
    driver: tokio::task::AbortHandle,
    /// Changes to true when nothing of the server is left.
    ended: watch::Receiver<bool>,
}

/// What an [`Open`] is made with.
pub(crate) struct Opening {
    pub name: String,
    pub dialect: Arc<dyn Dialect>,
    pub tap: Option<Arc<dyn Tap>>,
    pub limits: Limits,
    pub guard: GuardProgram,
}

/// Starts the server and the task that drives its streams.
pub(crate) async fn open(prepared: &Prepared, opening: Opening) -> Result<Open, ConnectCause> {
    let Opening { name, dialect, tap, limits, guard } = opening;
    let errand = prepared.errand(limits.orphan_grace);
    let (process, streams) = launch(errand, guard).await.map_err(|error| match error {
        LaunchError::Server(error) if is_about_the_file(&error) => {
            ConnectCause::NotExecutable { program: prepared.program.clone(), error }
        }
        LaunchError::Server(error) | LaunchError::Around(error) => ConnectCause::Spawn(error),
    })?;
    let link = Arc::new(StdioLink::new(streams.stdin, limits.queued).map_err(ConnectCause::Spawn)?);
    let engine = Arc::new(Engine::new(name, link.clone(), dialect, tap, limits.clone()));
    let ring = Arc::new(Mutex::new(Ring::new(limits.stderr_line, limits.stderr_kept)));
    let (pid, containment) = (process.pid, process.containment);
    let stderr_reader = stderr::drain(streams.stderr, ring.clone()).map_err(ConnectCause::Spawn)?;
    let (mut exit, told) = (process.exit(), link.clone());
    tokio::spawn(async move { told.server_exited(driver::exited(&mut exit).await) });
    let (done, ended) = watch::channel(false);
    let driver =
        Driver::new(engine.clone(), link.clone(), streams.stdout, process, limits).map_err(ConnectCause::Spawn)?;
    let lines = ring.clone();
    let task = tokio::spawn(async move {
        driver.run(stderr_reader, lines).await;
        let _ = done.send(true);
    });
    Ok(Open { engine, pid, containment, link, stderr: ring, driver: task.abort_handle(), ended })
}

fn is_about_the_file(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::EACCES | libc::ENOEXEC | libc::ENOTDIR | libc::ELIBBAD | libc::EISDIR)
    )
}

impl Open {
    /// The last lines of stderr.
    pub fn stderr_tail(&self, lines: usize) -> Vec<String> {
        self.stderr.lock().unwrap_or_else(std::sync::PoisonError::into_inner).tail(lines)
    }

    /// Ends the server the polite way and waits until nothing of it is left. Dropped while it waits, the server
    /// goes on ending.
    pub async fn close(&self) {
        self.link.close();
        let mut ended = self.ended.clone();
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
