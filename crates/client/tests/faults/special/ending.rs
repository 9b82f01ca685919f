//! Every way a server can come to its end, and what is left of it.

use super::*;

pub async fn full_graces(cell: &Cell) -> Problems {
    let mut cell = with_fault(cell, "S38");
    cell.phase = wharf_testkit::cases::FaultPhase::Before;
    cell.limits = wharf_client::Limits::default();
    let max_wait = cell.limits.stop_grace + cell.limits.term_grace;
    let connection = opened!(&cell);
    let began = Instant::now();
    connection.close().await;
    let took = began.elapsed();
    println!("measured: stopping a server that ignores SIGTERM and the end of its input: {} ms", took.as_millis());
    if took >= max_wait { Vec::new() } else { vec![format!("it ended by itself, after {took:?}")] }
}

pub async fn many_crashes(cell: &Cell) -> Problems {
    let cell = with_fault(cell, "S04");
    let mut problems = Vec::new();
    for _ in 0..100 {
        let connection = opened!(&cell);
        let outcome = connection.call_tool("echo", &json(r#"{"text":"x"}"#), RequestOptions::default()).await;
        demand(&mut problems, call_word(&outcome) == "unknown", || call_word(&outcome).to_owned());
        connection.close().await;
        let zombies = oracle::zombies_of(std::process::id().cast_signed());
        demand(&mut problems, zombies.is_empty(), || format!("zombies: {zombies:?}"));
    }
    problems
}

pub async fn guard_killed(cell: &Cell) -> Problems {
    let mut cell = with_fault(cell, "S41");
    cell.phase = wharf_testkit::cases::FaultPhase::Before;
    let connection = opened!(&cell);
    let mut problems = Vec::new();
    let before = oracle::marked_processes(&cell.marker).len();
    demand(&mut problems, before >= 3, || format!("only {before} processes to begin with"));
    for guard in oracle::children_of(std::process::id().cast_signed()) {
        let guard = rustix::process::Pid::from_raw(guard).unwrap();
        rustix::process::kill_process(guard, rustix::process::Signal::KILL).unwrap();
    }
    // The server dies with its guard, and what it had started is found by its mark.
    let swept = oracle::poll_until(Duration::from_secs(3), || oracle::marked_processes(&cell.marker).is_empty());
    demand(&mut problems, swept, || "I3: processes outlived their guard".to_owned());
    let outcome = call_tool(&connection, "echo").await;
    demand(&mut problems, matches!(call_word(&outcome), "unknown" | "gone"), || call_word(&outcome).to_owned());
    connection.close().await;
    problems
}

pub async fn group(cell: &Cell) -> Problems {
    let cell = with_fault(cell, "ok");
    let mut options = cell.options();
    options.guard = GuardProgram::None;
    let connection = match connect(&cell.spec(), options).await {
        Ok(connection) => connection,
        Err(error) => return vec![explain(&error)],
    };
    let mut problems = Vec::new();
    demand(
        &mut problems,
        connection.facts().process.map(|process| process.containment) == Some(Containment::Group),
        || "not in a group".to_owned(),
    );
    let outcome = call_tool(&connection, "echo").await;
    demand(&mut problems, outcome.is_ok(), || call_word(&outcome).to_owned());
    connection.close().await;
    problems
}

pub async fn dropped(cell: &Cell) -> Problems {
    let mut cell = with_fault(cell, "S38");
    cell.phase = wharf_testkit::cases::FaultPhase::Before;
    let connection = opened!(&cell);
    let other = connection.clone();
    drop(connection);
    let outcome = call_tool(&other, "echo").await;
    drop(other);
    if outcome.is_ok() { Vec::new() } else { vec![format!("a clone of a dropped handle: {}", call_word(&outcome))] }
}

pub async fn runtime_dropped(cell: &Cell) -> Problems {
    let mut inner = with_fault(cell, "S41");
    inner.phase = wharf_testkit::cases::FaultPhase::Before;
    let problems = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        match runtime.block_on(open(&inner)) {
            Ok(connection) => {
                drop(runtime);
                drop(connection);
                Vec::new()
            }
            Err(problems) => problems,
        }
    });
    let mut problems = problems.join().unwrap();
    let ended = oracle::poll_until(Duration::from_secs(3), || oracle::marked_processes(&cell.marker).is_empty());
    demand(&mut problems, ended, || "I3: processes outlived their runtime".to_owned());
    let connection = opened!(&with_fault(cell, "ok"));
    connection.close().await;
    problems
}
