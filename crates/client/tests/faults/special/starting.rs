//! What keeps a server from starting, and what crosses to one that does.

use wharf_testkit::cases::FaultPhase;

use super::*;

pub async fn cannot_start() -> Problems {
    let mut problems = Vec::new();
    let plain = Cell { case: "ok".to_owned(), ..blank() };
    let mut missing = plain.spec();
    missing.program = "no-such-program-anywhere".into();
    let mut directory = plain.spec();
    directory.program = "/".into();
    let mut data = plain.spec();
    let file = plain.folder.join("data");
    std::fs::write(&file, "no program\n").unwrap();
    data.program = file.into();
    let mut nowhere = plain.spec();
    nowhere.cwd = Some("/no/such/directory".into());
    let mut heavy = plain.spec();
    heavy.args = vec!["x".repeat(100 << 10).into(); 60];
    let mut script = plain.spec();
    let file = plain.folder.join("no-interpreter");
    std::fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    script.program = file.into();
    for (spec, word) in [
        (missing, "not-found"),
        (directory, "not-executable"),
        (data, "not-executable"),
        (nowhere, "no-directory"),
        (heavy, "spawn"),
        (script, "not-executable"),
    ] {
        match connect(&spec, plain.options()).await {
            Ok(_) => problems.push(format!("{word}: connected")),
            Err(error) => {
                demand(&mut problems, connect_word(&error) == word && !error.cause.is_retryable(), || explain(&error));
                demand(&mut problems, error.trace.failed_step().is_some(), || "no failed step in the trace".to_owned());
            }
        }
    }
    let _ = std::fs::remove_dir_all(&plain.folder);
    problems
}

fn blank() -> Cell {
    let folder = std::env::temp_dir().join(format!("wharf-fault-blank-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let limits = wharf_client::Limits::default().with_delays_divided(crate::cell::SCALE);
    Cell {
        case: String::new(),
        form: Form::Stdio,
        phase: FaultPhase::During,
        era: "modern".to_owned(),
        marker: "blank".to_owned(),
        folder,
        limits,
        extra: Vec::new(),
    }
}

pub async fn out_of_descriptors(cell: &Cell) -> Problems {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let cell = with_fault(cell, "ok");
    let mut problems = Vec::new();
    let limit = getrlimit(Resource::Nofile);
    for spare in 0..12 {
        let mut tight = limit;
        tight.current = Some((oracle::open_fds() + spare) as u64);
        setrlimit(Resource::Nofile, tight).unwrap();
        let outcome = connect(&cell.spec(), cell.options()).await;
        setrlimit(Resource::Nofile, limit).unwrap();
        match outcome {
            Ok(connection) => connection.close().await,
            Err(error) => demand(&mut problems, connect_word(&error) == "spawn" && error.cause.is_retryable(), || {
                format!("{spare} spare: {}", explain(&error))
            }),
        }
    }
    let connection = opened!(&cell);
    let after = call_tool(&connection, "echo").await;
    demand(&mut problems, after.is_ok(), || format!("once there are descriptors again: {}", call_word(&after)));
    connection.close().await;
    problems
}

pub async fn no_server(cell: &Cell) -> Problems {
    let mut problems = Vec::new();
    for (program, argument, evidence) in [("cat", "-", "echoed the request back"), ("ls", "/", "not a message")] {
        let mut spec = cell.spec();
        spec.program = program.into();
        spec.args = vec![argument.into()];
        match connect(&spec, cell.options()).await {
            Ok(_) => problems.push(format!("connected to {program}")),
            Err(error) => {
                demand(&mut problems, connect_word(&error) == "gone" && error.to_string().contains(evidence), || {
                    explain(&error)
                })
            }
        }
    }
    problems
}

pub async fn environment(cell: &Cell) -> Problems {
    let mut options = cell.options();
    let canaries =
        ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY", "SSH_AUTH_SOCK", "LD_PRELOAD", "NODE_OPTIONS"];
    options.surroundings.env.extend(canaries.map(|name| (name.into(), "canary".into())));
    let connection = match connect(&cell.spec(), options).await {
        Ok(connection) => connection,
        Err(error) => return vec![explain(&error)],
    };
    // A second server, so that there are descriptors which could leak into the first.
    let neighbour = opened!(&with_fault(cell, "ok"));
    let third = opened!(cell);
    let environ = third.call_tool("environ", &RawJson::empty_object(), RequestOptions::default()).await;
    let canaried = connection.call_tool("environ", &RawJson::empty_object(), RequestOptions::default()).await;
    let fds = third.call_tool("fds", &RawJson::empty_object(), RequestOptions::default()).await;
    for connection in [connection, neighbour, third] {
        connection.close().await;
    }
    let mut problems = Vec::new();
    for outcome in [&environ, &canaried] {
        let text = outcome.as_ref().map(|result| result.raw.as_str().to_owned()).unwrap_or_default();
        demand(&mut problems, text.contains("MCPH_CASE") && text.contains("PATH"), || {
            format!("what it should have is missing: {text}")
        });
        demand(&mut problems, !text.contains("canary"), || format!("a secret of the host crossed: {text}"));
    }
    let told = fds.ok().and_then(|result| result.structured).map(|data| data.as_str().to_owned()).unwrap_or_default();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap_or_default();
    let listed: Vec<&str> =
        told["fds"].as_object().map(|fds| fds.keys().map(String::as_str).collect()).unwrap_or_default();
    demand(&mut problems, listed == ["0", "1", "2"], || format!("descriptors: {told}"));
    problems
}

pub async fn ignored_probe(cell: &Cell) -> Problems {
    let mut cell = Cell { era: "legacy".to_owned(), phase: FaultPhase::Before, ..with_fault(cell, "S10") };
    // As long as the startup: a client that waits for this is too late.
    cell.limits.probe = Duration::from_secs(20);
    cell.limits.startup = cell.limits.probe;
    cell.limits.probe_response = Duration::from_millis(100);
    opened!(&cell).close().await;
    Vec::new()
}

pub async fn unread_probe(cell: &Cell) -> Problems {
    // Begins to read after two seconds, and responds at once then.
    let mut cell = Cell { phase: FaultPhase::Before, ..with_fault(cell, "S11-slow") };
    cell.limits.probe = Duration::from_secs(20);
    cell.limits.startup = cell.limits.probe;
    cell.limits.probe_response = Duration::from_secs(1);
    opened!(&cell).close().await;
    let opened: Vec<_> = cell.ledger().lines.into_iter().filter(|line| line.contains("opened")).collect();
    if opened.iter().any(|line| line.contains("initialize")) {
        vec![format!("initialize was sent: {opened:?}")]
    } else {
        Vec::new()
    }
}
