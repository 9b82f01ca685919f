//! Files that change while somebody watches them.

use std::sync::Arc;
use std::time::Duration;

use wharf_config::{Config, ConfigReader, ConfigWatcher, TransportDefinition};

use crate::support::{ConfigHome, told};

/// Long enough to fail by, on any machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn server(name: &str, program: &str) -> String {
    format!(r#"{{"mcpServers": {{"{name}": {{"command": "{program}"}}}}}}"#)
}

fn reader(home: &ConfigHome) -> ConfigReader {
    ConfigReader::new(home.places.clone(), home.around.clone())
}

fn watch(reader: ConfigReader) -> ConfigWatcher {
    ConfigWatcher::new(reader).with_intervals(Duration::from_millis(5), Duration::from_millis(20))
}

async fn next(watch: &mut ConfigWatcher) -> Arc<Config> {
    tokio::time::timeout(PATIENCE, watch.next_change()).await.unwrap()
}

#[track_caller]
fn check(config: &Config, names: &[&str], problems: &[&str]) {
    let found: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(
        (found, told(&config.problems)),
        (names.to_vec(), problems.iter().map(|text| text.to_string()).collect())
    );
}

#[tokio::test]
async fn written_replaced_and_new_files_are_reloaded() {
    let home = ConfigHome::new();
    home.write("home/config.json", &server("one", "a"));
    let mut watch = watch(reader(&home));
    check(watch.config(), &["one"], &[]);
    home.write("home/config.json", &server("two", "a"));
    check(&*next(&mut watch).await, &["two"], &[]);
    let beside = home.write("home/new.json", &server("three", "a"));
    std::fs::rename(beside, home.path("home/config.json")).unwrap();
    check(&*next(&mut watch).await, &["three"], &[]);
    // Of a directory that was not there.
    home.write("project/.wharf/config.json", &server("four", "a"));
    check(&*next(&mut watch).await, &["four", "three"], &[]);
}

/// C16, C17: a file nobody can read costs nothing of what it said before, and is told of.
#[tokio::test]
async fn unreadable_file_preserves_its_last_content() {
    let home = ConfigHome::new();
    home.write("home/config.json", &server("one", "a"));
    home.write("home/.mcp.json", &server("two", "a"));
    let mut watch = watch(reader(&home));
    // Half saved, then empty, then gone; the other file is read as ever.
    home.write("home/config.json", &server("one", "b")[..20]);
    check(&*next(&mut watch).await, &["one", "two"], &["unreadable 1:17"]);
    home.write("home/config.json", "");
    check(&*next(&mut watch).await, &["one", "two"], &["unreadable 1:1"]);
    home.write("home/.mcp.json", &server("three", "a"));
    check(&*next(&mut watch).await, &["one", "three"], &["unreadable 1:1"]);
    std::fs::remove_file(home.path("home/config.json")).unwrap();
    let config = next(&mut watch).await;
    check(&config, &["one", "three"], &["file_gone 1:1"]);
    assert!(config.problems[0].text.contains("using its last valid content"));
    home.write("home/config.json", &server("one", "b"));
    let config = next(&mut watch).await;
    check(&config, &["one", "three"], &[]);
    let program = config.server("one").unwrap().described.as_ref().map(|described| &described.reach);
    assert!(matches!(program, Ok(TransportDefinition::Stdio(stdio)) if stdio.command.value == "b"), "{program:?}");
}

/// Whoever reads by hand knows what the watch has seen, and the watch what was read by hand.
#[tokio::test]
async fn clones_of_a_reader_share_the_last_content() {
    let home = ConfigHome::new();
    home.write("home/config.json", &server("one", "a"));
    let reader = reader(&home);
    let mut watch = watch(reader.clone());
    home.write("home/config.json", &server("two", "a"));
    check(&*next(&mut watch).await, &["two"], &[]);
    home.write("home/config.json", "{");
    check(&reader.read(), &["two"], &["unreadable 1:1"]);
    home.write("home/config.json", &server("three", "a"));
    check(&reader.read(), &["three"], &[]);
    home.write("home/config.json", "{");
    check(&*next(&mut watch).await, &["three"], &["unreadable 1:1"]);
}

#[test]
fn explicit_reload_forgets_removed_files() {
    let home = ConfigHome::new();
    let file = home.write("home/config.json", &server("one", "a"));
    let reader = reader(&home);
    check(&reader.read(), &["one"], &[]);
    home.write("home/config.json", "{");
    check(&reader.reload(), &["one"], &["unreadable 1:1"]);
    std::fs::remove_file(file).unwrap();
    check(&reader.read(), &["one"], &["file_gone 1:1"]);
    check(&reader.reload(), &[], &[]);
    check(&reader.read(), &[], &[]);
}

/// `wharf remove` deletes an emptied file of the project with its directory; an editor that saves deletes the file alone.
#[test]
fn project_file_removed_with_its_directory_is_forgotten() {
    let home = ConfigHome::new();
    let file = home.write("project/.wharf/config.json", &server("one", "a"));
    let reader = reader(&home);
    check(&reader.read(), &["one"], &[]);
    std::fs::remove_file(&file).unwrap();
    check(&reader.read(), &["one"], &["file_gone 1:1"]);
    std::fs::remove_dir(file.parent().unwrap()).unwrap();
    check(&reader.read(), &[], &[]);
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    check(&reader.read(), &[], &[]);
}
