//! Log of failed discovery attempts, for the error message.

use serde_json::Value;
use wharf_net::StatusCode;
use wharf_spec::UntrustedText;

use crate::auth_http::{AuthHttpClient, UrlSource, shown};
use crate::error::LoginError;

/// URLs that were tried, and the outcome of each.
#[derive(Default)]
pub struct DiscoveryAttempts {
    told: Vec<String>,
    may_pass: bool,
    found_others: bool,
}

impl DiscoveryAttempts {
    /// Fetches a JSON document named by a server. Records the reason if that fails.
    pub async fn document(&mut self, outside: &AuthHttpClient, address: &str) -> Option<Value> {
        match outside.get(address, UrlSource::ByServer).await {
            Ok(fetched) if fetched.status != StatusCode::OK => {
                self.may_pass |= is_passing(fetched.status);
                self.note(address, &format!("responded with {}", fetched.status));
            }
            Ok(fetched) => match fetched.json {
                Some(document) if document.is_object() => return Some(document),
                Some(_) => self.note(address, "not a JSON object"),
                None => self.note(address, "not JSON"),
            },
            Err(error) => {
                self.may_pass |= error.may_pass;
                self.told.push(error.reason);
            }
        }
        None
    }

    /// Records a problem with a URL or with its content.
    pub fn note(&mut self, address: &str, flaw: &str) {
        self.told.push(format!("{}: {flaw}", shown(address)));
    }

    /// Records metadata of another issuer.
    pub fn note_other(&mut self, address: &str, issuer: &str) {
        self.found_others = true;
        self.note(address, &format!("has another issuer, `{}`", UntrustedText::new(issuer).shortened(200)));
    }

    /// Resets the transient state: servers that failed earlier are no longer needed.
    pub fn begin_anew(&mut self) {
        self.may_pass = false;
    }

    /// Reports whether metadata of another issuer were found.
    pub fn found_others(&self) -> bool {
        self.found_others
    }

    /// Reports whether a failed attempt may succeed later.
    pub fn may_pass(&self) -> bool {
        self.may_pass
    }

    /// Creates the error with all recorded reasons.
    pub fn error(&self, summary: &str) -> LoginError {
        let told = format!("{summary} ({})", self.told.join("; "));
        match self.may_pass {
            true => LoginError::Unreachable(told),
            false => LoginError::Discovery(format!("{told}; {INSTEAD}")),
        }
    }
}

/// Advice for servers without OAuth metadata (R8.3).
pub const INSTEAD: &str = "if the server accepts a static token, set `Authorization` in the entry's `headers`";

/// Reports whether a status indicates a temporary condition.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502..=504)
}
