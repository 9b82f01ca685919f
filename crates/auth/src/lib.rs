//! OAuth logins to MCP servers: discovery, client registration, tokens, storage and renewal.
//!
//! Identifiers (issuers, resources, client IDs, endpoint URLs) stay the strings in which they were received. They are
//! parsed for checks, never re-serialized. This crate does not print, open a browser or read the environment: the
//! embedding program supplies a [`LoginBrowser`] for that.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod account;
mod auth_http;
mod browser;
mod challenge;
mod client;
mod client_auth;
mod discovery;
mod dpop;
mod error;
mod grant;
mod jwt;
mod login;
mod registration;
mod revoke;
mod scope;
mod settings;
mod token;
mod vault;

pub use account::{Account, AccountOptions, AccountStatus};
pub use browser::{
    BrowserVisit, CallbackPath, DeviceCodePage, LineSource, LoginBrowser, LoginCallback, LoginPage, LoopbackBrowser,
    PageOpener, PastedUrlBrowser, VisitError, browser_argument,
};
pub use challenge::{AuthChallenge, TokenScheme};
pub use client::{ClientOrigin, OAuthClient, TokenEndpointAuth};
pub use discovery::{AuthServerMetadata, DiscoveryResult, EndpointSource};
pub use error::{LoginError, TokenError};
pub use login::{LoginOutcome, LogoutOutcome};
// Documented in `wharf-spec`; here for crates that do not depend on it.
#[doc(hidden)]
pub use settings::{AssertionSource, AuthSettings, DpopMode, TokenGrant};
pub use token::TokenSet;
pub use vault::{
    AccountKey, FileVault, Keyring, KeyringError, KeyringVault, MemoryVault, StoredLogin, Vault, VaultChoice,
    VaultError, open_vault,
};
