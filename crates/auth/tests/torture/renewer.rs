//! The life of one of the processes: its clock goes on until its token has ended, it makes a request, and so on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use wharf_auth::{Account, AccountKey, AccountOptions, FileVault, Vault};
use wharf_net::{AuthRecovery, Authorizer, Method, RequestCredentials};
use wharf_store::{Document, DocumentPrivacy};

/// How far the clock goes on at a time, in milliseconds: further than tokens last.
const STEP: u64 = 100_000;
/// When everything begins, in Unix milliseconds.
const START: u64 = 1_800_000_000_000;

/// Starts one of the processes.
pub fn start(path: &Path, address: SocketAddr, expiries: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("renewer").arg(path).args([address.to_string(), expiries.to_string()]);
    command.stdin(Stdio::null()).spawn().unwrap()
}

pub fn key() -> AccountKey {
    AccountKey { server: "tortured".to_owned(), account: String::new() }
}

/// Logs in as somebody would who is asked to, while nobody renews, unless another has done so.
pub fn log_in(path: &Path, address: SocketAddr) {
    let vault = FileVault::new(path);
    let _lock = vault.lock(&key(), Duration::from_secs(60)).unwrap();
    if vault.load(&key()).unwrap().is_some_and(|kept| kept.tokens.is_some()) {
        return;
    }
    let number = ask(address, "POST /login HTTP/1.1\r\n");
    let login = json!({
        "url": format!("http://{address}/mcp"), "token_endpoint": format!("http://{address}/token"), "client_id": "c",
        "access_token": format!("a{number}"), "refresh_token": format!("r{number}"), "token_type": "Bearer",
        "expires_at": START,
    });
    let issuer = format!("http://{address}");
    let accounts = json!({"": {"current": issuer, "issuers": {issuer.as_str(): login}}});
    let text = json!({"version": 1, "servers": {key().server: {"accounts": accounts}}}).to_string();
    Document::new(path, DocumentPrivacy::Private).write(text.as_bytes()).unwrap();
}

pub fn live(path: &Path, address: SocketAddr, expiries: usize) {
    let now = Arc::new(AtomicU64::new(first_moment(path)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut seen = 0;
    while seen < expiries {
        let account = account(path, address, &now);
        while seen < expiries && runtime.block_on(request(&account, address, &mut seen)) {
            now.fetch_add(STEP, Ordering::Relaxed);
        }
        log_in(path, address);
    }
}

/// The time up to which what is kept was good.
fn first_moment(path: &Path) -> u64 {
    let kept = FileVault::new(path).load(&key()).unwrap();
    kept.and_then(|kept| kept.tokens?.expires_at).unwrap_or(START)
}

fn account(path: &Path, address: SocketAddr, now: &Arc<AtomicU64>) -> Account {
    let url = format!("http://{address}/mcp").parse().unwrap();
    let mut options = AccountOptions::new(key(), url, Arc::new(FileVault::new(path)));
    let now = now.clone();
    options.now = Arc::new(move || now.load(Ordering::Relaxed));
    Account::new(options)
}

/// Makes a request, by which the server knows that what it gave was kept; no, where somebody has to log in first.
async fn request(account: &Account, address: SocketAddr, seen: &mut usize) -> bool {
    let url = format!("http://{address}/mcp").parse().unwrap();
    let carried = match account.credentials(&Method::POST, &url) {
        RequestCredentials::Ready(carried) => Ok(Some(carried)),
        RequestCredentials::Later(pending) => {
            *seen += 1;
            pending.await
        }
        RequestCredentials::None => Ok(None),
    };
    match carried {
        Ok(Some(carried)) => {
            let token = carried.headers[0].1.to_str().unwrap();
            ask(address, &format!("POST /mcp HTTP/1.1\r\nAuthorization: {token}\r\n"));
            true
        }
        Ok(None) => false,
        Err(error) if error.remedy == AuthRecovery::Login => false,
        Err(error) => panic!("{error}"),
    }
}

/// What the server answers to a request that has no body.
fn ask(address: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{head}Host: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}
