//! Review of tool definitions by a person: release from quarantine and approval of changes.

use std::fmt;
use std::sync::Arc;

use wharf_policy::PinState;
use wharf_spec::{Fingerprint, ToolId};
use wharf_tools::{CallRefusal, RefusalReason};

use crate::catalog::CatalogTool;
use crate::context::HostContext;
use crate::error::HostError;
use crate::host::Host;
use crate::server::Server;
use crate::state_directory::SaveResult;

/// A step by which a person gets a refused call allowed. `Display` names the function of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy<'a> {
    /// Review a quarantined tool and release it: [`Host::release`].
    Release(&'a ToolId),
    /// Review a changed definition and approve it: [`Host::approve_definition`].
    ApproveDefinition(&'a ToolId),
}

/// Describes a remedy in the words of the embedding program, such as one of its commands.
pub type RemedyText = Arc<dyn Fn(Remedy<'_>) -> String + Send + Sync>;

/// A tool whose definition differs from the approved one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChangedDefinition {
    /// The tool as its server defines it now.
    pub tool: Arc<CatalogTool>,
    /// Text of the definition approved last. Empty if it was too long to store.
    pub approved: Arc<str>,
}

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release(_) => f.write_str("`Host::release` releases it"),
            Self::ApproveDefinition(_) => f.write_str("`Host::approve_definition` approves the change"),
        }
    }
}

impl HostContext {
    /// Returns the hint for a refused call.
    pub fn remedy_text(&self, remedy: Remedy<'_>) -> String {
        self.options.remedies.as_ref().map_or_else(|| remedy.to_string(), |text| text(remedy))
    }

    /// Finds a tool with exactly the definition that the person has seen, and its server.
    fn find_reviewed(&self, tool: &ToolId, seen: Fingerprint) -> Result<(Arc<Server>, Arc<CatalogTool>), HostError> {
        let server = self.server(tool.server.as_str())?;
        match self.publisher.peek().tool(tool) {
            Some(found) if found.fingerprint == seen => Ok((server, Arc::clone(found))),
            Some(_) => Err(HostError::Denied(CallRefusal::new(RefusalReason::PermissionStale))),
            None => Err(HostError::UnknownTool {
                server: tool.server.clone(),
                tool: tool.tool.to_string(),
                nearest: None,
                because: None,
            }),
        }
    }
}

impl Host {
    /// Releases a tool from quarantine, for exactly the definition that the person has seen. A changed definition is
    /// quarantined again, and so is the same one of a server that another file defines.
    ///
    /// # Errors
    ///
    /// Returns an error if the tool is unknown, its definition has changed since, or the release cannot be saved. In the
    /// last case the release holds until the host is closed.
    ///
    /// # Cancel safety
    ///
    /// The release takes effect at the first poll. Dropping the future afterwards can delay the change of the catalog
    /// until the server connects.
    ///
    /// # Example
    ///
    /// See [permissions](Host#permissions) for an example.
    pub async fn release(&self, tool: &ToolId, seen: Fingerprint) -> Result<(), HostError> {
        let context = self.context();
        let (server, _) = context.find_reviewed(tool, seen)?;
        let saved = context.release(server.origin(), tool.clone(), seen);
        context.republish(&server).await;
        wait_until_saved(saved).await
    }

    /// Reports whether this host saves decisions in a state directory.
    pub fn has_state_dir(&self) -> bool {
        self.context().disk.is_some()
    }

    /// Returns the change of a tool's definition, if a person has approved another one.
    ///
    /// # Example
    ///
    /// See [permissions](Host#permissions) for an example.
    pub fn changed_definition(&self, tool: &ToolId) -> Option<ChangedDefinition> {
        let context = self.context();
        let found = context.publisher.peek().tool(tool).map(Arc::clone)?;
        let origin = context.server(tool.server.as_str()).ok()?.origin();
        match context.rules.pins().tool_state(&origin, tool, &found.fingerprint) {
            PinState::Changed { approved } => Some(ChangedDefinition { tool: found, approved }),
            PinState::New | PinState::Known => None,
        }
    }

    /// Approves a tool's definition, exactly as the person has seen it. It is then as good as the one approved before:
    /// the rules decide about its calls.
    ///
    /// # Errors
    ///
    /// Returns an error if the tool is unknown, its definition has changed since, or the approval cannot be saved. In the
    /// last case the approval holds until the host is closed.
    ///
    /// # Cancel safety
    ///
    /// The approval takes effect at the first poll.
    ///
    /// # Example
    ///
    /// See [permissions](Host#permissions) for an example.
    pub async fn approve_definition(&self, tool: &ToolId, seen: Fingerprint) -> Result<(), HostError> {
        let context = self.context();
        let (server, found) = context.find_reviewed(tool, seen)?;
        let definition = server.redact(found.definition.raw.as_str());
        let approved = context.rules.pin_definition(server.origin(), tool.clone(), seen, &definition);
        approved.map_err(|full| HostError::NotSaved(full.to_string()))?;
        wait_until_saved(context.save_pins_at_once()).await
    }
}

/// Waits until a decision is on disk. A host without a state directory saves nothing.
async fn wait_until_saved(saved: Option<SaveResult>) -> Result<(), HostError> {
    let Some(saved) = saved else { return Ok(()) };
    let saved = saved.await.unwrap_or_else(|_| Err("internal error: the write was dropped".to_owned()));
    saved.map_err(HostError::NotSaved)
}
