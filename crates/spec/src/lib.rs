//! The shared nouns: how a server is reached, secrets, and text that nobody vouches for. Data only.

#![warn(missing_docs)]

mod http;
mod secret;
mod server;
mod untrusted;

pub use http::{HttpForm, HttpSpec, ServerSpec, shown_url};
pub use secret::Secret;
pub use server::{EnvValue, StdioSpec, Surroundings};
pub use untrusted::{Shown, Untrusted};
