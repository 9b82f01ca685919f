//! Tests of the files of a project that an approval covers: each change after the approval requires a new one.

use super::*;

/// A command line, files before the approval, and a file that is added or changed after it.
type LaterFile = (&'static [&'static str], &'static [(&'static str, &'static str)], (&'static str, &'static str));

const SERVE: (&str, &str) = ("package.json", r#"{"scripts": {"serve": "node srv.js", "postserve": "./after.sh"}}"#);

/// S2: neither a package nor a script behind options, directories or other scripts runs without a prompt.
#[test]
fn added_package_module_or_script_needs_approval() {
    let cases: [LaterFile; 13] = [
        (
            &["npx", "-y", "@modelcontextprotocol/server-filesystem", "."],
            &[],
            (
                "node_modules/@modelcontextprotocol/server-filesystem/package.json",
                r#"{"bin": {"mcp-server-filesystem": "dist/index.js"}}"#,
            ),
        ),
        (&["npx", "-y", "server"], &[("own.js", "")], ("package.json", r#"{"bin": {"server": "own.js"}}"#)),
        (&["npx", "server"], &[("package.json", r#"{"name": "server", "bin": "own.js"}"#)], ("own.js", "")),
        (&["python3", "-W", "ignore", "-m", "server"], &[], ("server.py", "")),
        (&["python3", "-X", "dev", "-m", "server"], &[], ("server.py", "")),
        (&["python3", "-Xfrozen_modules=off", "-m", "server"], &[], ("server.py", "")),
        (&["node", "-r", "./hook.js", "."], &[("hook.js", "")], ("index.js", "")),
        (&["env", "-C", "sub", "python3", "server.py"], &[], ("sub/server.py", "")),
        (&["uv", "--directory", "sub", "run", "server.py"], &[], ("sub/server.py", "")),
        (&["npm", "--prefix", "sub", "run", "x"], &[], ("sub/package.json", "{}")),
        (&["pnpm", "--dir", "sub", "exec", "x"], &[], ("sub/node_modules/.bin/x", "")),
        (&["npm", "run", "serve"], &[SERVE], ("srv.js", "")),
        (&["npm", "run", "serve"], &[SERVE], ("after.sh", "")),
    ];
    for (words, before, (file, text)) in cases {
        let machine = ApprovalTestMachine::new();
        let write = |file: &str, text: &str| {
            let path = machine.path("project").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let digest = || machine.digest(&described(stdio_reach(command(words))));
        before.iter().for_each(|(file, text)| write(file, text));
        let approved = digest();
        write(file, text);
        let added = digest();
        write(file, &format!("{text}\n"));
        assert!(approved != added && added != digest(), "{words:?} {file}");
    }
}

/// A server that receives the project as data does not need a new approval after each change of a dependency.
#[test]
fn unrelated_package_description_preserves_the_approval() {
    let cases: [&[&str]; 3] =
        [&["npx", "-y", "@scope/server", "."], &["node", "/opt/server.js", "."], &["tool", "${project}"]];
    for words in cases {
        let machine = ApprovalTestMachine::new();
        let digest = || machine.digest(&described(stdio_reach(command(words))));
        let approved = digest();
        fs::write(machine.path("project/package.json"), r#"{"name": "app", "bin": "app.js"}"#).unwrap();
        fs::write(machine.path("project/index.js"), "").unwrap();
        assert_eq!(digest(), approved, "{words:?}");
    }
}
