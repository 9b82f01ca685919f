//! Where servers start and what their paths are relative to, by the file they stand in; and starts held to approvals.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wharf_config::{ApprovalKey, ApprovalStore, ApprovalSubject, ServerApproval};
use wharf_spec::{LaunchRefusal, ServerSpec, StdioSpec};

use crate::support::{World, told};

/// An entry with every path that can be relative.
const RELATIVE: &str = r#"{"mcpServers": {"x": {"command": "./run", "args": ["./data", "."], "envFile": "vars"}}}"#;

fn stdio(world: &World, name: &str) -> StdioSpec {
    match world.resolve(name).unwrap().spec {
        ServerSpec::Stdio(spec) => spec,
        ServerSpec::Http(_) => panic!("{name} is dialled"),
    }
}

/// Approves a server as it is now.
fn approve(world: &World, name: &str) {
    let config = world.load();
    let server = config.server(name).unwrap();
    let key = ApprovalKey::new(&world.places.project, &server.place.file, name);
    let what = ApprovalSubject::inspect(server.described.as_ref().unwrap(), &world.around);
    ApprovalStore::new(&world.places.approvals).approve(&key, &what, SystemTime::now()).unwrap();
}

fn executable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn started(world: &World) -> (PathBuf, PathBuf) {
    let spec = stdio(world, "x");
    // Arguments are never rewritten.
    assert_eq!(spec.args, ["./data", "."]);
    assert_eq!(spec.env.len(), 1);
    (spec.program.into(), spec.cwd.unwrap())
}

#[test]
fn paths_are_relative_to_their_file_and_users_servers_start_in_a_private_directory() {
    for file in ["home/.mcp.json", "home/config.json", "flags/wharf.json"] {
        let mut world = World::new();
        let path = world.write(file, RELATIVE);
        let folder = path.parent().unwrap().to_owned();
        std::fs::write(folder.join("vars"), "A=1\n").unwrap();
        // The repository's own files of these names count for nothing.
        world.write("project/vars", "A=1\nLD_PRELOAD=./evil.so\n");
        if file.starts_with("flags") {
            world.places.flags.push(path.clone());
        }
        let private = world.path("state/servers/x");
        assert_eq!(started(&world), (folder.join("run"), private.clone()), "{file}");
        assert_eq!(std::fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(&path, RELATIVE.replace("\"envFile\"", "\"cwd\": \"sub\", \"envFile\"")).unwrap();
        assert_eq!(started(&world), (folder.join("run"), folder.join("sub")), "{file}");
    }
}

#[test]
fn a_projects_own_servers_start_in_the_project() {
    for file in ["project/.mcp.json", "project/.wharf/config.json"] {
        let world = World::new();
        world.write(file, RELATIVE);
        world.write("project/vars", "A=1\n");
        approve(&world, "x");
        assert_eq!(started(&world), (world.path("project/run"), world.path("project")), "{file}");
    }
}

#[test]
fn a_relative_path_in_a_variable_is_refused() {
    for entry in
        [r#"{"command": "./run"}"#, r#"{"command": "a", "envFile": "vars"}"#, r#"{"command": "a", "cwd": "x"}"#]
    {
        let mut world = World::new();
        world.write("project/vars", "A=1\n");
        world.places.variable = Some(format!("{{\"x\": {entry}}}"));
        let problems = world.resolve("x").unwrap_err();
        assert!(told(&problems)[0].starts_with("relative_path "), "{entry}: {problems:?}");
        assert_eq!(problems[0].fix.as_deref(), Some("use an absolute path"));
    }
    let mut world = World::new();
    world.places.variable = Some(r#"{"x": {"command": "a"}}"#.to_owned());
    assert_eq!(stdio(&world, "x").cwd.unwrap(), world.path("state/servers/x"));
}

#[test]
fn where_no_private_directory_can_be_made_a_server_starts_in_the_root_directory() {
    let mut world = World::new();
    world.write("home/config.json", r#"{"mcpServers": {"x": {"command": "a"}}}"#);
    world.write("state/servers", "a file in the way");
    assert_eq!(stdio(&world, "x").cwd.unwrap(), Path::new("/"));
    world.places.server_dirs = PathBuf::new();
    assert_eq!(stdio(&world, "x").cwd.unwrap(), Path::new("/"));
}

#[test]
fn a_users_server_that_names_the_project_is_approved_once_per_directory() {
    for entry in [
        r#"{"command": "a", "cwd": "${project}"}"#,
        r#"{"command": "a", "args": ["--root=${project}/src"]}"#,
        r#"{"command": "a", "env": {"ROOT": "${project}"}}"#,
    ] {
        let mut world = World::new();
        world.write("home/config.json", &format!("{{\"mcpServers\": {{\"x\": {entry}}}}}"));
        assert_eq!(world.load().server("x").unwrap().approval, ServerApproval::Needed, "{entry}");
        approve(&world, "x");
        assert!(matches!(world.load().server("x").unwrap().approval, ServerApproval::Approved(_)), "{entry}");
        let spec = format!("{:?}", world.resolve("x").unwrap().spec);
        assert!(spec.contains(world.path("project").to_str().unwrap()) || entry.contains("env"), "{spec}");
        world.places.project = world.path("home");
        assert_eq!(world.load().server("x").unwrap().approval, ServerApproval::Needed, "{entry}");
    }
    // The directory was approved: a change of the user's own program is no new question, one of a file in it is.
    let world = World::new();
    let own = world.write("home/own", "#!/bin/sh\n");
    executable(&own);
    let script = world.write("project/script.py", "one");
    let entry = r#"{"command": "./own", "args": ["script.py"], "cwd": "${project}"}"#;
    world.write("home/config.json", &format!("{{\"mcpServers\": {{\"x\": {entry}}}}}"));
    approve(&world, "x");
    std::fs::write(&own, "#!/bin/sh\n# updated\n").unwrap();
    assert!(matches!(world.load().server("x").unwrap().approval, ServerApproval::Approved(_)));
    std::fs::write(script, "two").unwrap();
    assert_eq!(world.load().server("x").unwrap().approval, ServerApproval::Changed);
    let world = World::new();
    world.write("home/config.json", r#"{"mcpServers": {"x": {"command": "a", "args": ["$${project}"]}}}"#);
    assert_eq!(world.load().server("x").unwrap().approval, ServerApproval::NotNeeded);
}

/// Something that changes after the approval, and what it is called.
type Change = (&'static str, fn(&World));

/// S1: an approval is compared again before every start.
#[test]
fn what_has_changed_since_it_was_approved_is_not_started() {
    let script = "#!/bin/sh\n";
    let changes: [Change; 6] = [
        ("program", |world| std::fs::write(world.path("project/run"), "#!/bin/sh\nevil\n").unwrap()),
        ("script", |world| std::fs::write(world.path("project/real/script.py"), "evil").unwrap()),
        ("variables", |world| std::fs::write(world.path("project/vars"), "A=2\n").unwrap()),
        ("turned link", |world| {
            std::fs::remove_file(world.path("project/data")).unwrap();
            symlink(world.path("home"), world.path("project/data")).unwrap();
        }),
        ("revoked", |world| {
            ApprovalStore::new(&world.places.approvals).revoke_matching(&world.places.project, None).map(drop).unwrap();
        }),
        ("damaged approvals", |world| std::fs::write(&world.places.approvals, "{").unwrap()),
    ];
    for (name, change) in changes {
        let world = World::new();
        let run = world.write("project/run", script);
        executable(&run);
        world.write("project/real/script.py", "honest");
        symlink(world.path("project/real"), world.path("project/data")).unwrap();
        world.write("project/vars", "A=1\n");
        let entry = r#"{"command": "./run", "args": ["script.py"], "cwd": "data", "envFile": "vars"}"#;
        world.write("project/.mcp.json", &format!("{{\"mcpServers\": {{\"x\": {entry}}}}}"));
        approve(&world, "x");
        let check = stdio(&world, "x").launch_check.unwrap();
        assert_eq!(check.check(Some(&run)), Ok(()), "{name}");
        change(&world);
        let refusal = check.check(Some(&run)).unwrap_err();
        match name {
            "revoked" => assert_eq!(refusal, LaunchRefusal::NotApproved),
            "damaged approvals" => assert!(matches!(refusal, LaunchRefusal::Unreadable(_)), "{refusal:?}"),
            _ => assert!(matches!(&refusal, LaunchRefusal::Changed(lines) if !lines.is_empty()), "{name}: {refusal:?}"),
        }
    }
}

/// M: the program in the question is the program that is started.
#[test]
fn a_program_that_was_not_shown_is_not_started() {
    let world = World::new();
    let run = world.write("project/run", "#!/bin/sh\n");
    executable(&run);
    world.write("project/.mcp.json", r#"{"mcpServers": {"x": {"command": "./run"}}}"#);
    approve(&world, "x");
    let check = stdio(&world, "x").launch_check.unwrap();
    let refusal = check.check(Some(Path::new("/bin/sh"))).unwrap_err();
    assert!(matches!(&refusal, LaunchRefusal::OtherProgram { approved: Some(path), .. } if *path == run), "{refusal}");
}
