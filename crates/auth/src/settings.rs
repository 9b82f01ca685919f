//! What the owner of this program says about logging in at one server.

pub use wharf_spec::{Assertion, AuthSettings, Dpop, Grant};
