//! `wharf reload`: has a running `wharf` look at the configuration again.

use serde_json::{Value, json};
use wharf_spec::Untrusted;

use crate::control::Remote;
use crate::failure::{Ending, Failure, Outcome};
use crate::session::{Common, Session};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A running wharf follows its files by itself; this has it look now. It is found by the working directory and --config.

Examples:
  wharf reload
  wharf reload --json")]
pub struct Args {
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl Args {
    pub fn common(&self) -> Common {
        Common { json: self.json, ..Common::default() }
    }
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    let mut remote = Remote::required(session).await?;
    let changes = remote.call("mcp.reload", json!({})).await?;
    if args.json {
        let [added, removed, changed, problems] = ["added", "removed", "changed", "problems"].map(|key| &changes[key]);
        let document = json!({ "schema": 1, "process": remote.pid, "added": added, "removed": removed,
            "changed": changed, "problems": problems });
        session.console.document(&document)?;
    } else {
        show(session, &changes)?;
    }
    Ok(Ending::Fine)
}

fn show(session: &Session, changes: &Value) -> Result<(), Failure> {
    for problem in texts(&changes["problems"]) {
        session.console.warn(problem);
    }
    let lists = ["added", "removed", "changed"].map(|word| (word, texts(&changes[word])));
    let some = lists.iter().filter(|(_, names)| !names.is_empty());
    let words: Vec<String> = some.map(|(word, names)| format!("{word} {}", names.join(", "))).collect();
    let words = if words.is_empty() { "no server is affected".to_owned() } else { words.join("; ") };
    session.console.print(format_args!("{words}\n"))
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(|text| Untrusted::new(text).to_string()).collect()
}
