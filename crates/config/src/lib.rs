//! Loading of configuration files and flags into server definitions with source locations.
//!
//! [`load`] reads all layers and never fails as a whole. Errors are reported as a [`ConfigProblem`] of the file or
//! server concerned, and the rest remains valid. A [`ConfiguredServer`] has its definition as written.
//! [`ServerDefinition::resolve`] expands it into a server that a host can run.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod tree;

mod format;
mod json;
mod toml;
mod yaml;

pub mod clients;
pub mod edit;

mod location;
mod problem;

mod entry_references;
mod entry_site;
mod last_good_cache;
mod layer;
mod load;
mod provider;
mod reader;
mod resolve;
mod server_definition;
mod settings;

mod approval_lookup;
mod approvals;
mod secrets;
mod watch;

mod draft;
mod entry;
mod env_file;
mod expand;
pub mod fields;
mod file;
mod validate;

mod key_reference;
mod schema;

pub use approvals::file_digests::find_on_path;
pub use approvals::{
    ApprovalDigest, ApprovalKey, ApprovalSnapshot, ApprovalState, ApprovalStore, ApprovalSubject, ApprovalsError,
};
pub use draft::{EntryDraft, validate_entry};
pub use entry_references::{ConfigReference, ReferenceTarget};
pub use entry_site::{EntrySite, StartDirectory};
pub use expand::{ExpandError, SecretSource, TemplatePart, parse_template};
pub use format::{FileFormat, decode, parse_text};
pub use key_reference::render_key_reference;
pub use layer::{ConfigPaths, Layer};
pub use load::{Config, LayerStatus, load, read_file};
pub use location::SourceLocation;
pub use problem::{ConfigProblem, ProblemSeverity};
pub use provider::{
    KNOWN_PROVIDERS, KnownProvider, ProviderEffort, ProviderFormat, ProviderSettings, ResolvedProvider,
};
pub use reader::ConfigReader;
pub use resolve::{ResolveContext, file_origin};
pub use schema::json_schema;
pub use secrets::{Keyring, ResolvedSecret, SecretError, SecretOrigin, SecretStore, is_secret_name};
pub use server_definition::{
    ConfiguredServer, HttpDefinition, OauthDefinition, ServerApproval, ServerDefinition, SourcedValue, StdioDefinition,
    TransportDefinition,
};
pub use settings::{GlobalSettings, ProfileSettings, RuleText};
pub use watch::ConfigWatcher;
