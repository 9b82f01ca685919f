//! What was looked at in vain, for the error that has to say so.

use serde_json::Value;
use wharf_net::StatusCode;
use wharf_spec::Untrusted;

use crate::error::LoginError;
use crate::fetch::{Named, Outside, shown};

/// Addresses and what came from them.
#[derive(Default)]
pub struct Tried {
    told: Vec<String>,
    may_pass: bool,
    found_others: bool,
}

impl Tried {
    /// Fetches a document that a server named; notes why there is none.
    pub async fn document(&mut self, outside: &Outside, address: &str) -> Option<Value> {
        match outside.get(address, Named::ByServer).await {
            Ok(fetched) if fetched.status != StatusCode::OK => {
                self.may_pass |= is_passing(fetched.status);
                self.note(address, &format!("answered {}", fetched.status));
            }
            Ok(fetched) => match fetched.json {
                Some(document) if document.is_object() => return Some(document),
                Some(_) => self.note(address, "is no JSON object"),
                None => self.note(address, "is no JSON"),
            },
            Err(error) => {
                self.may_pass |= error.may_pass;
                self.told.push(error.reason);
            }
        }
        None
    }

    /// Notes what is wrong with an address or what came from it.
    pub fn note(&mut self, address: &str, flaw: &str) {
        self.told.push(format!("{}: {flaw}", shown(address)));
    }

    /// Notes a description of somebody else.
    pub fn note_other(&mut self, address: &str, issuer: &str) {
        self.found_others = true;
        self.note(address, &format!("is of another issuer, `{}`", Untrusted::new(issuer).shortened(200)));
    }

    /// Whoever was indisposed so far is no longer needed.
    pub fn begin_anew(&mut self) {
        self.may_pass = false;
    }

    /// Whether there was a description of somebody else.
    pub fn found_others(&self) -> bool {
        self.found_others
    }

    /// Whether somebody might answer better later.
    pub fn may_pass(&self) -> bool {
        self.may_pass
    }

    /// The error that says it all.
    pub fn error(&self, summary: &str) -> LoginError {
        let told = format!("{summary} ({})", self.told.join("; "));
        match self.may_pass {
            true => LoginError::Unreachable(told),
            false => LoginError::Discovery(format!("{told}; {INSTEAD}")),
        }
    }
}

/// What to do about a server that describes no login (R8.3).
pub const INSTEAD: &str =
    "where the server takes a token that does not change, set `Authorization` in the entry's `headers`";

/// Whether a status is about the moment rather than the address.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502..=504)
}
