//! `wharf status --watch`: redraws the table on every change and follows the configuration files.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use tokio::sync::mpsc;
use wharf::{Event, EventDelivery, EventReceiver};
use wharf_config::ConfigWatcher;
use wharf_spec::UntrustedText;

use wharf_terminal::clock::time_of_day;
use wharf_terminal::failure::{CommandResult, Failure};
use wharf_terminal::managed_host::{LoadedConfig, ManagedHost, ReloadReport, ReloadTrigger, watch_config_files};
use wharf_terminal::one_shot_host::{ManagedHostOptions, start_managed};
use wharf_terminal::session::CommandSession;
use wharf_terminal::status::show::{StatusItem, document, item, status_line, status_table};
use wharf_terminal::status::status_rows::StatusRow;
use wharf_terminal::style::{QUIET, paint};

/// Redraw interval, so that ages stay current.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

/// State of the watch.
struct StatusWatch<'a> {
    session: &'a CommandSession,
    managed_host: ManagedHost<'a>,
    /// Number of table lines on the screen.
    drawn: usize,
}

/// An event of the watch loop.
enum WatchEvent {
    HostEvent(Option<EventDelivery>),
    Configured,
    Time,
}

/// Runs until interrupted.
///
/// # Errors
///
/// Fails if the host cannot start, or when the watch ends.
pub async fn watch(session: &CommandSession, ids: &[String]) -> CommandResult {
    let reader = session.configuration.reader.clone();
    let read = wharf_threads::run_blocking(|| ConfigWatcher::new(reader)).await;
    let watch = read.map_err(Failure::other)?;
    let known = LoadedConfig::resolve(session, watch.config().clone(), ids).await;
    let host = start_managed(session, &known.entries, ManagedHostOptions::default()).await?;
    let mut events = host.events();
    let mut watching = StatusWatch { session, managed_host: ManagedHost::new(session, host, known, ids), drawn: 0 };
    watching.print_initial()?;
    let mut configs = watch_config_files(watch);
    loop {
        match next(session, &mut events, &mut configs).await {
            // The host was closed.
            WatchEvent::HostEvent(None) => return Err(Failure::interrupted()),
            WatchEvent::HostEvent(Some(delivery)) => watching.on_host_event(&delivery)?,
            WatchEvent::Configured => watching.reload().await?,
            WatchEvent::Time => watching.draw()?,
        }
    }
}

async fn next(session: &CommandSession, events: &mut EventReceiver, configs: &mut mpsc::Receiver<()>) -> WatchEvent {
    let redraws = session.console.stdout_width().is_some() && !session.console.mode.json;
    tokio::select! {
        delivery = events.next() => WatchEvent::HostEvent(delivery),
        Some(()) = configs.recv() => WatchEvent::Configured,
        () = tokio::time::sleep(REDRAW_INTERVAL), if redraws => WatchEvent::Time,
    }
}

/// JSON document of a change.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum ChangeDocument<'a> {
    State {
        schema: u32,
        item: Box<StatusItem<'a>>,
    },
    Config {
        schema: u32,
        #[serde(flatten)]
        reloaded: &'a ReloadReport,
    },
}

impl StatusWatch<'_> {
    fn rows(&self) -> Vec<StatusRow> {
        self.managed_host.rows()
    }

    /// Prints the initial state.
    fn print_initial(&mut self) -> Result<(), Failure> {
        let (console, rows) = (&self.session.console, self.rows());
        match (console.mode.json, console.stdout_width()) {
            (true, _) => console.print_json(&document(&rows, &[])),
            (false, Some(_)) => self.draw(),
            (false, None) => rows.iter().try_for_each(|row| self.say(status_line(row))),
        }
    }

    /// Redraws the table in place.
    fn draw(&mut self) -> Result<(), Failure> {
        let width = self.session.console.stdout_width();
        let text = status_table(&self.rows(), width);
        self.session.console.redraw(self.drawn, &text)?;
        self.drawn = text.lines().count();
        Ok(())
    }

    fn say(&self, text: String) -> Result<(), Failure> {
        let time = paint(QUIET, time_of_day(SystemTime::now()));
        self.session.console.print(format_args!("{time} {text}\n"))
    }

    fn on_host_event(&mut self, delivery: &EventDelivery) -> Result<(), Failure> {
        let server = match delivery {
            EventDelivery::Event(timed) => match &timed.event {
                Event::State { server, .. } | Event::Catalog { server, .. } => Some(server.clone()),
                _ => return Ok(()),
            },
            EventDelivery::Missed(_) => None,
        };
        self.show(|row| server.as_ref().is_none_or(|server| server.as_str() == row.id))
    }

    /// Prints the rows that changed; on a terminal, redraws the table.
    fn show(&mut self, has_changed: impl Fn(&StatusRow) -> bool) -> Result<(), Failure> {
        let console = &self.session.console;
        if !console.mode.json && console.stdout_width().is_some() {
            return self.draw();
        }
        for row in self.rows().iter().filter(|row| has_changed(row)) {
            match console.mode.json {
                true => console.print_json(&ChangeDocument::State { schema: 1, item: Box::new(item(row)) })?,
                false => self.say(status_line(row))?,
            }
        }
        Ok(())
    }

    /// Applies the changed configuration to the host.
    async fn reload(&mut self) -> Result<(), Failure> {
        let reloaded = self.managed_host.reload(ReloadTrigger::Noticed).await?;
        self.report_reload(&reloaded)
    }

    fn report_reload(&mut self, reloaded: &ReloadReport) -> Result<(), Failure> {
        let console = &self.session.console;
        if console.mode.json {
            return console.print_json(&ChangeDocument::Config { schema: 1, reloaded });
        }
        for problem in &reloaded.new_problems {
            console.warn(UntrustedText::new(problem.as_str()));
            // The table is no longer the last output on the screen.
            self.drawn = 0;
        }
        if console.stdout_width().is_some() {
            return self.draw();
        }
        self.say(format!("configuration changed: {}", reloaded.describe()))
    }
}
