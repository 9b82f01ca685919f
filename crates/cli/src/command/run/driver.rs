//! Drives one run to its end: prints its events and answers control requests.

use std::sync::Arc;

use serde_json::json;
use wharf_agent::{AgentRun, RunEnding, RunEvent, TurnBlock};

use super::events::EventWriter;
use super::run_totals::RunTotals;
use super::text::TextWriter;
use wharf_terminal::chat::ChatSession;
use wharf_terminal::chat::ending::command_outcome;
use wharf_terminal::control::{ControlRequest, ControlSocket, PendingControlRequest, rows};
use wharf_terminal::failure::{CommandResult, Failure};
use wharf_terminal::local_tasks::LocalTasks;
use wharf_terminal::managed_host::{ManagedHost, ReloadTrigger};

/// A run with its output and control socket.
pub struct RunDriver<'a> {
    fleet: &'a ManagedHost<'a>,
    chat: ChatSession<'a>,
    control: Option<ControlSocket>,
    /// Control requests in progress.
    errands: LocalTasks<'a, ()>,
    /// `None` once the run is over.
    under_way: Option<ActiveRun>,
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
    Errand,
}

impl<'a> RunDriver<'a> {
    /// Starts a run with the given message.
    ///
    /// # Errors
    ///
    /// Fails if the run cannot start or the output cannot be written.
    pub fn start(
        fleet: &'a ManagedHost<'a>,
        mut chat: ChatSession<'a>,
        control: Option<ControlSocket>,
        said: Vec<TurnBlock>,
    ) -> Result<Self, Failure> {
        let run = chat.start_run(said)?;
        let show = RunOutput::new(fleet, &chat)?;
        Ok(Self { fleet, chat, control, errands: LocalTasks::default(), under_way: Some(ActiveRun { run, show }) })
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
                DriverEvent::Errand => {}
            }
        }
    }

    /// Waits for the next event. `live` decides how to handle it.
    async fn next(&mut self) -> DriverEvent {
        tokio::select! {
            biased;
            event = next_run_event(&mut self.under_way) => DriverEvent::Run(event),
            order = next_control_request(&mut self.control) => DriverEvent::Ordered(order),
            () = self.errands.next() => DriverEvent::Errand,
        }
    }

    fn on_event(&mut self, event: &RunEvent) -> Result<(), Failure> {
        self.chat.record_event(event);
        self.under_way.as_mut().map_or(Ok(()), |under_way| under_way.show.event(event))
    }

    async fn finish(&mut self, ending: &RunEnding) -> CommandResult {
        self.chat.finish_saving().await;
        match self.under_way.take() {
            Some(under_way) => under_way.show.finish(ending),
            None => command_outcome(ending),
        }
    }

    fn on_control_request(&mut self, order: PendingControlRequest) {
        match order.request.clone() {
            ControlRequest::List => order.reply(rows::list_result(self.fleet)),
            ControlRequest::One(id) => order.reply(rows::get_result(self.fleet, &id)),
            ControlRequest::Reload => {
                let fleet = self.fleet;
                self.errands.push(async move {
                    order.reply(fleet.reload(ReloadTrigger::Asked).await.map(|reloaded| json!(reloaded)))
                });
            }
            ControlRequest::Cancel => {
                self.under_way.iter_mut().for_each(|under_way| under_way.run.cancel());
                order.succeed(json!({ "cancelled": true }));
            }
        }
    }
}

impl Drop for RunDriver<'_> {
    /// Cancels a run in progress: pending calls are cancelled and the conversation is saved before anything closes.
    fn drop(&mut self) {
        let Some(ActiveRun { run, show }) = self.under_way.take() else { return };
        let mut show = Some(show);
        self.chat.end_on_shutdown(Some(run), move |event| {
            // Ignore output errors: the command is ending.
            let _ = match event {
                RunEvent::Ended(ending) => show.take().map_or(Ok(()), |show| show.finish(ending).map(|_| ())),
                event => show.as_mut().map_or(Ok(()), |show| show.event(event)),
            };
        });
    }
}

impl RunOutput {
    fn new(fleet: &ManagedHost<'_>, chat: &ChatSession<'_>) -> Result<Self, Failure> {
        let (console, registry) = (fleet.session.console.clone(), Arc::clone(fleet.host.registry()));
        let spent = RunTotals::new(chat);
        Ok(match console.manner.json {
            true => Self::Events(EventWriter::start(console, registry, spent, fleet)?),
            false => Self::Text(TextWriter::new(console, registry, spent)),
        })
    }

    fn event(&mut self, event: &RunEvent) -> Result<(), Failure> {
        match self {
            Self::Text(text) => text.event(event),
            Self::Events(events) => events.event(event),
        }
    }

    fn finish(self, ending: &RunEnding) -> CommandResult {
        match self {
            Self::Text(text) => text.finish()?,
            Self::Events(events) => return events.finish(ending),
        }
        command_outcome(ending)
    }
}

/// Returns the next event of a run. Never resolves without a run.
async fn next_run_event(under_way: &mut Option<ActiveRun>) -> Option<RunEvent> {
    match under_way {
        Some(under_way) => under_way.run.next_event().await,
        None => std::future::pending().await,
    }
}

async fn next_control_request(control: &mut Option<ControlSocket>) -> PendingControlRequest {
    match control {
        Some(control) => control.next().await,
        None => std::future::pending().await,
    }
}
