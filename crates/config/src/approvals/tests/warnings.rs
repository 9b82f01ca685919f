//! Tests of the warnings in the approval prompt.

use super::*;

fn check_warns(words: &[&str], part: &str) {
    let approvable = ApprovalSubject::inspect(&described(stdio_reach(command(words))), &Environment::default());
    let warnings = approvable.warnings();
    match part {
        "" => assert!(warnings.is_empty(), "{words:?}: {warnings:?}"),
        part => assert!(warnings.iter().any(|warning| warning.contains(part)), "{words:?}: {warnings:?}"),
    }
    assert!(approvable.lines().len() >= words.len() + warnings.len());
}

/// T05: the name of a program does not determine the code that it runs.
#[test]
fn t05_inline_code_is_warned_about_and_in_the_digest() {
    let combinations: [&[&str]; 34] = [
        &["sh", "-c", "x"],
        &["/bin/bash", "-lc", "x"],
        &["zsh", "-c", "x"],
        &["dash", "-ec", "x"],
        &["fish", "--command=x"],
        &["python", "-c", "x"],
        &["python3.12", "-Ic", "x"],
        &["python3", "-cprint()"],
        &["node", "-e", "x"],
        &["node", "--eval", "x"],
        &["node", "-pe", "x"],
        &["node", "--require", "./x.js", "s.js"],
        &["nodejs", "--import=data:x", "s.js"],
        &["bun", "-e", "x"],
        &["deno", "eval", "x"],
        &["ruby", "-e", "x"],
        &["perl", "-E", "x"],
        &["php", "-r", "x"],
        &["lua", "-e", "x"],
        &["Rscript", "-e", "x"],
        &["osascript", "-e", "x"],
        &["pwsh", "-Command", "x"],
        &["powershell.exe", "-EncodedCommand", "x"],
        &["cmd", "/c", "x"],
        &["npx", "-c", "x"],
        &["npx", "--call=x"],
        &["npm", "exec", "-c", "x"],
        &["docker", "run", "--entrypoint", "sh", "image"],
        &["docker", "run", "-v", "/:/host", "image"],
        &["podman", "run", "--privileged", "image"],
        &["env", "-S", "sh x"],
        &["env", "A=1", "python3", "-c", "x"],
        &["sudo", "timeout", "9", "bash", "-c", "x"],
        &["anything", "--fine", "--eval=x"],
    ];
    let digest = |words: &[&str]| {
        ApprovalSubject::inspect(&described(stdio_reach(command(words))), &Environment::default()).digest()
    };
    for words in combinations {
        check_warns(words, "can run inline code or another program");
        assert_ne!(digest(words), digest(&words[..1]), "{words:?}");
    }
    let plain: [&[&str]; 6] = [
        &["node", "server.js", "--port", "1"],
        &["python", "-m", "server"],
        &["bash", "run.sh"],
        &["npx", "-y", "@scope/pkg@1.2.3"],
        &["uvx", "pkg==1.0.4", "-v"],
        &["/opt/server", "-c", "file"],
    ];
    plain.into_iter().for_each(|words| check_warns(words, ""));
}

#[test]
fn unpinned_packages_cause_warnings() {
    let loose: [&[&str]; 10] = [
        &["npx", "-y", "pkg"],
        &["npx", "-y", "@scope/pkg"],
        &["npx", "pkg@latest"],
        &["npx", "pkg@^1.2.3"],
        &["npx", "pkg@1.x.0"],
        &["npx", "-p", "pkg", "run"],
        &["uvx", "pkg"],
        &["uvx", "--from", "git+https://x", "pkg==1.0.0"],
        &["uv", "tool", "run", "pkg"],
        &["env", "A=1", "npx", "--package=pkg", "run"],
    ];
    loose.into_iter().for_each(|words| check_warns(words, "is not pinned to a version"));
}

/// A definition is inspected before the user has approved it, so a large one must not cause long delays.
#[test]
fn fifty_thousand_arguments_are_inspected() {
    for word in ["sh", "npx", "-c", "${A}"] {
        let mut words = vec![word; 50_000];
        words[0] = "npx";
        assert!(
            ApprovalSubject::inspect(&described(stdio_reach(command(&words))), &Environment::default()).lines().len()
                > 50_000
        );
    }
}

#[test]
fn code_loading_variables_cause_warnings() {
    let mut stdio = command(&["tool"]);
    stdio.env = ["A", "LD_PRELOAD", "NODE_OPTIONS"].map(|name| (name.to_owned(), sited("x"))).to_vec();
    let approvable = ApprovalSubject::inspect(&described(stdio_reach(stdio)), &Environment::default());
    let expected = [
        "`LD_PRELOAD` can make the server load or run other code",
        "`NODE_OPTIONS` can make the server load or run other code",
    ];
    assert_eq!(approvable.warnings(), expected);
}

#[test]
fn project_warning_depends_on_the_start_directory() {
    let machine = ApprovalTestMachine::new();
    let warnings = |cwd: Option<&str>, argument: &str, start: fn(PathBuf) -> StartDirectory| {
        let stdio = StdioDefinition { cwd: cwd.map(sited), ..command(&["tool", argument]) };
        let mut described = described(stdio_reach(stdio));
        described.site.project = machine.path("project");
        described.site.start = start(machine.path("project"));
        ApprovalSubject::inspect(&described, &machine.environment()).warnings().to_vec()
    };
    let private: fn(PathBuf) -> StartDirectory = |_| StartDirectory::Private("/".into());
    let runs_there = ["runs in the project directory, and programs may run code from their working directory"];
    let receives_path = ["receives the path of the project directory, and programs may run code from there"];
    assert_eq!(warnings(Some("${project}"), "x", private), runs_there);
    assert_eq!(warnings(Some("${project}/sub"), "${project}", private), runs_there);
    assert_eq!(warnings(None, "${project}", StartDirectory::Project), runs_there);
    assert_eq!(warnings(None, "${project}", private), receives_path);
    assert_eq!(warnings(Some("/"), "${project}", StartDirectory::Project), receives_path);
    assert_eq!(warnings(None, "x", private), [""; 0]);
}

#[test]
fn oauth_disclosures_cause_warnings() {
    let check = |texts: &[(&'static str, &str)], expected: &[&str]| {
        let mut http = HttpDefinition { headers: Vec::new(), ..http() };
        http.proxy = Some(sited("http://p.example"));
        http.ca = vec![sited("own.pem")];
        let texts = texts.iter().map(|(name, text)| (*name, sited(text))).collect();
        http.oauth = Some(OauthDefinition { texts, callback_port: None });
        let warnings =
            ApprovalSubject::inspect(&described(TransportDefinition::Http(Box::new(http))), &Environment::default())
                .warnings()
                .to_vec();
        let ways =
            ["all traffic goes through the proxy `http://p.example`", "certificates issued by `own.pem` are trusted"];
        assert_eq!(warnings, [&ways[..], expected].concat());
    };
    check(&[], &[]);
    check(
        &[("token_url", "https://t.example/t"), ("assertion_file", "/run/t\u{1b}")],
        &["sends the content of `/run/t\\u{1b}` to `https://t.example/t`"],
    );
    check(&[("assertion_file", "a.jwt")], &["sends the content of `a.jwt` to the authorization server"]);
    check(
        &[("idp_token_url", "https://i.example"), ("id_token_file", "id.jwt"), ("token_url", "https://t.example")],
        &["sends the content of `id.jwt` to `https://i.example`"],
    );
    check(&[("private_key_file", "key.pem")], &["signs with the key in `key.pem`"]);
}
