//! Drives one run to its end: prints its events and answers control requests.

use std::sync::Arc;

use serde_json::json;
use wharf::{EventDelivery, EventReceiver};
use wharf_agent::{AgentRun, RunEnding, RunEvent, TurnBlock};

use super::allowed_tools::{AllowedTools, with_refused_tools};
use super::events::EventWriter;
use super::run_totals::RunTotals;
use super::text::TextWriter;
use wharf_terminal::chat::ChatSession;
use wharf_terminal::chat::ending::{command_outcome, ending_failure};
use wharf_terminal::control::{ControlRequest, ControlSocket, PendingControlRequest, rows};
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::local_tasks::LocalTasks;
use wharf_terminal::managed_host::{ManagedHost, ReloadTrigger};
use wharf_terminal::question::has_terminal;
use wharf_terminal::server_log_notices::ServerLogNotices;

/// A run with its output and control socket.
pub struct RunDriver<'a> {
    managed_host: &'a ManagedHost<'a>,
    chat: ChatSession<'a>,
    control: Option<ControlSocket>,
    allowed: Arc<AllowedTools>,
    /// Control requests in progress.
    local_tasks: LocalTasks<'a, ()>,
    /// `None` once the run is over.
    active_run: Option<ActiveRun>,
    /// Events of the host, for the servers' log messages.
    events: EventReceiver,
    log_notices: ServerLogNotices,
}

/// Parts of a run besides its conversation.
pub struct RunOptions {
    pub control: Option<ControlSocket>,
    pub allowed: Arc<AllowedTools>,
}

struct ActiveRun {
    run: AgentRun,
    show: RunOutput,
}

/// Output format of a run.
enum RunOutput {
    Text(TextWriter),
    Events(EventWriter),
}

/// An event of the driver's loop.
enum DriverEvent {
    Run(Option<RunEvent>),
    Ordered(PendingControlRequest),
    TaskEnded,
    Host(EventDelivery),
}

impl<'a> RunDriver<'a> {
    /// Starts a run with the given message.
    ///
    /// # Errors
    ///
    /// Fails if the run cannot start or the output cannot be written.
    pub fn start(
        managed_host: &'a ManagedHost<'a>,
        mut chat: ChatSession<'a>,
        RunOptions { control, allowed }: RunOptions,
        user_input: Vec<TurnBlock>,
    ) -> Result<Self, Failure> {
        let run = chat.start_run(user_input)?;
        let show = RunOutput::new(managed_host, &chat)?;
        let active_run = Some(ActiveRun { run, show });
        let (events, log_notices) = (managed_host.host.events(), ServerLogNotices::default());
        Ok(Self {
            managed_host,
            chat,
            control,
            allowed,
            local_tasks: LocalTasks::default(),
            active_run,
            events,
            log_notices,
        })
    }

    /// Processes events until the run is over. Dropping the future cancels the run and its pending calls.
    ///
    /// # Errors
    ///
    /// Fails if the run fails or the output cannot be written.
    pub async fn run_to_end(mut self) -> CommandResult {
        loop {
            match self.next().await {
                DriverEvent::Run(Some(RunEvent::Ended(ending))) => return self.finish(&ending).await,
                DriverEvent::Run(Some(event)) => self.on_event(&event)?,
                DriverEvent::Run(None) => return Err(Failure::other("internal error: the run ended without a result")),
                DriverEvent::Ordered(order) => self.on_control_request(order),
                // The task has sent the reply itself.
                DriverEvent::TaskEnded | DriverEvent::Host(EventDelivery::Missed(_)) => {}
                DriverEvent::Host(EventDelivery::Event(timed)) => {
                    self.log_notices.on_event(&timed.event, &self.managed_host.session.console);
                }
            }
        }
    }

    /// Waits for the next event. `live` decides how to handle it.
    async fn next(&mut self) -> DriverEvent {
        tokio::select! {
            biased;
            event = next_run_event(&mut self.active_run) => DriverEvent::Run(event),
            order = next_control_request(&mut self.control) => DriverEvent::Ordered(order),
            () = self.local_tasks.next() => DriverEvent::TaskEnded,
            Some(event) = self.events.next() => DriverEvent::Host(event),
        }
    }

    fn on_event(&mut self, event: &RunEvent) -> Result<(), Failure> {
        self.chat.record_event(event);
        self.active_run.as_mut().map_or(Ok(()), |active_run| active_run.show.event(event))
    }

    async fn finish(&mut self, ending: &RunEnding) -> CommandResult {
        self.print_pending_logs().await;
        self.chat.finish_saving().await;
        // At a terminal the person has answered.
        let refused = if has_terminal() { Vec::new() } else { self.allowed.refused() };
        match self.active_run.take() {
            Some(active_run) => active_run.show.finish(ending, &refused),
            None => command_outcome(ending),
        }
    }

    /// Prints the log messages that have arrived. Events of the run are handled before those of the host.
    async fn print_pending_logs(&mut self) {
        loop {
            tokio::select! {
                biased;
                Some(event) = self.events.next() => {
                    if let EventDelivery::Event(timed) = event {
                        self.log_notices.on_event(&timed.event, &self.managed_host.session.console);
                    }
                }
                () = std::future::ready(()) => return,
            }
        }
    }

    fn on_control_request(&mut self, order: PendingControlRequest) {
        match order.request.clone() {
            ControlRequest::List => order.reply(rows::list_result(self.managed_host)),
            ControlRequest::One(id) => order.reply(rows::get_result(self.managed_host, &id)),
            ControlRequest::Reload => {
                let managed_host = self.managed_host;
                self.local_tasks.push(async move {
                    order.reply(managed_host.reload(ReloadTrigger::Asked).await.map(|reloaded| json!(reloaded)))
                });
            }
            ControlRequest::Cancel => {
                self.active_run.iter_mut().for_each(|active_run| active_run.run.cancel());
                order.succeed(json!({ "cancelled": true }));
            }
        }
    }
}

impl Drop for RunDriver<'_> {
    /// Cancels a run in progress: pending calls are cancelled and the conversation is saved before anything closes.
    fn drop(&mut self) {
        let Some(ActiveRun { run, show }) = self.active_run.take() else { return };
        let mut show = Some(show);
        self.chat.end_on_shutdown(Some(run), move |event| {
            // Ignore output errors: the command is ending.
            let _ = match event {
                RunEvent::Ended(ending) => show.take().map_or(Ok(()), |show| show.finish(ending, &[]).map(|_| ())),
                event => show.as_mut().map_or(Ok(()), |show| show.event(event)),
            };
        });
    }
}

impl RunOutput {
    fn new(managed_host: &ManagedHost<'_>, chat: &ChatSession<'_>) -> Result<Self, Failure> {
        let (console, registry) = (managed_host.session.console.clone(), Arc::clone(managed_host.host.registry()));
        let totals = RunTotals::new(chat);
        Ok(match console.mode.json {
            true => Self::Events(EventWriter::start(console, registry, totals, managed_host)?),
            false => Self::Text(TextWriter::new(console, registry, totals)),
        })
    }

    fn event(&mut self, event: &RunEvent) -> Result<(), Failure> {
        match self {
            Self::Text(text) => text.event(event),
            Self::Events(events) => events.event(event),
        }
    }

    /// Writes the end of the run. `refused` are the tools that needed permission while nobody could be asked.
    fn finish(self, ending: &RunEnding, refused: &[String]) -> CommandResult {
        let failure = ending_failure(ending).map(|failure| with_refused_tools(failure, refused));
        match self {
            Self::Text(text) => text.finish(failure.is_none(), refused)?,
            Self::Events(events) => return events.finish(ending, failure, refused),
        }
        failure.map_or(Ok(CommandEnding::Fine), Err)
    }
}

/// Returns the next event of a run. Never resolves without a run.
async fn next_run_event(active_run: &mut Option<ActiveRun>) -> Option<RunEvent> {
    match active_run {
        Some(active_run) => active_run.run.next_event().await,
        None => std::future::pending().await,
    }
}

async fn next_control_request(control: &mut Option<ControlSocket>) -> PendingControlRequest {
    match control {
        Some(control) => control.next().await,
        None => std::future::pending().await,
    }
}
