//! `wharf demo`: a short tour of the main features on built-in demo servers.
//!
//! Each scene checks its own result, so the tour also tests the installation.

mod demo_servers;
mod failure_scenes;
mod host_scene;
mod interaction_scenes;
mod network;
mod processes;
mod scenes;
mod tour;

use wharf_terminal::failure::{CommandEnding, CommandResult, Failure, FailureKind};
use wharf_terminal::question::has_terminal;
use wharf_terminal::session::{CommandSession, CommonArgs};

use demo_servers::{AnswerSource, DemoServers};
use tour::DemoTour;

/// Take a short tour on built-in demo servers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf demo
  wharf demo --ask
  wharf demo --json | jq '.steps[] | {name, ok}'")]
pub struct DemoArgs {
    /// Answer the server's question yourself at the terminal
    #[arg(long)]
    ask: bool,
    /// Write the steps as one JSON document
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl DemoArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, ..CommonArgs::default() }
    }
}

pub async fn run(args: &DemoArgs, session: &CommandSession) -> CommandResult {
    if args.ask && !has_terminal() {
        return Err(Failure::usage("--ask needs a terminal").with_hint("without --ask, the tour answers automatically"));
    }
    let mut tour = DemoTour::new(session);
    let mut cast = DemoServers::new(session, if args.ask { AnswerSource::Person } else { AnswerSource::Tour })?;
    let connected = tour
        .step("connect", "Three servers at once, each with another protocol revision", scenes::connect(&mut cast))
        .await?;
    if connected {
        run_scenes(&mut tour, &cast).await?;
    }
    let ok = tour.finish()?;
    if ok {
        Ok(CommandEnding::Fine)
    } else if session.console.mode.json {
        Ok(CommandEnding::Reported(FailureKind::Other))
    } else {
        Err(tour_failure())
    }
}

async fn run_scenes(tour: &mut DemoTour<'_>, cast: &DemoServers<'_>) -> Result<(), Failure> {
    tour.step("tools", "Their tools", scenes::tools(cast)).await?;
    tour.step("call", "A call and its result", scenes::call(cast)).await?;
    tour.step("progress", "A slow call reports progress", scenes::progress(cast)).await?;
    tour.step("parallel", "Sixteen calls at once", scenes::parallel(cast)).await?;
    tour.step("network", "The same over HTTP, in each of its forms", network::forms(cast)).await?;
    tour.step("error", "A tool that returns an error", failure_scenes::error(cast)).await?;
    tour.step("cancel", "A call that is cancelled", failure_scenes::cancel(cast)).await?;
    tour.step("question", "A tool that asks for input", interaction_scenes::question(cast)).await?;
    tour.step("watch", "A change notification", interaction_scenes::watch(cast)).await?;
    tour.step("task", "A task that outlives its request", interaction_scenes::task(cast)).await?;
    tour.step("environment", "The environment a server sees", scenes::environment(cast)).await?;
    tour.step("read", "A resource and a prompt", scenes::read(cast)).await?;
    tour.step("crash", "A server that crashes", failure_scenes::crash(cast)).await?;
    tour.step("missing", "A command that does not exist", failure_scenes::missing(cast)).await?;
    tour.step("many", "Many servers as one, under rules", host_scene::servers(cast)).await?;
    tour.step("close", "No processes left behind", failure_scenes::close(cast)).await?;
    Ok(())
}

fn tour_failure() -> Failure {
    Failure::other("some steps failed").with_hint("they are marked ✗ above; please report them")
}
