//! Tests of the detection of entry points.

use super::*;

fn find_entry_points(words: &[&str], files: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let (file, text) = file.split_once('|').unwrap_or((file, ""));
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let line = CommandLine { words: &words, cwd: folder.path(), python_path: vec![folder.path().join("lib")] };
    let name = |path: &Path| path.strip_prefix(folder.path()).unwrap().display().to_string().replace("./", "");
    let found: BTreeSet<String> = line.entry_points().keys().map(|path| name(path)).collect();
    found.into_iter().collect()
}

#[test]
fn entry_points_of_common_command_lines_are_found() {
    let package = r#"package.json|{"main": "lib/start"}"#;
    let cases: [(&[&str], &[&str], &[&str]); 15] = [
        (&["python3", "server.py"], &["server.py", "other.py"], &["server.py"]),
        (&["python3.12", "-u", "server.py"], &["server.py"], &["server.py"]),
        (&["python3", "-m", "server"], &["server.py", "lib/server.py"], &["lib/server.py", "server.py"]),
        (
            &["python3", "-Im", "a.b"],
            &["a/__init__.py", "a/b/__main__.py", "a/b/c.py"],
            &["a/__init__.py", "a/b/__main__.py"],
        ),
        (&["python3", "app"], &["app/__main__.py"], &["app/__main__.py"]),
        (&["node", "."], &[package, "lib/start.js", "index.js"], &["index.js", "lib/start.js", "package.json"]),
        (&["node", "app"], &["app/index.js"], &["app/index.js"]),
        (&["node", "server"], &["server.js"], &["server.js"]),
        (&["node", "--import=./hook.mjs", "x.js"], &["hook.mjs", "x.js"], &["hook.mjs", "x.js"]),
        (&["node", "-r./hook.js", "x.js"], &["hook.js", "x.js"], &["hook.js", "x.js"]),
        (&["env", "A=1", "node", "."], &["index.js"], &["index.js"]),
        (&["npm", "run", "serve"], &["package.json", ".npmrc"], &[".npmrc", "package.json"]),
        (
            &["npx", "-y", "@scope/server@1.0.0"],
            &["node_modules/.bin/server", ".npmrc"],
            &[".npmrc", "node_modules/.bin/server"],
        ),
        (&["uv", "run", "serve"], &["pyproject.toml", "uv.toml"], &["pyproject.toml", "uv.toml"]),
        (&["tool", "--data", "dir", "plain"], &["dir/x"], &[]),
    ];
    for (words, files, expected) in cases {
        assert_eq!(find_entry_points(words, files), expected, "{words:?}");
    }
}

#[test]
fn entry_points_behind_options_are_found() {
    let cases: [(&[&str], &[&str], &[&str]); 11] = [
        (&["python3", "-W", "ignore", "-m", "server"], &["server.py"], &["server.py"]),
        (&["python3", "-X", "dev", "-m", "server"], &["server.pyc"], &["server.pyc"]),
        (&["python3", "-Xfrozen_modules=off", "-m", "server"], &["server.py", "odules=off.py"], &["server.py"]),
        (&["python3", "-W", "ignore", "app"], &["app/__main__.py"], &["app/__main__.py"]),
        (&["env", "PYTHONPATH=src", "python3", "-m", "server"], &["src/server.py"], &["src/server.py"]),
        (&["uv", "run", "-m", "server"], &["server/__main__.py"], &["server/__main__.py"]),
        (&["node", "-r", "./hook", "app"], &["hook.js", "app/index.js"], &["app/index.js", "hook.js"]),
        (&["node", "--env-file", ".env", "app"], &["app.js", ".env"], &[".env", "app.js"]),
        (
            &["node", "--import", "pkg/register", "x.js"],
            &["node_modules/pkg/register.mjs", "x.js"],
            &["node_modules/pkg/register.mjs", "x.js"],
        ),
        // A directory after the script is data.
        (&["node", "x.js", "."], &["x.js", "package.json", "index.js"], &["x.js"]),
        (&["npx", "-y", "pkg", "."], &["package.json", "index.js"], &[]),
    ];
    for (words, files, expected) in cases {
        assert_eq!(find_entry_points(words, files), expected, "{words:?}");
    }
}

#[test]
fn directory_options_move_entry_points() {
    let cases: [(&[&str], &[&str], &[&str]); 8] = [
        (&["env", "-C", "app", "python3", "server.py"], &["app/server.py"], &["app/server.py"]),
        (&["env", "--chdir=app", "python3", "-m", "server"], &["app/server.py"], &["app/server.py"]),
        (
            &["uv", "--directory", "app", "run", "server.py"],
            &["app/server.py", "app/uv.toml"],
            &["app/server.py", "app/uv.toml"],
        ),
        (&["npm", "--prefix", "app", "run", "x"], &["app/package.json"], &["app/package.json"]),
        (&["pnpm", "-C", "app", "exec", "x"], &["app/node_modules/.bin/x"], &["app/node_modules/.bin/x"]),
        (&["pnpm", "--dir=app", "exec", "x"], &["app/node_modules/.bin/x"], &["app/node_modules/.bin/x"]),
        (&["yarn", "--cwd", "app", "x"], &["app/package.json"], &["app/package.json"]),
        (&["env", "-Capp", "npm", "--prefix=sub", "run", "x"], &["app/sub/.npmrc"], &["app/sub/.npmrc"]),
    ];
    for (words, files, expected) in cases {
        assert_eq!(find_entry_points(words, files), expected, "{words:?}");
    }
}

#[test]
fn commands_of_packages_are_found_by_their_names() {
    let words: &[&str] = &["npx", "-y", "@scope/server@1.0.0", "."];
    let scoped = r#"node_modules/@scope/server/package.json|{"bin": {"mcp-server": "dist/index.js"}}"#;
    let files = [scoped, "node_modules/@scope/server/dist/index.js", "node_modules/.bin/mcp-server", "package.json"];
    let expected = [
        "node_modules/.bin/mcp-server",
        "node_modules/@scope/server/dist/index.js",
        "node_modules/@scope/server/package.json",
    ];
    assert_eq!(find_entry_points(words, &files), expected);
    // npm's list of packages describes a directory without a description.
    let files = ["node_modules/@scope/server/x", "node_modules/.package-lock.json"];
    assert_eq!(find_entry_points(words, &files), ["node_modules/.package-lock.json"]);
    let own = |text: &str| find_entry_points(words, &[&format!("package.json|{text}"), "own.js"]);
    assert_eq!(own(r#"{"name": "@scope/server", "bin": "own.js"}"#), ["own.js", "package.json"]);
    assert_eq!(own(r#"{"name": "other", "bin": {"server": "./own.js"}}"#), ["own.js", "package.json"]);
    assert_eq!(own(r#"{"name": "other", "bin": {"other": "./own.js"}}"#), [""; 0]);
    let files = [r#"tool/package.json|{"name": "tool", "bin": "./run.js"}"#, "tool/run.js"];
    assert_eq!(find_entry_points(&["npx", "./tool"], &files), ["tool/package.json", "tool/run.js"]);
}

#[test]
fn scripts_of_package_are_followed() {
    let package = r#"package.json|{"scripts": {
        "preserve": "./prepare.sh", "serve": "npm run inner && echo", "inner": "cd app; tsx srv.ts", "other": "./x.sh",
        "loop": "npm run loop", "postserve": "sh -c 'python3 -m after'"}}"#;
    let files =
        [package, "prepare.sh", "app/srv.ts", "x.sh", "after.py", "node_modules/.bin/tsx", "node_modules/.bin/node"];
    let expected = ["after.py", "app/srv.ts", "node_modules/.bin/tsx", "package.json", "prepare.sh"];
    assert_eq!(find_entry_points(&["npm", "run", "serve"], &files), expected);
    assert_eq!(find_entry_points(&["node", "--run", "other"], &files), ["package.json", "x.sh"]);
    assert_eq!(find_entry_points(&["yarn", "loop"], &files), ["package.json"]);
    assert_eq!(find_entry_points(&["npm", "start"], &["server.js"]), ["server.js"]);
    assert_eq!(find_entry_points(&["sh", "-c", "cd app && exec node srv"], &["app/srv.js"]), ["app/srv.js"]);
}

#[test]
fn inspected_scripts_are_limited() {
    let scripts: Vec<String> = (0..100).map(|n| format!(r#""s{n}": "./s{n}.sh && npm run s{}""#, n + 1)).collect();
    let package = format!(r#"package.json|{{"scripts": {{{}}}}}"#, scripts.join(","));
    let files: Vec<String> = (0..100).map(|n| format!("s{n}.sh")).chain([package]).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let found = find_entry_points(&["npm", "run", "s0"], &files);
    assert_eq!(found, ["package.json", "s0.sh", "s1.sh", "s2.sh", "s3.sh"]);
}
