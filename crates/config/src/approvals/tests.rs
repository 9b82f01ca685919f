//! Tests of approvals: triggers for a new prompt, displayed lines and stored records.

mod covered_files;
mod warnings;

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt, symlink};
use std::sync::Arc;

use wharf_spec::{Environment, HttpTransport};
use wharf_testkit::test_home::TestHome;

use super::*;
use crate::fields::OAUTH;
use crate::tree::TextPosition;
use crate::{
    EntrySite, HttpDefinition, OauthDefinition, ServerDefinition, SourceLocation, SourcedValue, StartDirectory,
    StdioDefinition, TransportDefinition,
};

/// A named change.
type NamedMutation<T> = (&'static str, fn(&mut T));

fn sited(text: &str) -> SourcedValue<String> {
    let place = SourceLocation { file: Arc::from(Path::new(".mcp.json")), at: TextPosition::START };
    SourcedValue { value: text.to_owned(), place }
}

fn stdio_reach(stdio: StdioDefinition) -> TransportDefinition {
    TransportDefinition::Stdio(Box::new(stdio))
}

fn described(reach: TransportDefinition) -> ServerDefinition {
    ServerDefinition {
        reach,
        site: EntrySite::default(),
        expands: true,
        trust: false,
        lazy: false,
        debug: false,
        include_tools: None,
        exclude_tools: Vec::new(),
        timeout: None,
        tool_timeouts: Vec::new(),
        startup_timeout: None,
        max_message: None,
        max_concurrent: None,
        reconnect: None,
        health_check: None,
        idle_stop: None,
        keep_results: None,
        instances: Default::default(),
        unknown: Vec::new(),
    }
}

fn command(words: &[&str]) -> StdioDefinition {
    StdioDefinition {
        command: sited(words[0]),
        args: words[1..].iter().map(|word| sited(word)).collect(),
        cwd: None,
        env: Vec::new(),
        env_vars: Vec::new(),
        env_file: None,
        inherit_env: false,
    }
}

/// A project, and a program `tool` on the search path that is a symbolic link to `v1/tool`.
struct ApprovalTestMachine {
    home: TestHome,
}

impl ApprovalTestMachine {
    fn new() -> Self {
        let machine = Self { home: TestHome::new() };
        for name in ["project/sub", "bin", "v1", "v2"] {
            fs::create_dir_all(machine.path(name)).unwrap();
        }
        machine.install("v1/tool");
        machine.install("v2/tool");
        symlink(machine.path("v1/tool"), machine.path("bin/tool")).unwrap();
        fs::write(machine.path("project/vars"), "A=1\n").unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path(name)
    }

    fn install(&self, name: &str) {
        // Write a new file and rename it, so that the inode changes.
        fs::write(self.path("new"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(self.path("new"), Permissions::from_mode(0o755)).unwrap();
        fs::rename(self.path("new"), self.path(name)).unwrap();
    }

    fn environment(&self) -> Environment {
        let path = OsString::from(format!("{}:{}", self.path("project/bin").display(), self.path("bin").display()));
        Environment { env: vec![("PATH".into(), path)], cwd: self.path("project") }
    }

    fn digest(&self, described: &ServerDefinition) -> ApprovalDigest {
        self.inspect(described.clone()).digest()
    }

    /// Inspects an entry of the project's file.
    fn inspect(&self, described: ServerDefinition) -> ApprovalSubject {
        self.inspect_in(described, &self.environment())
    }

    fn inspect_in(&self, mut described: ServerDefinition, around: &Environment) -> ApprovalSubject {
        let project = self.path("project");
        let start = StartDirectory::Project(project.clone());
        described.site = EntrySite { base: Some(project.clone()), start, project };
        ApprovalSubject::inspect(&described, around)
    }
}

fn stdio() -> StdioDefinition {
    StdioDefinition {
        env: vec![("B".to_owned(), sited("2")), ("A".to_owned(), sited("${HOME}"))],
        env_vars: vec![sited("TOKEN"), sited("LANG")],
        env_file: Some(sited("vars")),
        cwd: Some(sited("sub")),
        ..command(&["tool", "--one", "two"])
    }
}

/// T03: every change of the command or its inputs requires a new prompt.
#[test]
fn t03_changed_command_needs_a_new_approval() {
    let changes: [NamedMutation<StdioDefinition>; 15] = [
        ("command", |stdio| stdio.command = sited("other")),
        ("order of arguments", |stdio| stdio.args.reverse()),
        ("an argument more", |stdio| stdio.args.push(sited(""))),
        ("arguments joined", |stdio| stdio.args = vec![sited("--one two")]),
        ("an argument less", |stdio| drop(stdio.args.pop())),
        ("value of a variable", |stdio| stdio.env[0].1 = sited("3")),
        ("the same value spelt out", |stdio| stdio.env[1].1 = sited("/root")),
        ("name of a variable", |stdio| stdio.env[0].0 = "C".to_owned()),
        ("a value moved between variables", |stdio| {
            stdio.env = vec![("A".to_owned(), sited("2")), ("B".to_owned(), sited("${HOME}"))]
        }),
        ("a variable of ours", |stdio| stdio.env_vars.push(sited("MORE"))),
        ("directory", |stdio| stdio.cwd = Some(sited("."))),
        ("no directory", |stdio| stdio.cwd = None),
        ("another file of variables", |stdio| stdio.env_file = Some(sited("vars2"))),
        ("no file of variables", |stdio| stdio.env_file = None),
        ("the whole environment", |stdio| stdio.inherit_env = true),
    ];
    let machine = ApprovalTestMachine::new();
    let before = machine.digest(&described(stdio_reach(stdio())));
    for (name, change) in changes {
        let mut stdio = stdio();
        change(&mut stdio);
        assert_ne!(machine.digest(&described(stdio_reach(stdio))), before, "{name}");
    }
    let flags: [NamedMutation<ServerDefinition>; 5] = [
        ("trust", |described| described.trust = true),
        ("expansion", |described| described.expands = false),
        ("tools", |described| described.include_tools = Some(vec!["*".to_owned()])),
        ("no tools", |described| described.include_tools = Some(Vec::new())),
        ("tools left out", |described| described.exclude_tools.push("rm".to_owned())),
    ];
    for (name, change) in flags {
        let mut described = described(stdio_reach(stdio()));
        change(&mut described);
        assert_ne!(machine.digest(&described), before, "{name}");
    }
}

/// T03: with the same file content, another program would run.
#[test]
fn t03_changed_program_needs_a_new_approval() {
    let changes: [NamedMutation<ApprovalTestMachine>; 10] = [
        ("replaced program", |machine| {
            fs::write(machine.path("new"), "#!/bin/sh\nevil\n").unwrap();
            fs::set_permissions(machine.path("new"), Permissions::from_mode(0o755)).unwrap();
            fs::rename(machine.path("new"), machine.path("v1/tool")).unwrap();
        }),
        ("rewritten program of the same size and time", |machine| {
            let file = fs::File::options().write(true).open(machine.path("v1/tool")).unwrap();
            let modified = file.metadata().unwrap().modified().unwrap();
            file.write_all_at(b"#!/bin/s2", 0).unwrap();
            file.set_modified(modified).unwrap();
        }),
        ("script among the arguments", |machine| fs::write(machine.path("project/sub/two"), "evil").unwrap()),
        ("rewritten program", |machine| fs::write(machine.path("v1/tool"), "#!/bin/sh\nevil\n").unwrap()),
        ("target of a link", |machine| {
            fs::remove_file(machine.path("bin/tool")).unwrap();
            symlink(machine.path("v2/tool"), machine.path("bin/tool")).unwrap();
        }),
        ("hard link in place of the link", |machine| {
            fs::remove_file(machine.path("bin/tool")).unwrap();
            fs::hard_link(machine.path("v2/tool"), machine.path("bin/tool")).unwrap();
        }),
        ("no program", |machine| fs::remove_file(machine.path("bin/tool")).unwrap()),
        ("content of the variables", |machine| fs::write(machine.path("project/vars"), "A=2\n").unwrap()),
        ("target of the directory", |machine| {
            fs::remove_dir(machine.path("project/sub")).unwrap();
            symlink(machine.path("v2"), machine.path("project/sub")).unwrap();
        }),
        ("no variables", |machine| fs::remove_file(machine.path("project/vars")).unwrap()),
    ];
    for (name, change) in changes {
        let mut machine = ApprovalTestMachine::new();
        let before = machine.digest(&described(stdio_reach(stdio())));
        change(&mut machine);
        assert_ne!(machine.digest(&described(stdio_reach(stdio()))), before, "{name}");
    }
}

#[test]
fn irrelevant_change_preserves_the_approval() {
    let machine = ApprovalTestMachine::new();
    let mut other = described(stdio_reach(stdio()));
    let before = machine.digest(&other);
    other.timeout = Some(Duration::from_secs(1));
    other.debug = true;
    other.unknown.push(sited("note"));
    let TransportDefinition::Stdio(stdio) = &mut other.reach else { panic!() };
    stdio.command.place.at = TextPosition { line: 9, column: 9 };
    stdio.env.reverse();
    stdio.env_vars.reverse();
    assert_eq!(machine.digest(&other), before);
    // A program inside the project is not found by name, so it has no effect.
    fs::create_dir(machine.path("project/bin")).unwrap();
    machine.install("project/bin/tool");
    assert_eq!(machine.digest(&other), before);
    // Replacing a file with identical content has no effect either.
    machine.install("v1/tool");
    assert_eq!(machine.digest(&other), before);
}

/// S2: scripts, modules and launcher files cannot change without a prompt.
#[test]
fn changed_script_module_or_launcher_needs_approval() {
    let cases: [(&[&str], &str); 8] = [
        (&["tool", "./server.py"], "server.py"),
        (&["tool", "--config=server.json"], "server.json"),
        (&["/usr/bin/python3", "-m", "server"], "server.py"),
        (&["python3", "-m", "server.sub"], "server/__init__.py"),
        (&["node", "."], "index.js"),
        (&["npm", "run", "serve"], "package.json"),
        (&["npx", "-y", "server"], ".npmrc"),
        (&["uv", "run", "serve"], "pyproject.toml"),
    ];
    for (words, file) in cases {
        let machine = ApprovalTestMachine::new();
        let digest = || machine.digest(&described(stdio_reach(command(words))));
        let path = machine.path("project").join(file);
        let absent = digest();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "one").unwrap();
        let first = digest();
        fs::write(&path, "two").unwrap();
        let second = digest();
        assert!(absent != first && first != second, "{words:?}");
        let lines = machine.inspect(described(stdio_reach(command(words)))).lines();
        assert!(lines.iter().any(|line| line.starts_with("file ") && line.contains(file)), "{words:?}: {lines:#?}");
        assert!(lines.last().unwrap().starts_with("not covered by this approval: "), "{lines:#?}");
    }
}

fn login(name: &'static str, text: &str) -> OauthDefinition {
    OauthDefinition { texts: vec![(name, sited(text))], callback_port: None }
}

fn http() -> HttpDefinition {
    HttpDefinition {
        url: sited("https://a.example/mcp"),
        form: HttpTransport::Automatic,
        headers: vec![("X-Key".to_owned(), sited("1")), ("Authorization".to_owned(), sited("Bearer ${TOKEN}"))],
        headers_command: Vec::new(),
        proxy: None,
        ca: Vec::new(),
        client_cert: None,
        mirror_arguments: true,
        oauth: Some(login("token_url", "https://a.example/token")),
    }
}

#[test]
fn t03_changed_endpoint_needs_a_new_approval() {
    let changes: [NamedMutation<HttpDefinition>; 12] = [
        ("address", |http| http.url = sited("https://b.example/mcp")),
        ("form", |http| http.form = HttpTransport::Sse),
        ("value of a header", |http| http.headers[0].1 = sited("2")),
        ("name of a header", |http| http.headers[0].0 = "X-Other".to_owned()),
        ("a header more", |http| http.headers.push(("Y".to_owned(), sited("")))),
        ("proxy", |http| http.proxy = Some(sited("http://p.example"))),
        ("certificates", |http| http.ca.push(sited("vars"))),
        ("client certificate", |http| http.client_cert = Some(sited("vars"))),
        ("mirrored arguments", |http| http.mirror_arguments = false),
        ("no login", |http| http.oauth = None),
        ("token address", |http| http.oauth = Some(login("token_url", "x"))),
        ("callback port", |http| http.oauth.as_mut().unwrap().callback_port = Some(80)),
    ];
    let machine = ApprovalTestMachine::new();
    let digest = |http| machine.digest(&described(TransportDefinition::Http(Box::new(http))));
    let before = digest(http());
    for (name, change) in changes {
        let mut http = http();
        change(&mut http);
        assert_ne!(digest(http), before, "{name}");
    }
    for field in OAUTH {
        let mut http = http();
        http.oauth.as_mut().unwrap().texts.push((field.name, sited("x")));
        assert_ne!(digest(http), before, "{}", field.name);
    }
    let mut same = http();
    same.headers.reverse();
    same.headers[1].0 = "x-key".to_owned();
    assert_eq!(digest(same), before);
}

#[test]
fn env_file_variables_are_shown_and_select_the_program() {
    let machine = ApprovalTestMachine::new();
    let path = machine.path("v2");
    fs::write(machine.path("project/vars"), format!("PATH={}\nNODE_OPTIONS='-r evil'\n", path.display())).unwrap();
    let mut stdio = StdioDefinition { env_file: Some(sited("vars")), ..command(&["tool"]) };
    let approvable = machine.inspect(described(stdio_reach(stdio.clone())));
    let lines = approvable.lines();
    for line in [
        &format!("variable from file PATH: {}", path.display()),
        "variable from file NODE_OPTIONS: -r evil",
        &format!("program: {}", path.join("tool").display()),
        "warning: `PATH` can make the server load or run other code",
        "warning: `NODE_OPTIONS` can make the server load or run other code",
    ] {
        assert!(lines.iter().any(|found| found == line), "{line}: {lines:#?}");
    }
    stdio.env = vec![("PATH".to_owned(), sited(machine.path("v1").to_str().unwrap()))];
    let lines = machine.inspect(described(stdio_reach(stdio))).lines();
    assert!(lines.contains(&format!("program: {}", machine.path("v1/tool").display())), "{lines:#?}");
}

#[test]
fn references_are_expanded_before_inspection() {
    let machine = ApprovalTestMachine::new();
    let mut around = machine.environment();
    let bin = machine.path("v2");
    around.env.extend([("BIN", bin.to_str().unwrap()), ("EMPTY", "")].map(|(name, value)| (name.into(), value.into())));
    let padding = format!("${{NONE:-{}}}", "/x".repeat(4 << 10));
    let padded = format!("{padding}:${{BIN}}");
    for path in ["${env:BIN}", "${BIN}${EMPTY}", "${NONE:-/none}:${env:BIN}", &padded] {
        let stdio = StdioDefinition { env: vec![("PATH".to_owned(), sited(path))], ..command(&["tool"]) };
        let lines = machine.inspect_in(described(stdio_reach(stdio)), &around).lines();
        let expected = format!("program: {}", bin.join("tool").display());
        assert!(lines.contains(&expected), "{path:.40}: {lines:#?}");
    }
    let words = command(&["tool", "$${x${AWS}", "${env:B:-c}"]);
    let approvable = machine.inspect_in(described(stdio_reach(words)), &around);
    assert_eq!(approvable.warnings(), ["receives your AWS", "receives your B"]);
}

#[test]
fn changes_in_large_files_are_detected() {
    let machine = ApprovalTestMachine::new();
    let file = fs::File::create(machine.path("project/vars")).unwrap();
    for size in [5 << 20, 65 << 20, 600 << 20] {
        file.set_len(size).unwrap();
        let before = machine.digest(&described(stdio_reach(stdio())));
        file.write_all_at(format!("{size}").as_bytes(), 4 << 20).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
        assert_ne!(machine.digest(&described(stdio_reach(stdio()))), before, "{size}");
    }
}

#[test]
fn warnings_name_disclosed_variables_and_secrets() {
    let mut stdio = command(&["tool", "--key=${API_KEY:-none}", "$${NOT}", "${secret:pass}"]);
    stdio.env = vec![("T".to_owned(), sited("${GITHUB_TOKEN}"))];
    stdio.env_vars = vec![sited("AWS_SECRET")];
    stdio.inherit_env = true;
    let mut described = described(stdio_reach(stdio));
    described.trust = true;
    let expected = [
        "receives your whole environment",
        "receives your API_KEY",
        "receives your AWS_SECRET",
        "receives your GITHUB_TOKEN",
        "receives your secret pass",
        "its tools run without asking",
    ];
    let warnings =
        |described: &ServerDefinition| ApprovalSubject::inspect(described, &Environment::default()).warnings().to_vec();
    assert_eq!(warnings(&described), expected);
    described.expands = false;
    assert_eq!(
        warnings(&described),
        ["receives your whole environment", "receives your AWS_SECRET", "its tools run without asking"]
    );
    described.expands = true;
    described.trust = false;
    described.reach = TransportDefinition::Http(Box::new(http()));
    assert_eq!(warnings(&described), ["receives your TOKEN"]);
}

/// T04: nothing is shortened, and control characters are escaped.
#[test]
fn t04_prompt_shows_everything_escaped() {
    let padding = "x".repeat(8 << 10);
    let mut words = vec!["tool"; 299];
    words[1] = "";
    words[2] = "\u{1b}[2J\nargument 4: harmless";
    words[3] = &padding;
    words.push("--eval=evil");
    let lines = ApprovalSubject::inspect(&described(stdio_reach(command(&words))), &Environment::default()).lines();
    assert_eq!(lines.iter().filter(|line| line.starts_with("argument ")).count(), 299);
    for (line, expected) in [
        (1, "command: tool"),
        (2, "argument 1: \"\""),
        (3, "argument 2: \\u{1b}[2J\\nargument 4: harmless"),
        (4, &format!("argument 3: {padding}")),
        (300, "argument 299: --eval=evil"),
    ] {
        assert_eq!(lines[line], expected);
    }
    assert!(lines[lines.len() - 2].starts_with("warning: `--eval=evil` of `tool`"));
}

#[test]
fn approval_is_per_server_file_and_project() {
    let machine = ApprovalTestMachine::new();
    let approvals = ApprovalStore::new(machine.path("state/approvals.json"));
    let project = machine.path("project");
    let key = ApprovalKey::new(&project, Path::new(".mcp.json"), "a");
    let what = machine.inspect(described(stdio_reach(stdio())));
    let other = machine.inspect(described(stdio_reach(command(&["evil"]))));
    let state = |key: &ApprovalKey, what: &ApprovalSubject| approvals.load().unwrap().state(key, what.digest());
    assert_eq!(state(&key, &what), ApprovalState::Needed);
    assert!(!approvals.revoke(&key).unwrap());
    assert!(!machine.path("state/approvals.json").exists());
    approvals.approve(&key, &what, UNIX_EPOCH).unwrap();
    assert_eq!(state(&key, &what), ApprovalState::Approved);
    assert_eq!(state(&key, &other), ApprovalState::Changed { before: what.lines() });
    symlink(&project, machine.path("link")).unwrap();
    assert_eq!(
        state(&ApprovalKey::new(&machine.path("link"), Path::new(".mcp.json"), "a"), &what),
        ApprovalState::Approved
    );
    for (folder, file, server) in
        [("project", ".mcp.json", "A"), ("project", ".wharf/config.json", "a"), ("v1", ".mcp.json", "a")]
    {
        let key = ApprovalKey::new(&machine.path(folder), Path::new(file), server);
        assert_eq!(state(&key, &what), ApprovalState::Needed, "{folder} {file} {server}");
    }
    approvals.approve(&key, &other, UNIX_EPOCH).unwrap();
    assert_eq!(state(&key, &what), ApprovalState::Changed { before: other.lines() });
    assert!(approvals.revoke(&key).unwrap());
    assert_eq!(state(&key, &other), ApprovalState::Needed);
}

#[test]
fn approvals_are_revoked_by_project_and_server() {
    let machine = ApprovalTestMachine::new();
    let approvals = ApprovalStore::new(machine.path("state/approvals.json"));
    let what = machine.inspect(described(stdio_reach(stdio())));
    let key =
        |project: &str, file: &str, server: &str| ApprovalKey::new(&machine.path(project), Path::new(file), server);
    let keys = [("project", "x", "b"), ("project", "x", "a"), ("project", "y", "a"), ("v1", "x", "a")];
    for (project, file, server) in keys {
        approvals.approve(&key(project, file, server), &what, UNIX_EPOCH).unwrap();
    }
    let revoked = |project: &str, server| approvals.revoke_matching(&machine.path(project), server).unwrap();
    assert_eq!(revoked("project", Some("c")), [""; 0]);
    assert_eq!(revoked("v1/../project", Some("a")), ["a"]);
    assert_eq!(revoked("project", None), ["b"]);
    assert_eq!(revoked("project", None), [""; 0]);
    let approved = approvals.load().unwrap();
    let known = keys.map(|(project, file, server)| approved.contains(&key(project, file, server)));
    assert_eq!(known, [false, false, false, true]);
}

/// C19, and a damaged file: both approve nothing and are not overwritten.
#[test]
fn c19_invalid_approvals_file_is_not_overwritten() {
    let machine = ApprovalTestMachine::new();
    let path = machine.path("approvals.json");
    let approvals = ApprovalStore::new(&path);
    let key = ApprovalKey::new(&machine.path("project"), Path::new("x"), "a");
    let what = machine.inspect(described(stdio_reach(stdio())));
    for (text, part) in [
        ("{\"schema\": 2, \"approvals\": {}}", "has schema 2"),
        ("{\"schema\": 1}", "is not a valid approvals file"),
        ("", "is not a valid"),
    ] {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let errors = [approvals.load().unwrap_err(), approvals.approve(&key, &what, UNIX_EPOCH).unwrap_err()];
        assert!(errors.iter().all(|error| error.to_string().contains(part)), "{errors:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert!(approvals.load().unwrap_err().fix().starts_with("chmod go-rwx "));
}
