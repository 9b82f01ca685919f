//! Loading of configuration files and flags into server definitions with source locations.
//!
//! [`load`] reads all layers and never fails as a whole. Errors are reported as a [`Problem`] of the file or server
//! concerned, and the rest remains valid. A [`Configured`] server has its definition as written. [`Described::resolve`]
//! expands it into a server that a host can run.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod tree;

mod format;
mod json;
mod toml;
mod yaml;

pub mod clients;
pub mod edit;

mod place;
mod problem;

mod configured;
mod layer;
mod load;
mod memory;
mod provider;
mod reader;
mod references;
mod resolve;
mod settings;
mod site;

mod approvals;
mod secrets;
mod standing;
mod watch;

mod checked;
mod describe;
mod entry;
mod env_file;
mod expand;
pub mod fields;
mod file;

mod reference;
mod schema;

pub use approvals::look::on_path;
pub use approvals::{
    ApprovalDigest, ApprovalKey, ApprovalSnapshot, ApprovalState, ApprovalStore, ApprovalSubject, ApprovalsError,
};
pub use configured::{
    ConfiguredServer, HttpDefinition, OauthDefinition, ServerApproval, ServerDefinition, SourcedValue, StdioDefinition,
    TransportDefinition,
};
pub use describe::{EntryDraft, describe};
pub use expand::{ExpandError, SecretSource, TemplatePart, parts};
pub use format::{FileFormat, decode, read};
pub use layer::{ConfigPaths, Layer};
pub use load::{Config, LayerStatus, load, read_file};
pub use place::SourceLocation;
pub use problem::{ConfigProblem, ProblemSeverity};
pub use provider::{
    KNOWN_PROVIDERS, KnownProvider, ProviderEffort, ProviderFormat, ProviderSettings, ResolvedProvider,
};
pub use reader::ConfigReader;
pub use reference::reference;
pub use references::{ConfigReference, ReferenceTarget};
pub use resolve::{ResolveContext, origin_of};
pub use schema::schema;
pub use secrets::{Keyring, ResolvedSecret, SecretError, SecretOrigin, SecretStore, is_secret_name};
pub use settings::{GlobalSettings, RuleText};
pub use site::{EntrySite, StartDirectory};
pub use watch::ConfigWatcher;
