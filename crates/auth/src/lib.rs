//! OAuth logins to MCP servers: discovery, client registration, tokens, storage and renewal.
//!
//! Identifiers (issuers, resources, client IDs, endpoint URLs) stay the strings in which they were received. They are
//! parsed for checks, never re-serialized. This crate does not print, open a browser or read the environment: the
//! embedding program supplies a [`Visitor`] for that.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod account;
mod challenge;
mod client;
mod discovery;
mod dpop;
mod error;
mod fetch;
mod grant;
mod jwt;
mod login;
mod proof;
mod registration;
mod revoke;
mod scope;
mod settings;
mod token;
mod vault;
mod visitor;

pub use account::{Account, AccountOptions, Standing};
pub use challenge::{Challenge, Scheme};
pub use client::{Client, ClientOrigin, Proof};
pub use discovery::{Discovered, NamedBy, ServerMetadata};
pub use error::{LoginError, TokenError};
pub use login::{Login, Logout};
pub use settings::{Assertion, AuthSettings, Dpop, Grant};
pub use token::Tokens;
pub use vault::{
    AccountKey, FileVault, Kept, Keyring, KeyringError, KeyringVault, MemoryVault, TokenStore, Vault, VaultError,
    open_vault,
};
pub use visitor::{
    CallbackPath, DevicePage, Lines, Loopback, Open, Page, Pasted, Returned, Visit, VisitError, Visitor,
    browser_argument,
};
