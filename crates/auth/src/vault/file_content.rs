//! The content of the private file. Does no I/O. Unknown members are preserved.
//!
//! `{"version": 1, "servers": {ID: {"accounts": {NAME: {"current": ISSUER, "issuers": {ISSUER: {…}}}}}}}`. An account
//! in the keyring has `"in_keyring": true` here and its logins there. The flat form, with the members of a login
//! directly in the server object, is read as the default account at an unknown issuer.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{AccountKey, StoredLogin, VaultError, record};

const FORMAT_VERSION: u64 = 1;
/// Maximum number of accounts.
const MAX_ACCOUNTS: usize = 1000;
/// Members that identify a server entry in the flat form.
const FLAT_FORM_MEMBERS: [&str; 3] = ["access_token", "refresh_token", "client_id"];

/// The whole file.
#[derive(Debug)]
pub(super) struct LoginFileContent(Map<String, Value>);

/// One account: its logins by issuer.
#[derive(Default)]
pub(super) struct AccountEntry(Map<String, Value>);

/// An error of reading the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ContentError {
    /// The content is not in the expected format.
    Damaged(String),
    /// The file was written by a later version of this program.
    Newer,
}

impl LoginFileContent {
    pub(super) fn empty() -> Self {
        Self(Map::from_iter([("version".to_owned(), json!(FORMAT_VERSION)), ("servers".to_owned(), json!({}))]))
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ContentError> {
        let damaged = |what: &str| Err(ContentError::Damaged(what.to_owned()));
        let members = match serde_json::from_slice(bytes) {
            _ if bytes.is_empty() => return damaged("empty file"),
            Ok(Value::Object(members)) => members,
            Ok(_) => return damaged("not a JSON object"),
            Err(error) => return damaged(&format!("invalid JSON at line {}", error.line())),
        };
        match members.get("version").map(Value::as_u64) {
            None | Some(Some(FORMAT_VERSION)) => {}
            Some(Some(version)) if version > FORMAT_VERSION => return Err(ContentError::Newer),
            Some(_) => return damaged("invalid `version`"),
        }
        match members.get("servers") {
            None | Some(Value::Object(_)) => Ok(Self(members)),
            Some(_) => damaged("`servers` is not an object"),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(&self.0).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Returns the keys of all accounts. Damaged entries are skipped.
    pub(super) fn keys(&self) -> Vec<AccountKey> {
        let servers = self.0.get("servers").and_then(Value::as_object).into_iter().flatten();
        servers.flat_map(|(server, entry)| account_keys(server, entry)).collect()
    }

    /// Returns an account, or `None` if it does not exist.
    pub(super) fn account_entry(&self, key: &AccountKey) -> Result<Option<AccountEntry>, DamagedEntry> {
        let Some(entry) = self.0.get("servers").and_then(|servers| servers.get(&key.server)) else { return Ok(None) };
        let entry = entry.as_object().ok_or_else(|| DamagedEntry::for_account(key))?;
        let accounts =
            entry.get("accounts").map(|accounts| accounts.as_object().ok_or_else(|| DamagedEntry::for_account(key)));
        match accounts.transpose()?.and_then(|accounts| accounts.get(&key.account)) {
            Some(Value::Object(account_entry)) => Ok(Some(AccountEntry(account_entry.clone()))),
            Some(_) => Err(DamagedEntry::for_account(key)),
            None if key.account.is_empty() && is_flat_form(entry) => Ok(Some(AccountEntry::from_flat_form(entry))),
            None => Ok(None),
        }
    }

    /// Inserts or replaces an account. Returns whether unreadable data were replaced.
    pub(super) fn insert(&mut self, key: &AccountKey, account_entry: AccountEntry) -> Result<bool, TooManyAccounts> {
        let is_new = !matches!(self.account_entry(key), Ok(Some(_)));
        if is_new && self.keys().len() >= MAX_ACCOUNTS {
            return Err(TooManyAccounts);
        }
        self.0.insert("version".to_owned(), json!(FORMAT_VERSION));
        let mut made_way = false;
        let servers = object_member(&mut self.0, "servers", &mut made_way);
        let entry = object_member(servers, &key.server, &mut made_way);
        migrate_flat_form(entry);
        let accounts = object_member(entry, "accounts", &mut made_way);
        let before = accounts.insert(key.account.clone(), Value::Object(account_entry.0));
        Ok(made_way || before.is_some_and(|before| !before.is_object()))
    }

    /// Removes an account. Returns whether it existed.
    pub(super) fn remove(&mut self, key: &AccountKey) -> bool {
        let Some(servers) = self.0.get_mut("servers").and_then(Value::as_object_mut) else { return false };
        let Some(entry) = servers.get_mut(&key.server).and_then(Value::as_object_mut) else {
            return servers.remove(&key.server).is_some();
        };
        migrate_flat_form(entry);
        let accounts = entry.get_mut("accounts").and_then(Value::as_object_mut);
        let is_removed = accounts.is_some_and(|accounts| accounts.remove(&key.account).is_some());
        if entry.get("accounts").and_then(Value::as_object).is_none_or(Map::is_empty) {
            entry.remove("accounts");
        }
        if entry.is_empty() {
            servers.remove(&key.server);
        }
        is_removed
    }
}

/// An unreadable part of an otherwise valid file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DamagedEntry(String);

/// An error: the maximum number of accounts is reached.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyAccounts;

impl DamagedEntry {
    fn for_account(key: &AccountKey) -> Self {
        Self(format!("the stored login for {} is invalid", key.display_name()))
    }

    pub(super) fn into_vault_error(self, path: &Path) -> VaultError {
        VaultError::Damaged { what: format!("`{}` is damaged: {}", path.display(), self.0) }
    }
}

impl TooManyAccounts {
    pub(super) fn into_vault_error(self, path: &Path) -> VaultError {
        let what = format!("`{}` has the maximum of {MAX_ACCOUNTS} accounts", path.display());
        VaultError::Unusable { what, fix: Some("log out of unused servers".to_owned()) }
    }
}

impl AccountEntry {
    /// Creates the placeholder of an account whose logins are in the keyring.
    pub(super) fn keyring_placeholder() -> Self {
        Self(Map::from_iter([("in_keyring".to_owned(), json!(true))]))
    }

    pub(super) fn is_in_keyring(&self) -> bool {
        self.0.get("in_keyring") == Some(&json!(true))
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// Returns the current login.
    pub(super) fn current_login(&self, key: &AccountKey) -> Result<Option<StoredLogin>, DamagedEntry> {
        match self.0.get("current") {
            None => Ok(None),
            Some(Value::String(issuer)) => self.login_at(key, issuer),
            Some(_) => Err(DamagedEntry::for_account(key)),
        }
    }

    /// Returns the login at one issuer.
    pub(super) fn login_at(&self, key: &AccountKey, issuer: &str) -> Result<Option<StoredLogin>, DamagedEntry> {
        let Some(value) = self.0.get("issuers").and_then(|issuers| issuers.get(issuer)) else { return Ok(None) };
        record::read(issuer, value).map(Some).ok_or_else(|| DamagedEntry::for_account(key))
    }

    /// Returns the logins at all issuers. Unreadable ones are skipped.
    pub(super) fn all_logins(&self) -> Vec<StoredLogin> {
        let issuers = self.0.get("issuers").and_then(Value::as_object).into_iter().flatten();
        issuers.filter_map(|(issuer, value)| record::read(issuer, value)).collect()
    }

    /// Stores a login and makes it the current one. A login with an unknown issuer is replaced by one with a known
    /// issuer. Returns whether unreadable data were replaced.
    pub(super) fn set_current(&mut self, kept: &StoredLogin) -> bool {
        let mut made_way = false;
        self.0.remove("in_keyring");
        self.0.insert("current".to_owned(), Value::from(&*kept.issuer));
        let issuers = object_member(&mut self.0, "issuers", &mut made_way);
        let unknown = if kept.issuer.is_empty() { None } else { issuers.remove("") };
        let before = issuers.get(&kept.issuer).or(unknown.as_ref());
        let is_lost = before.is_some_and(|before| record::read("", before).is_none());
        let written = record::write(kept, before);
        issuers.insert(kept.issuer.clone(), written);
        made_way || is_lost
    }

    fn from_flat_form(entry: &Map<String, Value>) -> Self {
        Self(Map::from_iter([("current".to_owned(), json!("")), ("issuers".to_owned(), json!({"": entry}))]))
    }
}

fn account_keys(server: &str, entry: &Value) -> Vec<AccountKey> {
    let key = |account: &str| AccountKey { server: server.to_owned(), account: account.to_owned() };
    let Some(entry) = entry.as_object() else { return Vec::new() };
    let accounts = entry.get("accounts").and_then(Value::as_object).into_iter().flatten();
    let mut keys: Vec<_> = accounts.map(|(account, _)| key(account)).collect();
    if is_flat_form(entry) && !keys.contains(&key("")) {
        keys.push(key(""));
    }
    keys
}

fn is_flat_form(entry: &Map<String, Value>) -> bool {
    FLAT_FORM_MEMBERS.iter().any(|member| entry.contains_key(*member))
}

/// Moves a login in the flat form to its place in `accounts`.
fn migrate_flat_form(entry: &mut Map<String, Value>) {
    if !is_flat_form(entry) {
        return;
    }
    let accounts = entry.remove("accounts");
    let flat = std::mem::take(entry);
    let mut accounts = accounts.and_then(|accounts| accounts.as_object().cloned()).unwrap_or_default();
    accounts.entry("").or_insert_with(|| Value::Object(AccountEntry::from_flat_form(&flat).0));
    entry.insert("accounts".to_owned(), Value::Object(accounts));
}

/// Returns the object in a member. Creates it if it is missing or not an object.
fn object_member<'a>(
    members: &'a mut Map<String, Value>,
    name: &str,
    made_way: &mut bool,
) -> &'a mut Map<String, Value> {
    let slot = members.entry(name).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *made_way = true;
        *slot = json!({});
    }
    slot.as_object_mut().expect("it has just been made one")
}
