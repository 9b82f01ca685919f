//! `wharf stats`: what the audit log tells of calls.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use wharf_testkit::test_home::TestHome;

#[test]
fn calls_are_counted_and_torn_lines_skipped() {
    let home = TestHome::with_servers(&json!({}));
    let ran = home.run(["stats"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", "no calls recorded\n"));
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let line = |ago: u64, server: &str, success: bool| {
        let entry = json!({"schema": 1, "at_ms": now - ago * 1000, "event": "call", "success": success, "duration_ms": 7,
            "error": null, "caller": "x", "server": server, "tool": "read\u{1b}[2J", "arguments": {}});
        format!("{}\n", json!({"seq": 0, "prev": null, "entry": entry}))
    };
    let state = "home/.local/state/wharf/audit.jsonl";
    home.write(format!("{state}.000001"), &(line(10_000, "git", true) + &line(9_000, "git", false)));
    home.write(state, &(line(5, "git", true) + &line(3, "files", true) + "{\"seq\": 7, \"ent"));
    let ran = home.run(["stats"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("1 lines of the audit log could not be read"), "{ran:?}");
    let lines: Vec<String> =
        ran.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[0], "SERVER TOOL CALLS ERRORS P50 P90 P99 LAST USED");
    assert!(lines[1].starts_with(r"files read\u{1b}[2J 1 0 7 ms") && lines[2].contains(" 3 1 7 ms"), "{lines:?}");
    let ran = home.run(["stats", "git", "--since", "1h", "--json"]);
    let items = &ran.json()["items"];
    assert_eq!(items.as_array().unwrap().len(), 1, "{items}");
    assert_eq!((&items[0]["server"], &items[0]["calls"], &items[0]["errors"]), (&json!("git"), &json!(1), &json!(0)));
    assert_eq!(home.run(["stats", "--since", "soon"]).code, Some(2));
}
