//! The user's own servers, real ones behind real launchers, used inside a repository: a hostile one runs nothing and is
//! asked for nothing, and in an honest one every server does its work.
//!
//! `cargo xtask test` installs the servers and fills the caches of npx and uvx; a missing one is a failure.

mod hostile;
mod servers;
mod site;

use site::Site;

/// The commands that are run for each server, by the arguments that follow `wharf`.
const COMMANDS: [&str; 4] = ["tools SERVER", "test SERVER", "why SERVER", "call SERVER.TOOL ARGUMENTS"];

/// B1: nothing of the repository runs, and nothing that it names is dialled, by 40 commands on ten servers.
#[test]
fn hostile_repository_runs_nothing_in_user_servers() {
    let site = Site::new();
    let trap = hostile::lay(&site);
    site.configure(&servers::all(&site));
    let mut ran = 0;
    for server in servers::NAMES {
        for command in COMMANDS {
            let command = site.run(&servers::spelled(command, server, &site));
            ran += 1;
            trap.assert_untouched(&format!("{command:?}"));
        }
    }
    assert_eq!(ran, 40);
}

/// The same servers in a project that means well: those that need its directory are approved once, and all work.
#[test]
fn ten_servers_work_in_an_honest_project() {
    let site = Site::new();
    site.make_repository();
    site.configure(&servers::all(&site));
    for server in servers::NAMES {
        let call = servers::spelled("call SERVER.TOOL ARGUMENTS", server, &site);
        let mut called = site.run(&call);
        if servers::needs_project(server) {
            assert_eq!(called.code, Some(5), "{server}: {called:?}");
            site.approve(server);
            called = site.run(&call);
        }
        let expected = servers::answer(server, &site);
        assert!(called.code == Some(0) && called.stdout.contains(&expected), "{server}: {expected}: {called:?}");
    }
    assert!(servers::NAMES.iter().filter(|server| servers::needs_project(server)).count() == 2);
}
