//! The servers in a separate process: prints the addresses as one line of JSON, then reads one command per line.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use super::{AuthSwitches, Authd};

/// Runs until standard input ends. Each command is answered with one line of JSON: `counts`, `seen`, `secrets`,
/// `expire`, `revoke`, `move-issuer`, `delete-client`, `close-gate`, `open-gate`, `require-scope SCOPE`.
pub fn run(words: impl Iterator<Item = String>) -> io::Result<()> {
    let switches = AuthSwitches::parse(words).map_err(io::Error::other)?;
    let authd = Authd::start(switches)?;
    let (client_id, client_secret) = authd.registered_client();
    print_line(&json!({
        "server": authd.server_url(),
        "issuer": authd.issuer(),
        "client_id": client_id,
        "client_secret": client_secret,
        "client_key": authd.client_key().pem(),
        "identity_provider": authd.identity_provider_url(),
        "id_token": authd.id_token(),
        "workload_assertion": authd.workload_assertion(),
    }))?;
    for line in io::stdin().lock().lines() {
        print_line(&run_command(&authd, &line?))?;
    }
    Ok(())
}

fn run_command(authd: &Authd, line: &str) -> Value {
    let (command, argument) = line.split_once(' ').unwrap_or((line, ""));
    match command {
        "counts" => return json!(authd.counts()),
        "seen" => return json!(authd.requests()),
        "secrets" => return json!(authd.secrets()),
        "expire" => authd.expire_access_tokens(),
        "revoke" => authd.revoke_all(),
        "move-issuer" => authd.move_issuer(),
        "delete-client" => authd.delete_client(),
        "close-gate" => authd.close_gate(),
        "open-gate" => authd.open_gate(),
        "require-scope" => authd.require_scope(argument),
        _ => return json!({ "error": format!("no such command: {command}") }),
    }
    json!({})
}

fn print_line(document: &Value) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{document}")?;
    output.flush()
}
