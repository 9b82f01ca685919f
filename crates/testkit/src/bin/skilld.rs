//! A stdio server of revision 2026-07-28 that serves skills from a script: `skilld SCRIPT.json`.
//!
//! It does not validate its script, so that tests can serve invalid data. The script has the members `capabilities`,
//! `pages` (lists of entries), `entries` (by URI, for `skills/get`) and `files` (by URI, the contents of
//! `resources/read`). All requests are logged and returned by `skilld/log`.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let path = std::env::args().nth(1).ok_or_else(|| io::Error::other("usage: skilld SCRIPT.json"))?;
    let script: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let mut log = Vec::new();
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else { continue };
        let uri = message["params"]["uri"].as_str().unwrap_or_default();
        if method != "skilld/log" {
            log.push(format!("{method} {uri}").trim_end().to_owned());
        }
        let mut answer = match answer(&script, &log, method, &message["params"]) {
            Some(result) => json!({ "result": result }),
            None => json!({ "error": { "code": -32602, "message": format!("nothing at {uri}") } }),
        };
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = id.clone();
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn answer(script: &Value, log: &[String], method: &str, params: &Value) -> Option<Value> {
    let uri = params["uri"].as_str().unwrap_or_default();
    let mut result = match method {
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": script["capabilities"],
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "skilld", "version": "0" } },
        }),
        "skills/list" => page(script, params)?,
        "skills/get" => json!({ "skill": script["entries"].get(uri)? }),
        "resources/read" => json!({ "contents": script["files"].get(uri)? }),
        "skilld/log" => json!({ "log": log }),
        _ => return None,
    };
    result["resultType"] = json!("complete");
    result["ttlMs"] = json!(0);
    result["cacheScope"] = json!("private");
    Some(result)
}

/// Returns a page; the cursor of a page is its number.
fn page(script: &Value, params: &Value) -> Option<Value> {
    let number: usize = params["cursor"].as_str().unwrap_or("0").parse().ok()?;
    let mut result = json!({ "skills": script["pages"].get(number)? });
    if script["pages"].get(number + 1).is_some() {
        result["nextCursor"] = json!((number + 1).to_string());
    }
    Some(result)
}
