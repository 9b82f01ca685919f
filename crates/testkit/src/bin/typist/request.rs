//! Time from the start of a program to its first request to a model.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;
use wharf_testkit::modeld::{Answer, Modeld, Script};
use wharf_testkit::pty::Terminal;
use wharf_testkit::repl::PROMPT;

use crate::{command, exit_program, milliseconds};

/// The message to the model.
const MESSAGE: &str = "say ahoy";

/// Measures the milliseconds to the first request of `run`, of the REPL or of piped input. Requires that the request
/// offers a tool of the server `good`.
pub fn measure_first_request(surface: &str, program: &str, home: &str) {
    let model = Modeld::start(Script::from_turns([Answer::text("Ahoy.")])).expect("a model API");
    let mut command = command(program, home);
    command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "k-1");
    let begun = Instant::now();
    let end: Box<dyn FnOnce()> = match surface {
        "run" => run_to_end(command.args(["run", MESSAGE]), ""),
        "pipe" => run_to_end(&mut command, &format!("{MESSAGE}\n")),
        "repl" => {
            let mut terminal = Terminal::start(&command);
            terminal.expect(PROMPT);
            terminal.line(MESSAGE);
            Box::new(|| exit_program(terminal))
        }
        _ => panic!("unknown surface {surface}"),
    };
    let request = model.expect_request(1);
    let time = begun.elapsed();
    assert!(request.tool_names().contains(&"mcp__good__echo"), "{:?}", request.tool_names());
    end();
    println!("{}", json!({"request_ms": milliseconds(time)}));
}

/// Starts a command with this input. Returns a function that waits for its end.
fn run_to_end(command: &mut Command, input: &str) -> Box<dyn FnOnce()> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("reads its input");
    Box::new(move || assert!(child.wait().expect("ends").success()))
}
