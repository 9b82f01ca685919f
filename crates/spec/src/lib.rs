//! Shared types: server specifications, secrets and untrusted text. Plain data, except for the lookup of a command's
//! executable.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod auth_settings;
mod fingerprint;
mod glob;
mod headers_source;
mod http;
mod launch;
mod mask;
mod name;
mod origin;
mod program;
mod redact;
mod repository;
mod secret;
mod server;
mod settings;
mod suggestion;
mod timestamp;
mod untrusted;

pub use auth_settings::{AssertionSource, AuthSettings, DpopMode, TokenGrant};
pub use fingerprint::Fingerprint;
pub use glob::Glob;
pub use headers_source::HeadersSource;
pub use http::{HttpSpec, HttpTransport, ServerSpec, mask_url_secrets};
pub use launch::{LaunchCheck, LaunchRefusal};
pub use mask::{is_secret_name, mask_arguments};
pub use name::{InvalidServerName, ServerName, ToolId};
pub use origin::ServerOrigin;
pub use program::{ProgramError, find_program, trusted_path};
pub use redact::Redactor;
pub use repository::repository_root;
pub use secret::Secret;
pub use server::{EnvValue, Environment, StdioSpec};
pub use settings::{
    ActivationState, BackoffSettings, InstanceSettings, ReconnectPolicy, ServerEntry, ServerSettings, ServerSharing,
};
pub use suggestion::{closest_name, edit_distance};
pub use timestamp::{Timestamp, civil_date};
pub use untrusted::{EscapedText, UntrustedText, is_control_or_bidi};
