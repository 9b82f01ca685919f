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
pub use challenge::{AuthChallenge, Scheme};
pub use client::{Client, ClientOrigin, Proof};
pub use discovery::{AuthServerMetadata, DiscoveryResult, EndpointSource};
pub use error::{LoginError, TokenError};
pub use login::{Login, Logout};
pub use settings::{AssertionSource, AuthSettings, Dpop, Grant};
pub use token::TokenSet;
pub use vault::{
    AccountKey, FileVault, Kept, Keyring, KeyringError, KeyringVault, MemoryVault, Vault, VaultChoice, VaultError,
    open_vault,
};
pub use visitor::{
    CallbackPath, DeviceCodePage, Lines, LoginCallback, Loopback, Open, Page, PastedUrlBrowser, Visit, VisitError,
    Visitor, browser_argument,
};
