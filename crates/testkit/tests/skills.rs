//! Skills from a server that may lie about them: what is read, when, and what is never given out.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::Digest;
use wharf_client::{CallError, ConnectOptions, Connection, RequestOptions, SkillError, connect, skill_labels};
use wharf_spec::{Environment, StdioSpec};
use wharf_wire::{Skill, SkillFiles};

const HEAD: &str = "---\nname: refunds\ndescription: Pays back.\nlicense: MIT\n---\n# Refunds\n";
const URI: &str = "skill://acme/refunds/SKILL.md";
const FORM: &str = "skill://acme/refunds/forms/a.bin";
const READ: &str = "resources/read skill://acme/refunds/SKILL.md";
const READ_FORM: &str = "resources/read skill://acme/refunds/forms/a.bin";

fn promise(uri: &str, bytes: &[u8]) -> Value {
    let digest: String = sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "uri": uri, "digest": format!("sha256:{digest}"), "size": bytes.len() })
}

fn entry() -> Value {
    json!({
        "uri": URI,
        "frontmatter": { "name": "refunds", "description": "Pays back.", "license": "MIT" },
        "resources": [promise(URI, HEAD.as_bytes()), promise(FORM, b"\0\xff\x01")],
    })
}

/// An honest script.
fn script() -> Value {
    json!({
        "capabilities": { "resources": {}, "extensions": { "io.modelcontextprotocol/skills": {} } },
        "pages": [[entry()]],
        "entries": { URI: entry() },
        "files": {
            URI: [{ "uri": URI, "mimeType": "text/markdown", "text": HEAD }],
            FORM: [{ "uri": FORM, "blob": "AP8B" }],
        },
    })
}

/// A running server and the file its script is in.
struct Server {
    connection: Connection,
    script: PathBuf,
}

impl Server {
    async fn start(name: &str, script: &Value) -> Server {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let path = folder.join(format!("skilld-{}-{name}.json", std::process::id()));
        std::fs::write(&path, script.to_string()).unwrap();
        let program = env!("CARGO_BIN_EXE_skilld").into();
        let spec = StdioSpec { program, args: vec![path.clone().into()], ..StdioSpec::default() };
        let mut options = ConnectOptions::default();
        options.name = name.to_owned();
        options.surroundings = Environment { env: Vec::new(), cwd: folder };
        Server { connection: connect(&spec, options).await.unwrap(), script: path }
    }

    /// What it was asked since it introduced itself.
    async fn log(&self) -> Vec<String> {
        let answer = self.connection.request("skilld/log", None, RequestOptions::default()).await.unwrap();
        let answer: Value = serde_json::from_str(answer.result.as_str()).unwrap();
        let log = answer["log"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned());
        log.filter(|line| !line.starts_with("server/discover")).collect()
    }

    async fn only_skill(&self) -> Skill {
        let mut listing = self.connection.list_skills().await.unwrap();
        assert_eq!((listing.items.len(), listing.withheld.len()), (1, 0));
        listing.items.remove(0)
    }

    async fn end(self) {
        self.connection.close().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.script);
    }
}

#[tokio::test]
async fn skill_files_are_read_on_demand_only() {
    let server = Server::start("lazy", &script()).await;
    let skill = server.only_skill().await;
    assert_eq!(server.connection.get_skill(URI).await.unwrap().raw, skill.raw);
    assert_eq!(server.log().await, ["skills/list", &format!("skills/get {URI}")]);

    let loaded = server.connection.load_skill(&skill).await.unwrap();
    assert_eq!((loaded.text.as_str(), loaded.server.as_str(), loaded.is_verified()), (HEAD, "lazy", true));
    assert_eq!(server.log().await[2..], [READ]);

    let form = server.connection.read_skill_file(&loaded, "forms/a.bin").await.unwrap();
    assert_eq!(form.bytes, b"\0\xff\x01");
    assert_eq!(server.log().await[2..], [READ, READ_FORM]);
    server.end().await;
}

#[tokio::test]
async fn undeclared_skills_are_not_requested() {
    for (name, extensions) in [("none", json!({})), ("null", json!({ "io.modelcontextprotocol/skills": null }))] {
        let mut script = script();
        script["capabilities"]["extensions"] = extensions;
        let server = Server::start(&format!("undeclared-{name}"), &script).await;
        let listed = server.connection.list_skills().await;
        assert!(matches!(listed, Err(CallError::Unsupported("skills"))), "{name}");
        assert!(matches!(server.connection.get_skill(URI).await, Err(CallError::Unsupported("skills"))), "{name}");
        assert!(server.log().await.is_empty(), "{name}");
        server.end().await;
    }
}

/// Loads the only skill of a spoilt script and gives the error. It takes one look at `SKILL.md`, and no further.
async fn failure(name: &str, script: &Value) -> SkillError {
    let server = Server::start(name, script).await;
    let skill = server.only_skill().await;
    let error = server.connection.load_skill(&skill).await.unwrap_err();
    assert_eq!(server.log().await, ["skills/list", READ], "{name}");
    server.end().await;
    error
}

async fn check_failure(name: &str, script: &Value, expected: &str) {
    let message = failure(name, script).await.to_string();
    assert!(message.contains(expected), "{name}: {message}");
    assert!(!message.contains('\u{1b}') && message.len() < 600, "{name}: {message}");
}

#[tokio::test]
async fn file_not_matching_its_entry_is_rejected() {
    let text = |text: &str| json!({ "uri": URI, "text": text });
    let blob = |blob: &str| json!({ "uri": URI, "blob": blob });
    for (name, contents, expected) in [
        ("digest", json!([text(&HEAD.replace("back", "bacK"))]), "its entry: digest of"),
        ("size", json!([text(&format!("{HEAD} "))]), "is 70, expected 69"),
        ("oversized", json!([blob(&"A".repeat(4 << 20))]), "is at least 3145726, expected 69"),
        ("none", json!([]), "expected one content item, got 0"),
        ("two", json!([text(HEAD), text(HEAD)]), "expected one content item, got 2"),
        ("elsewhere", json!([{ "uri": "\u{1b}[2J", "text": HEAD }]), "result is for `\\u{1b}[2J` instead"),
        ("both", json!([{ "uri": URI, "text": HEAD, "blob": "" }]), "either text or blob"),
        ("neither", json!([{ "uri": URI }]), "either text or blob"),
        ("no-base64", json!([blob("AP8")]), "cannot be used"),
    ] {
        let mut script = script();
        script["files"][URI] = contents;
        check_failure(&format!("served-{name}"), &script, expected).await;
    }
    let mut script = script();
    script["files"] = json!({});
    check_failure("served-nothing", &script, "server returned an error").await;
}

#[tokio::test]
async fn entry_not_matching_its_file_is_rejected() {
    let digest = format!("sha256:{}", "00".repeat(32));
    for (name, at, value, expected) in [
        ("digest", "/resources/0/digest", json!(digest), "its entry: digest of"),
        ("size", "/resources/0/size", json!(68), "is 69, expected 68"),
        ("nicer", "/frontmatter/description", json!("\u{1b}[2J"), "is \"Pays back.\", expected \""),
        ("more", "/frontmatter/allowed-tools", json!("Bash"), "is absent, expected \"Bash\""),
        ("typed", "/frontmatter/license", json!(["MIT"]), "is \"MIT\", expected [\"MIT\"]"),
        ("endless", "/frontmatter/license", json!("x".repeat(100_000)), "xxx…"),
    ] {
        let mut script = script();
        set(&mut script, &format!("/pages/0/0{at}"), value);
        check_failure(&format!("promised-{name}"), &script, expected).await;
    }
}

/// Digest and size agree with what is served; the entry merely keeps quiet about a part of the front matter.
#[tokio::test]
async fn front_matter_field_missing_in_the_entry_is_detected() {
    let text = HEAD.replace("license: MIT", "allowed-tools: Bash");
    let mut script = script();
    script["files"][URI] = json!([{ "uri": URI, "text": text }]);
    script["pages"][0][0]["resources"] = json!([promise(URI, text.as_bytes())]);
    script["pages"][0][0]["frontmatter"] = json!({ "name": "refunds", "description": "Pays back." });
    check_failure("hidden", &script, "front matter field `allowed-tools`").await;
    for (name, text) in [("headless", "# Refunds\n"), ("bomb", "---\na: &a [x]\nb: [*a, *a]\n---\n")] {
        script["files"][URI] = json!([{ "uri": URI, "text": text }]);
        script["pages"][0][0]["resources"] = json!([promise(URI, text.as_bytes())]);
        check_failure(name, &script, "cannot be used: front matter: ").await;
    }
    script["files"][URI] = json!([{ "uri": URI, "blob": "/w==" }]);
    script["pages"][0][0]["resources"] = json!([promise(URI, b"\xff")]);
    check_failure("no-text", &script, "not valid UTF-8").await;
}

fn set(script: &mut Value, at: &str, value: Value) {
    let (parent, key) = at.rsplit_once('/').unwrap();
    script.pointer_mut(parent).unwrap()[key] = value;
}

#[tokio::test]
async fn limits_are_checked_before_reading() {
    let filler = |count: usize, size: u64| {
        let digest = format!("sha256:{}", "00".repeat(32));
        let file = |n| json!({ "uri": format!("skill://acme/refunds/{n}"), "digest": digest, "size": size });
        let mut files: Vec<Value> = (1..count).map(file).collect();
        files.push(promise(URI, HEAD.as_bytes()));
        json!(files)
    };
    let rest = (16 << 20) - HEAD.len() as u64;
    for (name, resources, expected) in [
        ("most-files", filler(512, 0), None),
        ("too-many-files", filler(513, 0), Some("513 files, the limit is 512")),
        ("thousand-files", filler(1_000, 0), Some("1000 files, the limit is 512")),
        ("most-bytes", filler(2, rest), None),
        ("too-many-bytes", filler(2, rest + 1), Some("larger than 16777216 bytes")),
        ("overflow", filler(3, u64::MAX), Some("larger than 16777216 bytes")),
    ] {
        let mut script = script();
        script["pages"][0][0]["resources"] = resources;
        let server = Server::start(name, &script).await;
        let skill = server.only_skill().await;
        let loaded = server.connection.load_skill(&skill).await;
        let reads = server.log().await.len() - 1;
        match expected {
            None => assert!(loaded.is_ok() && reads == 1, "{name}: {loaded:?}"),
            Some(expected) => {
                assert!(loaded.unwrap_err().to_string().contains(expected) && reads == 0, "{name}");
            }
        }
        server.end().await;
    }
    // An entry that is too large for a list does not even become a skill.
    let mut script = script();
    script["pages"][0][0]["resources"] = filler(10_000, 0);
    let server = Server::start("ten-thousand-files", &script).await;
    let listing = server.connection.list_skills().await.unwrap();
    assert_eq!((listing.items.len(), server.log().await.len()), (0, 1));
    assert!(listing.withheld[0].reason.starts_with("definition too large ("), "{:?}", listing.withheld[0].reason);
    server.end().await;
}

#[tokio::test]
async fn malformed_entries_are_withheld_and_oversized_list_fails() {
    let spoilt = |at: &str, value: Value| {
        let mut entry = json!({ "entry": entry() });
        set(&mut entry, &format!("/entry{at}"), value);
        entry["entry"].take()
    };
    let mut twin = entry();
    let text = twin.to_string().replace("acme/refunds", "other/refunds");
    twin = serde_json::from_str(&text).unwrap();
    let mut honest = script();
    honest["pages"] = json!([
        [spoilt("/resources/1/uri", json!("skill://acme/refunds/../x")), entry()],
        [],
        [spoilt("/resources/0/uri", json!("skill://acme/refunds/x")), spoilt("/resources", json!("some")), twin, 7],
    ]);
    let server = Server::start("malformed", &honest).await;
    let listing = server.connection.list_skills().await.unwrap();
    assert_eq!(skill_labels(&listing.items), ["acme/refunds", "other/refunds"]);
    let reasons: Vec<_> = listing.withheld.iter().map(|item| (item.position, item.reason.as_str())).collect();
    assert_eq!(reasons.iter().map(|(position, _)| *position).collect::<Vec<_>>(), [0, 2, 3, 5]);
    assert!(
        reasons[0].1.contains("outside the skill's directory") && reasons[1].1.contains("SKILL.md is missing from"),
        "{reasons:?}"
    );
    server.end().await;

    let page: Vec<Value> = (0..500).map(|_| entry()).collect();
    let mut endless = script();
    endless["pages"] = json!(vec![page; 20]);
    let server = Server::start("ten-thousand", &endless).await;
    let error = server.connection.list_skills().await.unwrap_err();
    assert!(matches!(error, CallError::Listing { what: "skills", .. }), "{error}");
    assert!(server.log().await.iter().all(|line| line == "skills/list"));
    server.end().await;
}

#[tokio::test]
async fn skill_fetched_by_uri_must_match_the_request() {
    let mut script = script();
    script["entries"]["skill://x/y/SKILL.md"] = entry();
    script["entries"]["skill://x/z/SKILL.md"] = json!({ "uri": "skill://x/z/SKILL.md" });
    let server = Server::start("by-address", &script).await;
    for (uri, expected) in [
        ("skill://x/y/SKILL.md", "a different skill"),
        ("skill://x/z/SKILL.md", "missing field `frontmatter`"),
        ("skill://x/none/SKILL.md", "nothing at"),
    ] {
        let error = server.connection.get_skill(uri).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{uri}: {error}");
    }
    server.end().await;
}

#[tokio::test]
async fn only_own_files_are_read_from_the_own_server() {
    let server = Server::start("own", &script()).await;
    let loaded = server.connection.load_skill(&server.only_skill().await).await.unwrap();
    for path in ["forms/b.bin", "../refunds/SKILL.md", "", FORM, "forms/../SKILL.md"] {
        let error = server.connection.read_skill_file(&loaded, path).await.unwrap_err();
        assert!(matches!(error, SkillError::Unlisted { .. }) && error.is_mismatch(), "{path}: {error}");
    }
    assert_eq!(server.log().await, ["skills/list", READ]);

    let stranger = Server::start("stranger", &script()).await;
    let error = stranger.connection.read_skill_file(&loaded, "forms/a.bin").await.unwrap_err();
    assert!(matches!(error, SkillError::OtherServer { .. }), "{error}");
    assert!(stranger.log().await.is_empty());
    stranger.end().await;
    server.end().await;
}

#[tokio::test]
async fn dynamic_skill_is_unverified_and_size_checked_on_read() {
    let big = "skill://acme/refunds/big";
    let mut script = script();
    script["pages"][0][0]["resources"] = json!("dynamic");
    script["files"][big] = json!([{ "uri": big, "text": "x".repeat(6 << 20) }]);
    let server = Server::start("dynamic", &script).await;
    let skill = server.only_skill().await;
    assert_eq!(skill.files, SkillFiles::Dynamic);
    let loaded = server.connection.load_skill(&skill).await.unwrap();
    assert!(!loaded.is_verified());
    for path in ["../x", "%2e%2e/x", "", "a//b", "a?b"] {
        let error = server.connection.read_skill_file(&loaded, path).await.unwrap_err();
        assert!(matches!(error, SkillError::Unlisted { .. }), "{path}: {error}");
    }
    assert_eq!(server.log().await, ["skills/list", READ]);
    for _ in 0..2 {
        assert_eq!(server.connection.read_skill_file(&loaded, "big").await.unwrap().bytes.len(), 6 << 20);
    }
    let error = server.connection.read_skill_file(&loaded, "big").await.unwrap_err();
    assert!(matches!(error, SkillError::TooLarge { .. }), "{error}");
    server.end().await;

    script["files"][URI] = json!([{ "uri": URI, "text": HEAD.replace("Pays", "Takes") }]);
    let error = failure("dynamic-changed", &script).await;
    assert!(error.is_mismatch() && error.to_string().contains("`description`"), "{error}");
}

#[tokio::test]
async fn supporting_file_is_verified() {
    let mut script = script();
    script["files"][FORM] = json!([{ "uri": FORM, "blob": "AP8C" }]);
    let server = Server::start("supporting", &script).await;
    let loaded = server.connection.load_skill(&server.only_skill().await).await.unwrap();
    let error = server.connection.read_skill_file(&loaded, "forms/a.bin").await.unwrap_err();
    assert!(error.is_mismatch() && error.to_string().contains("its entry: digest of"), "{error}");
    server.end().await;
}
