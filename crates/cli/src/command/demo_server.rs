//! `wharf demo-server`.

use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

use crate::demo_server::{Options, serve_stdio};
use crate::failure::Kind;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools --stdio \"wharf demo-server\"
  wharf tools --stdio \"wharf demo-server --revision 2024-11-05\"
  wharf call slow seconds=3 --stdio \"wharf demo-server\"
  wharf subscribe --stdio \"wharf demo-server --tide 1000\"")]
pub struct Args {
    /// Serve on standard input and output; there is no other way yet
    #[arg(long)]
    stdio: bool,
    /// The only revision to speak, such as 2025-06-18; without it, whichever the client asks for
    #[arg(long, value_name = "REV")]
    revision: Option<String>,
    /// The name it introduces itself with
    #[arg(long, default_value = "wharf-demo")]
    name: String,
    /// How many tool calls to take before the next one makes it crash
    #[arg(long, value_name = "COUNT")]
    crash_after: Option<u32>,
    /// Change the tide, and whether there is a crane, every so many milliseconds: something to watch
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..))]
    tide: Option<u32>,
}

pub fn run(args: Args) -> ExitCode {
    let Args { stdio: _, revision, name, crash_after, tide } = args;
    let tide = tide.map(|millis| Duration::from_millis(millis.into()));
    match serve_stdio(Options { revision, name, crash_after, tide }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}.");
            let kind = if error.kind() == ErrorKind::InvalidInput { Kind::Usage } else { Kind::Other };
            kind.code().into()
        }
    }
}
