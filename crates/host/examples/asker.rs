//! Puts every question to whoever sits at the terminal: may this be called, what does the server want to know.

#![expect(clippy::print_stdout, reason = "an example talks")]

use std::io::BufRead as _;
use std::sync::Arc;

use wharf::spec::{ServerName, UntrustedText};
use wharf::tools::{ToolCaller, ToolInvocation};
use wharf::{Ask, Asker, ClosureServer, Host, PermissionAnswer, RawJson, ToolReply};

/// Asks on a thread of its own, since whoever is asked may take a while and a runtime must not wait.
struct Terminal;

impl Asker for Terminal {
    fn ask(&self, ask: Ask) {
        std::thread::spawn(move || match ask {
            Ask::Permission(question, reply) => {
                // Whatever comes from a server or a model is shown escaped, and whole.
                println!("{} wants to call {}", question.caller, question.id);
                println!("  with {}", UntrustedText::new(question.arguments.as_str()));
                println!("  because {}", question.reason);
                if let Some(changed) = &question.changed {
                    println!("  which is not what was approved:\n{changed}");
                }
                println!("o)nce, s)ession, anything else is no:");
                let mut line = String::new();
                let read = std::io::stdin().lock().read_line(&mut line);
                reply.answer(match (read, line.trim()) {
                    (Ok(_), "o") => PermissionAnswer::Once,
                    (Ok(_), "s") => PermissionAnswer::Session,
                    _ => PermissionAnswer::No,
                });
            }
            // A question that is dropped is refused politely.
            other => println!("{} asks for {}, which is refused", other.server(), other.kind()),
        });
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bell = || {
        ClosureServer::new("bell", "1.0")
            .tool("ring", "Rings the bell.", serde_json::json!({}), |_| async { Ok(ToolReply::text("ding")) })
    };
    let host = Host::builder().local(ServerName::new("bell")?, bell).asker(Arc::new(Terminal)).start().await?;
    host.wait_until_settled().await;
    match host
        .registry()
        .call("mcp__bell__ring", ToolInvocation::new(RawJson::empty_object(), ToolCaller::agent()))
        .await
    {
        Ok(outcome) => println!("{}", UntrustedText::new(outcome.text()).multiline()),
        Err(failure) => println!("{failure}"),
    }
    host.close().await;
    Ok(())
}
