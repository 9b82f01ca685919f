//! The faulty server over HTTP, as a process of its own that a cell starts and ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use url::Url;
use wharf_spec::{HttpSpec, HttpTransport};
use wharf_testkit::http_cases::{CASES, Form};
use wharf_testkit::oracle;

use crate::cell::Cell;

/// How long the server gets to leave before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server that listens. Dropping it ends and reaps it.
pub struct Fixture {
    child: Child,
    /// Open as long as the server is to serve.
    input: Option<ChildStdin>,
    url: Url,
    form: Form,
}

impl Fixture {
    /// Starts what the cell is about, and waits until it listens.
    pub fn start(cell: &Cell) -> Self {
        let row = CASES.iter().find(|case| case.name == cell.case && case.forms.contains(&cell.form));
        let (fault, more) = row.map_or((cell.case.as_str(), &[][..]), |row| (row.fault, row.args));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(cell.arguments(fault))
            .args(more)
            .env(oracle::MARKER, &cell.marker)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening ").unwrap().trim_end();
        let path = if cell.form == Form::Sse { "sse" } else { "mcp" };
        let url = Url::parse(&format!("http://{address}/{path}")).unwrap();
        Self { input: child.stdin.take(), child, url, form: cell.form }
    }

    /// Where it is, in the form in which it is known: the newer ones are found out, the old one is told.
    pub fn spec(&self) -> HttpSpec {
        let mut spec = HttpSpec::new(self.url.clone());
        spec.form = if self.form == Form::Sse { HttpTransport::Sse } else { HttpTransport::Automatic };
        spec
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        drop(self.input.take());
        if !oracle::poll_until(PATIENCE, || !matches!(self.child.try_wait(), Ok(None))) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
