//! Where servers start and what their paths are relative to, by the file they stand in; and starts held to approvals.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wharf_config::{ApprovalKey, ApprovalStore, ApprovalSubject, ServerApproval};
use wharf_spec::{HttpSpec, LaunchRefusal, ServerSpec, StdioSpec};

use crate::support::{ConfigHome, told};

/// An entry with every path that can be relative.
const RELATIVE: &str = r#"{"mcpServers": {"x": {"command": "./run", "args": ["./data", "."], "envFile": "vars"}}}"#;

fn stdio(home: &ConfigHome, name: &str) -> StdioSpec {
    match home.resolve(name).unwrap().spec {
        ServerSpec::Stdio(spec) => spec,
        ServerSpec::Http(_) => panic!("{name} is dialled"),
    }
}

/// Approves a server as it is now.
fn approve(home: &ConfigHome, name: &str) {
    let config = home.load();
    let server = config.server(name).unwrap();
    let key = ApprovalKey::new(&home.places.project, &server.place.file, name);
    let what = ApprovalSubject::inspect(server.described.as_ref().unwrap(), &home.around);
    ApprovalStore::new(&home.places.approvals).approve(&key, &what, SystemTime::now()).unwrap();
}

fn executable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn started(home: &ConfigHome) -> (PathBuf, PathBuf) {
    let spec = stdio(home, "x");
    // Arguments are never rewritten.
    assert_eq!(spec.args, ["./data", "."]);
    assert_eq!(spec.env.len(), 1);
    (spec.program.into(), spec.cwd.unwrap())
}

#[test]
fn paths_are_relative_to_their_file_cwd_is_private() {
    for file in ["home/.mcp.json", "home/config.json", "flags/wharf.json"] {
        let mut home = ConfigHome::new();
        let path = home.write(file, RELATIVE);
        let folder = path.parent().unwrap().to_owned();
        std::fs::write(folder.join("vars"), "A=1\n").unwrap();
        // The repository's own files of these names count for nothing.
        home.write("project/vars", "A=1\nLD_PRELOAD=./evil.so\n");
        if file.starts_with("flags") {
            home.places.flags.push(path.clone());
        }
        let private = home.path("state/servers/x");
        assert_eq!(started(&home), (folder.join("run"), private.clone()), "{file}");
        assert_eq!(std::fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(&path, RELATIVE.replace("\"envFile\"", "\"cwd\": \"sub\", \"envFile\"")).unwrap();
        assert_eq!(started(&home), (folder.join("run"), folder.join("sub")), "{file}");
    }
}

#[test]
fn project_server_starts_in_the_project() {
    for file in ["project/.mcp.json", "project/.wharf/config.json"] {
        let home = ConfigHome::new();
        home.write(file, RELATIVE);
        home.write("project/vars", "A=1\n");
        approve(&home, "x");
        assert_eq!(started(&home), (home.path("project/run"), home.path("project")), "{file}");
    }
}

#[test]
fn relative_path_in_environment_variable_is_refused() {
    for entry in
        [r#"{"command": "./run"}"#, r#"{"command": "a", "envFile": "vars"}"#, r#"{"command": "a", "cwd": "x"}"#]
    {
        let mut home = ConfigHome::new();
        home.write("project/vars", "A=1\n");
        home.places.variable = Some(format!("{{\"x\": {entry}}}"));
        let problems = home.resolve("x").unwrap_err();
        assert!(told(&problems)[0].starts_with("relative_path "), "{entry}: {problems:?}");
        assert_eq!(problems[0].fix.as_deref(), Some("use an absolute path"));
    }
    let mut home = ConfigHome::new();
    home.places.variable = Some(r#"{"x": {"command": "a"}}"#.to_owned());
    assert_eq!(stdio(&home, "x").cwd.unwrap(), home.path("state/servers/x"));
}

#[test]
fn root_directory_is_the_fallback_working_directory() {
    let mut home = ConfigHome::new();
    home.write("home/config.json", r#"{"mcpServers": {"x": {"command": "a"}}}"#);
    home.write("state/servers", "a file in the way");
    assert_eq!(stdio(&home, "x").cwd.unwrap(), Path::new("/"));
    home.places.server_dirs = PathBuf::new();
    assert_eq!(stdio(&home, "x").cwd.unwrap(), Path::new("/"));
}

#[test]
fn project_reference_needs_approval_per_directory() {
    for entry in [
        r#"{"command": "a", "cwd": "${project}"}"#,
        r#"{"command": "a", "args": ["--root=${project}/src"]}"#,
        r#"{"command": "a", "env": {"ROOT": "${project}"}}"#,
    ] {
        let mut home = ConfigHome::new();
        home.write("home/config.json", &format!("{{\"mcpServers\": {{\"x\": {entry}}}}}"));
        assert_eq!(home.load().server("x").unwrap().approval, ServerApproval::Needed, "{entry}");
        approve(&home, "x");
        assert!(matches!(home.load().server("x").unwrap().approval, ServerApproval::Approved(_)), "{entry}");
        let spec = format!("{:?}", home.resolve("x").unwrap().spec);
        assert!(spec.contains(home.path("project").to_str().unwrap()) || entry.contains("env"), "{spec}");
        home.places.project = home.path("home");
        assert_eq!(home.load().server("x").unwrap().approval, ServerApproval::Needed, "{entry}");
    }
    // The directory was approved: a change of the user's own program is no new question, one of a file in it is.
    let home = ConfigHome::new();
    let own = home.write("home/own", "#!/bin/sh\n");
    executable(&own);
    let script = home.write("project/script.py", "one");
    let entry = r#"{"command": "./own", "args": ["script.py"], "cwd": "${project}"}"#;
    home.write("home/config.json", &format!("{{\"mcpServers\": {{\"x\": {entry}}}}}"));
    approve(&home, "x");
    std::fs::write(&own, "#!/bin/sh\n# updated\n").unwrap();
    assert!(matches!(home.load().server("x").unwrap().approval, ServerApproval::Approved(_)));
    std::fs::write(script, "two").unwrap();
    assert_eq!(home.load().server("x").unwrap().approval, ServerApproval::Changed);
    let home = ConfigHome::new();
    home.write("home/config.json", r#"{"mcpServers": {"x": {"command": "a", "args": ["$${project}"]}}}"#);
    assert_eq!(home.load().server("x").unwrap().approval, ServerApproval::NotNeeded);
}

/// Something that changes after the approval, and what it is called.
type Change = (&'static str, fn(&ConfigHome));

/// S1: an approval is compared again before every start.
#[test]
fn changes_since_approval_prevent_the_start() {
    let script = "#!/bin/sh\n";
    let changes: [Change; 6] = [
        ("program", |home| std::fs::write(home.path("project/run"), "#!/bin/sh\nevil\n").unwrap()),
        ("script", |home| std::fs::write(home.path("project/real/script.py"), "evil").unwrap()),
        ("variables", |home| std::fs::write(home.path("project/vars"), "A=2\n").unwrap()),
        ("turned link", |home| {
            std::fs::remove_file(home.path("project/data")).unwrap();
            symlink(home.path("home"), home.path("project/data")).unwrap();
        }),
        ("revoked", |home| {
            ApprovalStore::new(&home.places.approvals).revoke_matching(&home.places.project, None).map(drop).unwrap();
        }),
        ("damaged approvals", |home| std::fs::write(&home.places.approvals, "{").unwrap()),
    ];
    for (name, change) in changes {
        let home = ConfigHome::new();
        let run = home.write("project/run", script);
        executable(&run);
        home.write("project/real/script.py", "honest");
        symlink(home.path("project/real"), home.path("project/data")).unwrap();
        home.write("project/vars", "A=1\n");
        let entry = r#"{"command": "./run", "args": ["script.py"], "cwd": "data", "envFile": "vars"}"#;
        home.write("project/.mcp.json", &format!("{{\"mcpServers\": {{\"x\": {entry}}}}}"));
        approve(&home, "x");
        let check = stdio(&home, "x").launch_check.unwrap();
        assert_eq!(check.check(Some(&run)), Ok(()), "{name}");
        change(&home);
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
fn program_other_than_approved_is_not_started() {
    let home = ConfigHome::new();
    let run = home.write("project/run", "#!/bin/sh\n");
    executable(&run);
    home.write("project/.mcp.json", r#"{"mcpServers": {"x": {"command": "./run"}}}"#);
    approve(&home, "x");
    let check = stdio(&home, "x").launch_check.unwrap();
    let refusal = check.check(Some(Path::new("/bin/sh"))).unwrap_err();
    assert!(matches!(&refusal, LaunchRefusal::OtherProgram { approved: Some(path), .. } if *path == run), "{refusal}");
}

fn http(home: &ConfigHome, name: &str) -> HttpSpec {
    match home.resolve(name).unwrap().spec {
        ServerSpec::Http(spec) => spec,
        ServerSpec::Stdio(_) => panic!("{name} is started"),
    }
}

/// The user's own program gets all variables and starts in the root directory; a project's gets few, and its directory.
#[test]
fn headers_command_prints_headers_as_a_json_object() {
    let mut home = ConfigHome::new();
    home.set("TOKEN", "hush");
    home.write_program(
        "home/headers",
        "#!/bin/sh\nprintf '{\"X-At\": \"%s\", \"X-Token\": \"%s%s\"}' \"$PWD\" \"$1\" \"$TOKEN\"\n",
    );
    let entry = r#"{"mcpServers": {"x": {"url": "http://127.0.0.1/", "headersCommand": ["./headers", "t-"]}}}"#;
    home.write("home/config.json", entry);
    let headers = |home: &ConfigHome| -> Vec<(String, String)> {
        let found = http(home, "x").headers_source.unwrap().load().unwrap();
        found.into_iter().map(|(name, value)| (name, value.reveal().to_owned())).collect()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(headers(&home), [pair("X-At", "/"), pair("X-Token", "t-hush")]);
    std::fs::remove_file(home.path("home/config.json")).unwrap();
    home.write("project/.mcp.json", entry);
    std::fs::rename(home.path("home/headers"), home.path("project/headers")).unwrap();
    let directory = home.path("project").display().to_string();
    assert_eq!(headers(&home), [pair("X-At", &directory), pair("X-Token", "t-")]);
}

#[test]
fn headers_command_with_other_output_is_an_error_without_the_output() {
    let home = ConfigHome::new();
    let entry = r#"{"mcpServers": {"x": {"url": "http://127.0.0.1/", "headersCommand": ["./headers"]}}}"#;
    home.write("home/config.json", entry);
    for (script, expected) in [
        ("echo hush", "is not a JSON object of strings"),
        ("echo '{\"X-A\": 1}'", "is not a JSON object of strings"),
        ("echo '[\"hush\"]'", "is not a JSON object of strings"),
        ("echo '{\"X-A\": \"hush\"}'; echo no >&2; exit 3", "failed (exit status: 3): no"),
        ("yes hush", "longer than 64 KiB"),
        ("true", "empty"),
    ] {
        home.write_program("home/headers", &format!("#!/bin/sh\n{script}\n"));
        let error = http(&home, "x").headers_source.unwrap().load().unwrap_err();
        assert!(error.contains(expected) && !error.contains("hush"), "{script}: {error}");
    }
}

/// The program that makes headers is approved like one that is started, with its content.
#[test]
fn changed_headers_command_needs_a_new_approval() {
    let home = ConfigHome::new();
    home.write_program("project/headers", "#!/bin/sh\necho '{}'\n");
    let entry = r#"{"mcpServers": {"x": {"url": "http://127.0.0.1/", "headersCommand": ["./headers"]}}}"#;
    home.write("project/.mcp.json", entry);
    assert_eq!(home.load().server("x").unwrap().approval, ServerApproval::Needed);
    approve(&home, "x");
    assert!(matches!(home.load().server("x").unwrap().approval, ServerApproval::Approved(_)));
    let check = http(&home, "x").launch_check.unwrap();
    assert_eq!(check.check(None), Ok(()));
    home.write_program("project/headers", "#!/bin/sh\nevil\n");
    assert!(matches!(check.check(None), Err(LaunchRefusal::Changed(_))));
    assert_eq!(home.load().server("x").unwrap().approval, ServerApproval::Changed);
    let config = home.load();
    let what = ApprovalSubject::inspect(config.server("x").unwrap().described.as_ref().unwrap(), &home.around);
    let lines = what.lines().join("\n");
    assert!(lines.contains("headers command 1: ./headers") && lines.contains("program file: "), "{lines}");
    assert!(lines.contains("warning: runs a program on this machine to make headers"), "{lines}");
}
