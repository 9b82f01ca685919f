//! `wharf demo-server`.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use wharf_demo::{DemoServerOptions, HttpForm, ListenOptions, parse_address, serve_http, serve_stdio};

use wharf_terminal::failure::FailureKind;
use wharf_terminal::session::CliContext;
use wharf_terminal::signals::FirstSignal;
use wharf_terminal::stdin;

/// Run a harmless server for trying things out
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools --stdio \"wharf demo-server\"
  wharf tools \\
      --stdio \"wharf demo-server --revision 2024-11-05\"
  wharf call slow seconds=3 --stdio \"wharf demo-server\"
  wharf subscribe --stdio \"wharf demo-server --tide 1000\"
  wharf demo-server --http 127.0.0.1:8080
  wharf demo-server --sse :0 --revision 2024-11-05")]
pub struct DemoServerArgs {
    /// Serve on stdin and stdout (the default)
    #[arg(long, group = "transport")]
    stdio: bool,
    /// Serve Streamable HTTP on a loopback address such as 127.0.0.1:8080; port 0 picks a free port
    #[arg(long, value_name = "ADDR", group = "transport", value_parser = parse_address)]
    http: Option<SocketAddr>,
    /// Serve the older HTTP+SSE on a loopback address
    #[arg(long, value_name = "ADDR", group = "transport", value_parser = parse_address)]
    sse: Option<SocketAddr>,
    /// Exit when stdin closes, also over HTTP; for background use
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
    /// Speak only this revision, such as 2025-06-18; default: the one the client asks for
    #[arg(long, value_name = "REV")]
    revision: Option<String>,
    /// Server name to report
    #[arg(long, default_value = "wharf-demo")]
    name: String,
    /// Crash on the tool call after the first N
    #[arg(long, value_name = "COUNT")]
    crash_after: Option<u32>,
    /// Change the tide and the crane every N milliseconds, to demonstrate subscriptions
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..))]
    tide: Option<u32>,
}

pub fn run(args: DemoServerArgs, _: CliContext) -> ExitCode {
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}.");
            let kind = if error.kind() == ErrorKind::InvalidInput { FailureKind::Usage } else { FailureKind::Other };
            kind.code().into()
        }
    }
}

fn serve(args: DemoServerArgs) -> io::Result<()> {
    let DemoServerArgs { stdio: _, http, sse, until_stdin_closes, revision, name, crash_after, tide } = args;
    let tide = tide.map(|millis| Duration::from_millis(millis.into()));
    let options = DemoServerOptions { revision, name, crash_after, tide };
    let (address, form) = match (http, sse) {
        (Some(address), _) => (address, HttpForm::Streamable),
        (None, Some(address)) => (address, HttpForm::Sse),
        (None, None) => return serve_stdio(options),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signal = FirstSignal::listen(|| ())?;
        let ended = async {
            tokio::select! {
                () = signal.wait() => {}
                () = stdin_closes(), if until_stdin_closes => {}
            }
        };
        serve_http(options, ListenOptions { address, form }, ended, |url| eprintln!("listening on {url}")).await
    })
}

async fn stdin_closes() {
    // Without a thread, stdin is treated as closed.
    let Ok(mut lines) = stdin::lines() else { return };
    while lines.recv().await.is_some() {}
}
