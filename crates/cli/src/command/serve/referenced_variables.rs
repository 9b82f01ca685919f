//! The environment variables that the servers of a project depend on. Clients that differ in them do not share servers.

use std::collections::BTreeSet;

use wharf_config::{Config, ReferenceTarget};
use wharf_gateway::key_digest;
use wharf_spec::{ActivationState, Environment};

/// Digests of the variables that the entries of the enabled servers refer to. Values may be secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ReferencedVariables(Vec<(String, Option<String>)>);

impl ReferencedVariables {
    /// Returns the variables of an environment that these servers refer to.
    pub fn new(config: &Config, environment: &Environment) -> Self {
        let enabled = config.servers.iter().filter(|server| server.activation() == ActivationState::Enabled);
        let described = enabled.filter_map(|server| server.described.as_ref().ok());
        let names =
            described.flat_map(|definition| definition.references()).filter_map(|reference| match reference.to {
                ReferenceTarget::Variable { name, .. } | ReferenceTarget::HandedDown(name) => Some(name),
                ReferenceTarget::Secret(_) | ReferenceTarget::File(_) => None,
            });
        let names: BTreeSet<String> = names.collect();
        let digest = |name: &str| environment.var(name).map(|value| key_digest(&value.to_string_lossy()));
        Self(names.into_iter().map(|name| (digest(&name), name)).map(|(value, name)| (name, value)).collect())
    }
}
