//! Log of failed discovery attempts, for the error message.

use serde_json::Value;
use wharf_net::StatusCode;
use wharf_spec::UntrustedText;

use crate::auth_http::{AuthHttpClient, UrlSource, display_url};
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
    pub async fn fetch_document(&mut self, outside: &AuthHttpClient, address: &str) -> Option<Value> {
        match outside.get(address, UrlSource::ByServer).await {
            Ok(fetched) if fetched.status != StatusCode::OK => {
                self.may_pass |= is_transient_status(fetched.status);
                self.record_problem(address, &format!("responded with {}", fetched.status));
            }
            Ok(fetched) => match fetched.json {
                Some(document) if document.is_object() => return Some(document),
                Some(_) => self.record_problem(address, "not a JSON object"),
                None => self.record_problem(address, "not JSON"),
            },
            Err(error) => {
                self.may_pass |= error.may_pass;
                self.told.push(error.reason);
            }
        }
        None
    }

    /// Records a problem with a URL or with its content.
    pub fn record_problem(&mut self, address: &str, flaw: &str) {
        self.told.push(format!("{}: {flaw}", display_url(address)));
    }

    /// Records metadata of another issuer.
    pub fn record_other_issuer(&mut self, address: &str, issuer: &str) {
        self.found_others = true;
        self.record_problem(address, &format!("has another issuer, `{}`", UntrustedText::new(issuer).truncate(200)));
    }

    /// Resets the transient state: servers that failed earlier are no longer needed.
    pub fn reset_transient(&mut self) {
        self.may_pass = false;
    }

    /// Reports whether metadata of another issuer were found.
    pub fn found_other_issuer(&self) -> bool {
        self.found_others
    }

    /// Reports whether a failed attempt may succeed later.
    pub fn is_transient(&self) -> bool {
        self.may_pass
    }

    /// Creates the error with all recorded reasons.
    pub fn to_error(&self, summary: &str) -> LoginError {
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
fn is_transient_status(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502..=504)
}
