//! Tests of the vaults, on disk and with a keyring that can fail.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::client::{ClientOrigin, TokenEndpointAuth};

const FILE: &str = "mcp-auth.json";

fn key(server: &str, account: &str) -> AccountKey {
    AccountKey { server: server.to_owned(), account: account.to_owned() }
}

fn kept(issuer: &str, access: &str) -> StoredLogin {
    StoredLogin {
        issuer: issuer.to_owned(),
        url: "https://mcp.example/mcp".to_owned(),
        resource: Some("https://mcp.example".to_owned()),
        tokens: Some(TokenSet {
            access: Secret::new(access),
            refresh: Some(Secret::new(format!("{access}-refresh"))),
            expires_at: Some(1_800_000_000_000),
            token_type: "Bearer".to_owned(),
            scope: Some("a b".to_owned()),
        }),
        client: OAuthClient {
            id: "client".to_owned(),
            secret: Some(Secret::new("client-secret")),
            proof: TokenEndpointAuth::ClientSecretPost,
            origin: ClientOrigin::Registered,
            expires_at: Some(1_900_000_000_000),
        },
        token_endpoint: "https://as.example/token".to_owned(),
        revocation_endpoint: Some("https://as.example/revoke".to_owned()),
        asked: Some("a b c".to_owned()),
        dpop_key: Some(Secret::new("key")),
        renewed_at: 1_700_000_000_000,
        last_error: Some("none".to_owned()),
    }
}

fn in_file(folder: &TempDir) -> FileVault {
    FileVault::new(folder.path().join(FILE))
}

fn content(folder: &TempDir) -> Value {
    serde_json::from_slice(&fs::read(folder.path().join(FILE)).unwrap()).unwrap()
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn stored_logins_round_trip() {
    let folder = TempDir::new().unwrap();
    let in_keyring = KeyringVault::new(Arc::new(FakeKeyring::default()), folder.path().join("index.json"));
    let bare = StoredLogin { tokens: None, resource: None, dpop_key: None, asked: None, ..kept("", "x") };
    for vault in [&in_file(&folder) as &dyn Vault, &in_keyring] {
        assert_eq!(vault.load(&key("s", "")).unwrap(), None);
        for (account, kept) in [("", kept("https://as.example", "one")), ("work", bare.clone())] {
            vault.save(&key("s", account), &kept).unwrap();
            assert_eq!(vault.load(&key("s", account)).unwrap(), Some(kept));
        }
        assert_eq!(vault.keys().unwrap(), [key("s", ""), key("s", "work")]);
        assert!(vault.remove(&key("s", "")).unwrap());
        assert!(!vault.remove(&key("s", "")).unwrap());
        assert_eq!((vault.load(&key("s", "")).unwrap(), vault.keys().unwrap()), (None, vec![key("s", "work")]));
    }
}

#[test]
fn load_all_returns_the_logins_of_every_issuer() {
    let folder = TempDir::new().unwrap();
    let in_keyring = KeyringVault::new(Arc::new(FakeKeyring::default()), folder.path().join("index.json"));
    let in_memory = MemoryVault::default();
    for vault in [&in_file(&folder) as &dyn Vault, &in_keyring, &in_memory] {
        assert_eq!(vault.load_all(&key("s", "")).unwrap(), []);
        for issuer in ["a", "b"] {
            vault.save(&key("s", ""), &kept(issuer, "t")).unwrap();
        }
        assert_eq!(vault.load_all(&key("s", "")).unwrap(), [kept("a", "t"), kept("b", "t")]);
    }
}

#[test]
fn t45_each_issuer_has_its_own_login_and_one_is_current() {
    let folder = TempDir::new().unwrap();
    let vault = in_file(&folder);
    let (old, new) = (kept("https://old.example", "old"), kept("https://old.example/", "new"));
    vault.save(&key("s", ""), &old).unwrap();
    vault.save(&key("s", ""), &new).unwrap();
    assert_eq!(vault.load(&key("s", "")).unwrap(), Some(new));
    assert_eq!(vault.load_for_issuer(&key("s", ""), "https://old.example").unwrap(), Some(old));
    assert_eq!(vault.load_for_issuer(&key("s", ""), "https://other.example").unwrap(), None);
}

#[test]
fn flat_file_is_read_and_rewritten() {
    let folder = TempDir::new().unwrap();
    let flat = json!({"version": 1, "servers": {"s": {
        "access_token": "a", "refresh_token": "r", "expires_at": 1.8e12, "token_type": "bearer", "scope": "x",
        "client_id": "c", "client_secret": "d", "theirs": [1],
    }, "t": {"access_token": "other"}}});
    write_private(&folder, flat.to_string().as_bytes());
    let vault = in_file(&folder);
    let mut found = vault.load(&key("s", "")).unwrap().unwrap();
    let tokens = found.tokens.clone().unwrap();
    assert_eq!(
        (found.issuer.as_str(), found.client.id.as_str(), found.client.proof),
        ("", "c", TokenEndpointAuth::ClientSecretBasic)
    );
    assert_eq!((tokens.access.reveal(), tokens.refresh.unwrap().reveal()), ("a", "r"));
    assert_eq!((tokens.expires_at, tokens.scope.as_deref()), (Some(1_800_000_000_000), Some("x")));
    assert_eq!(vault.keys().unwrap(), [key("s", ""), key("t", "")]);

    found.issuer = "https://as.example".to_owned();
    vault.save(&key("s", ""), &found).unwrap();
    let content = content(&folder);
    let issuers = &content["servers"]["s"]["accounts"][""]["issuers"];
    assert_eq!(issuers.as_object().unwrap().len(), 1);
    assert_eq!(issuers["https://as.example"]["theirs"], json!([1]));
    assert_eq!(content["servers"]["t"], json!({"access_token": "other"}));
    assert_eq!(names(&folder), [FILE]);
}

#[test]
fn unknown_members_are_preserved_at_every_level() {
    let folder = TempDir::new().unwrap();
    let text = json!({"version": 1, "x": 1, "servers": {"s": {"x": 2, "accounts": {"": {
        "x": 3, "current": "i", "issuers": {"i": {"x": 4, "access_token": "a"}},
    }}}}});
    write_private(&folder, text.to_string().as_bytes());
    let vault = in_file(&folder);
    vault.save(&key("s", ""), &kept("i", "b")).unwrap();
    let content = content(&folder);
    for (pointer, expected) in
        [("/x", 1), ("/servers/s/x", 2), ("/servers/s/accounts//x", 3), ("/servers/s/accounts//issuers/i/x", 4)]
    {
        assert_eq!(content.pointer(pointer), Some(&json!(expected)), "{pointer}");
    }
}

fn write_private(folder: &TempDir, bytes: &[u8]) {
    let path = folder.path().join(FILE);
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn o13_damaged_file_is_an_error_and_backed_up_on_save() {
    let cases: [&[u8]; 8] = [
        b"",
        b"{\"version\":1,\"servers\":{\"s\":{\"acc",
        b"\xff\xfe\x00",
        b"[]",
        br#"{"version":"one"}"#,
        br#"{"version":1,"servers":[]}"#,
        br#"{"version":1,"servers":{"s":7}}"#,
        br#"{"version":1,"servers":{"s":{"accounts":{"":{"current":"i","issuers":{"i":{"access_token":7}}}}}}}"#,
    ];
    for bytes in cases {
        let folder = TempDir::new().unwrap();
        write_private(&folder, bytes);
        let vault = in_file(&folder);
        let shown = String::from_utf8_lossy(bytes);
        assert!(matches!(vault.load(&key("s", "")), Err(VaultError::Damaged { .. })), "{shown}");
        assert_eq!(names(&folder), [FILE], "reading moves nothing: {shown}");
        let new = kept("i", "new");
        vault.save(&key("s", ""), &new).unwrap();
        assert_eq!(vault.load(&key("s", "")).unwrap(), Some(new), "{shown}");
        let aside = folder.path().join("mcp-auth.json.damaged-1");
        assert_eq!((fs::read(&aside).unwrap().as_slice(), mode(&aside)), (bytes, 0o600), "{shown}");
        assert_eq!(names(&folder).len(), 2, "{shown}");
    }
}

#[test]
fn o13_each_damaged_file_has_its_own_backup() {
    let folder = TempDir::new().unwrap();
    for number in 1..=3 {
        write_private(&folder, format!("damage {number}").as_bytes());
        in_file(&folder).save(&key("s", ""), &kept("i", "new")).unwrap();
    }
    let read = |number: u32| fs::read_to_string(folder.path().join(format!("{FILE}.damaged-{number}"))).unwrap();
    assert_eq!([read(1), read(2), read(3)], ["damage 1", "damage 2", "damage 3"]);
}

#[test]
fn o13_newer_version_is_not_modified() {
    let folder = TempDir::new().unwrap();
    let text = br#"{"version":2,"servers":{"s":{"access_token":"a"}}}"#;
    write_private(&folder, text);
    let vault = in_file(&folder);
    assert!(matches!(vault.load(&key("s", "")), Err(VaultError::Unusable { .. })));
    assert!(matches!(vault.save(&key("s", ""), &kept("i", "b")), Err(VaultError::Unusable { .. })));
    assert!(matches!(vault.remove(&key("s", "")), Err(VaultError::Unusable { .. })));
    assert_eq!((fs::read(folder.path().join(FILE)).unwrap().as_slice(), names(&folder).len()), (&text[..], 1));
}

#[test]
fn o13_errors_do_not_contain_file_contents() {
    let canary = "canary-7f3a";
    for text in [
        format!(r#"{{"version":1,"servers":{{"s":{{"access_token":["{canary}"]}}}}}}"#),
        format!(r#"{{"version":"{canary}"}}"#),
        format!(r#"{{"{canary}": {canary}"#),
    ] {
        let folder = TempDir::new().unwrap();
        write_private(&folder, text.as_bytes());
        let error = in_file(&folder).load(&key("s", "")).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(canary), "{error:?}");
    }
}

#[test]
fn t46_file_is_private_and_insecure_files_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new/below").join(FILE);
    let vault = FileVault::new(&path);
    vault.save(&key("s", ""), &kept("i", "a")).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let refused = |what: &str| {
        let error = vault.load(&key("s", "")).unwrap_err();
        assert!(matches!(&error, VaultError::Unusable { fix: Some(_), .. }), "{what}: {error:?}");
        let error = vault.save(&key("s", ""), &kept("i", "b")).unwrap_err();
        assert!(matches!(&error, VaultError::Unusable { fix: Some(_), .. }), "{what}: {error:?}");
    };
    for exposed in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(exposed)).unwrap();
        refused(&format!("mode {exposed:o}"));
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let other = folder.path().join("other");
    fs::hard_link(&path, &other).unwrap();
    refused("hard link");
    fs::remove_file(&path).unwrap();
    let before = fs::read(&other).unwrap();
    symlink(&other, &path).unwrap();
    refused("symbolic link");
    assert_eq!(fs::read(&other).unwrap(), before);
    fs::remove_file(&path).unwrap();
    fs::copy(&other, &path).unwrap();
    for above in [path.parent().unwrap(), path.parent().unwrap().parent().unwrap()] {
        fs::set_permissions(above, fs::Permissions::from_mode(0o777)).unwrap();
        refused("a directory that others can write in");
        fs::set_permissions(above, fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert!(vault.load(&key("s", "")).unwrap().is_some());
}

#[test]
fn account_count_and_file_size_are_limited() {
    let folder = TempDir::new().unwrap();
    let accounts: Value = (0..1000).map(|number| (number.to_string(), json!({"in_keyring": true}))).collect();
    write_private(&folder, json!({"version": 1, "servers": {"s": {"accounts": accounts}}}).to_string().as_bytes());
    let vault = in_file(&folder);
    assert!(matches!(vault.save(&key("s", "more"), &kept("i", "a")), Err(VaultError::Unusable { .. })));
    vault.save(&key("s", "7"), &kept("i", "a")).unwrap();
    write_private(&folder, &vec![b' '; (1 << 20) + 1]);
    assert!(matches!(vault.load(&key("s", "7")), Err(VaultError::Unusable { .. })));
}

#[test]
fn o06_unavailable_lock_is_an_error() {
    let folder = TempDir::new().unwrap();
    let vault = FileVault::new(folder.path().join("below").join(FILE));
    let max_wait = Duration::from_millis(20);
    let held = vault.lock(&key("s", ""), max_wait).unwrap();
    assert!(matches!(vault.lock(&key("s", ""), max_wait), Err(VaultError::Locked(_))));
    let other = vault.lock(&key("s", "other"), max_wait).unwrap();
    drop((held, other));
    drop(vault.lock(&key("s", ""), max_wait).unwrap());
    assert_eq!(fs::read_dir(folder.path().join("below")).unwrap().count(), 0);
    // As on a file system without locks: an immediate error, without the timeout.
    let name = {
        let _held = vault.lock(&key("s", ""), max_wait).unwrap();
        fs::read_dir(folder.path().join("below")).unwrap().next().unwrap().unwrap().path()
    };
    fs::create_dir(&name).unwrap();
    let began = Instant::now();
    assert!(matches!(vault.lock(&key("s", ""), Duration::from_secs(60)), Err(VaultError::Unusable { .. })));
    assert!(began.elapsed() < Duration::from_secs(30));
}

/// A keyring in memory.
#[derive(Default)]
struct FakeKeyring {
    values: Mutex<BTreeMap<String, String>>,
    trouble: Mutex<Option<&'static str>>,
}

impl FakeKeyring {
    fn in_trouble(what: &'static str) -> Self {
        Self { trouble: Mutex::new(Some(what)), ..Self::default() }
    }

    fn check(&self) -> Result<(), KeyringError> {
        let trouble = *self.trouble.lock().unwrap();
        trouble.map_or(Ok(()), |what| Err(KeyringError(what.to_owned())))
    }
}

impl Keyring for FakeKeyring {
    fn lookup(&self, name: &str) -> Result<Option<Secret>, KeyringError> {
        self.check()?;
        Ok(self.values.lock().unwrap().get(name).map(Secret::new))
    }

    fn set(&self, name: &str, value: &Secret) -> Result<(), KeyringError> {
        self.check()?;
        self.values.lock().unwrap().insert(name.to_owned(), value.reveal().to_owned());
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<bool, KeyringError> {
        self.check()?;
        Ok(self.values.lock().unwrap().remove(name).is_some())
    }
}

#[test]
fn o12_keyring_failure_never_falls_back_to_plain_text() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(FILE);
    let keyring = Arc::new(FakeKeyring::default());
    let vault = open_vault(VaultChoice::Keyring, &path, Some(keyring.clone())).unwrap();
    vault.save(&key("https://a:1", "b:c"), &kept("i", "token-in-keyring")).unwrap();
    for trouble in ["locked", "no answer within 30 s", "the value is too large"] {
        *keyring.trouble.lock().unwrap() = Some(trouble);
        let usual = key("https://a:1", "b:c");
        for error in [
            vault.load(&usual).unwrap_err(),
            vault.save(&usual, &kept("i", "token-later")).unwrap_err(),
            vault.remove(&usual).unwrap_err(),
        ] {
            assert!(matches!(&error, VaultError::Unusable { fix: Some(_), .. }), "{trouble}: {error:?}");
        }
        // Opened while the keyring does not work: logins in it are not forgotten.
        let instead = open_vault(VaultChoice::Auto, &path, Some(keyring.clone())).unwrap();
        let error = instead.load(&usual).unwrap_err();
        assert!(matches!(error, VaultError::Elsewhere { .. }) && error.fix().is_some(), "{trouble}: {error:?}");
    }
    *keyring.trouble.lock().unwrap() = None;
    assert!(vault.load(&key("https://a:1", "b:c")).unwrap().is_some());
    assert!(!fs::read_to_string(&path).unwrap().contains("token"));
    let names: Vec<_> = keyring.values.lock().unwrap().keys().cloned().collect();
    let [name] = &names[..] else { panic!("{names:?}") };
    let digits = name.strip_prefix("mcp-auth:").unwrap();
    assert!(digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{name} tells nothing");
}

#[test]
fn o12_files_do_not_share_keyring_entries() {
    let folder = TempDir::new().unwrap();
    let keyring = Arc::new(FakeKeyring::default());
    let vaults = ["one.json", "two.json"].map(|name| KeyringVault::new(keyring.clone(), folder.path().join(name)));
    for (vault, token) in vaults.iter().zip(["first", "second"]) {
        vault.save(&key("s", ""), &kept("i", token)).unwrap();
    }
    assert_eq!(vaults[0].load(&key("s", "")).unwrap(), Some(kept("i", "first")));
    assert!(vaults[1].remove(&key("s", "")).unwrap());
    assert!(vaults[0].load(&key("s", "")).unwrap().is_some());
}

#[test]
fn o12_login_in_unused_keyring_is_deleted_and_replaced() {
    let folder = TempDir::new().unwrap();
    let keyring = Arc::new(FakeKeyring::default());
    let vault = KeyringVault::new(keyring.clone(), folder.path().join(FILE));
    let (usual, file) = (key("s", ""), in_file(&folder));
    vault.save(&usual, &kept("i", "in-keyring")).unwrap();
    assert!(matches!(file.load_all(&usual), Err(VaultError::Elsewhere { .. })));
    assert!(file.remove(&usual).unwrap());
    assert_eq!((file.load(&usual).unwrap(), file.keys().unwrap().len()), (None, 0));
    assert_eq!(keyring.values.lock().unwrap().len(), 1);
    vault.save(&usual, &kept("i", "in-keyring")).unwrap();
    file.save(&usual, &kept("i", "in-file")).unwrap();
    assert_eq!(file.load(&usual).unwrap(), Some(kept("i", "in-file")));
}

#[test]
fn o12_vault_choice_determines_the_location() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(FILE);
    let file = format!("the file `{}`", path.display());
    let works = || Some(Arc::new(FakeKeyring::default()) as Arc<dyn Keyring>);
    let fails = || Some(Arc::new(FakeKeyring::in_trouble("locked")) as Arc<dyn Keyring>);
    let in_keyring = "the system's keyring".to_owned();
    for (choice, keyring, expected) in [
        (VaultChoice::Auto, works(), Some(&in_keyring)),
        (VaultChoice::Auto, fails(), Some(&file)),
        (VaultChoice::Auto, None, Some(&file)),
        (VaultChoice::File, works(), Some(&file)),
        (VaultChoice::Keyring, works(), Some(&in_keyring)),
        (VaultChoice::Keyring, fails(), None),
        (VaultChoice::Keyring, None, None),
    ] {
        let opened = open_vault(choice, &path, keyring).map(|vault| vault.location());
        assert_eq!(opened.as_ref().ok(), expected, "{choice:?}");
    }
    assert_eq!(names(&folder), [""; 0], "opening makes nothing");
}

#[test]
fn login_moves_from_file_to_keyring_on_save() {
    let folder = TempDir::new().unwrap();
    in_file(&folder).save(&key("s", ""), &kept("i", "plain")).unwrap();
    let keyring = Arc::new(FakeKeyring::default());
    let vault = KeyringVault::new(keyring.clone(), folder.path().join(FILE));
    let found = vault.load(&key("s", "")).unwrap().unwrap();
    vault.save(&key("s", ""), &found).unwrap();
    assert_eq!(vault.load(&key("s", "")).unwrap(), Some(found));
    assert_eq!(content(&folder)["servers"]["s"]["accounts"][""], json!({"in_keyring": true}));
}
