//! Starts of servers under guards, from a test harness.

use std::time::Duration;

use wharf_guard::{Containment, GuardProgram, LaunchError, ProcessExit, StartRequest, launch};

fn request(program: &str, argument: &str) -> StartRequest {
    StartRequest {
        program: program.into(),
        args: vec![argument.into()],
        env: Vec::new(),
        cwd: "/".into(),
        grace: Duration::from_secs(1),
        mark: format!("launch-test-{}-{argument}", std::process::id()),
    }
}

#[tokio::test]
async fn test_harness_guards_its_server() {
    let (server, _streams) = launch(request("/bin/sleep", "1000"), GuardProgram::ThisProgram).await.unwrap();
    assert_eq!(server.containment, Containment::Guard);
    let mut exit = server.exit();
    server.terminate();
    let ended = *exit.wait_for(Option::is_some).await.unwrap();
    assert_eq!(ended, Some(ProcessExit::Signal(15)));
    server.wait_until_gone().await;
}

#[tokio::test]
async fn program_without_a_guard_is_named_in_the_error() {
    let launched = launch(request("/bin/sleep", "1001"), GuardProgram::At("/bin/true".into())).await;
    let Err(LaunchError::Around(error)) = launched else { panic!("not an error of the guard") };
    let text = error.to_string();
    assert!(text.starts_with("the guard `/bin/true` ended before it started the server"), "{text}");
}
