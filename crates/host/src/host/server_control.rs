//! Starting and stopping servers, changing their set, and waiting for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use wharf_client::Connection;
use wharf_spec::{ServerEntry, ServerName};

use super::Host;
use crate::error::HostError;
use crate::lister::ListingMode;
use crate::server::DesiredServer;
use crate::server_set::{self, LocalEntry, LocalServers, ServerSetChanges};
use crate::supervise::SupervisorCommand;

impl Host {
    /// Waits until the first connection attempt of every server has ended and the lists of the ready ones have been
    /// read. Does not wait for retries. [`Host::wait_for_startup`] does not wait for slow servers either.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn wait_until_settled(&self) {
        let servers = self.context().servers.load_full();
        for server in servers.values() {
            server.wait_until_settled().await;
        }
    }

    /// Waits for the servers that are starting, except for slow ones: once a server is ready, the others have an eighth
    /// more time than it needed, and at least a second if their tools are not known. Does not wait for a server whose
    /// attempt has ended before. Before any server is ready the wait is unlimited for a server whose tools are not known,
    /// and one second for the others.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe.
    ///
    /// # Example
    ///
    /// ```
    /// # use wharf::Host;
    /// # async fn first_request(host: &Host) {
    /// let limit = std::time::Duration::from_secs(10);
    /// let _ = tokio::time::timeout(limit, host.wait_for_startup()).await;
    /// # }
    /// ```
    pub async fn wait_for_startup(&self) {
        crate::startup::wait_for_startup(self.context()).await;
    }

    /// Waits until a server is ready and its tools are in the catalog. Starts an idle server. The timeout is the
    /// server's startup timeout plus its call timeout. A host that lists nothing waits for the end of the connection
    /// attempt instead.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown, unavailable or not ready in time.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe. A server that was started continues to start.
    ///
    /// # Example
    ///
    /// See [calls](Host#calls) for an example.
    pub async fn wait_until_ready(&self, server: &str) -> Result<Connection, HostError> {
        let context = self.context();
        let server = context.server(server)?;
        if context.options.attention == ListingMode::Nothing && !server.settings.load().effective.lazy {
            // The attempt has a timeout of its own, and its error says more than a deadline.
            server.wait_for_attempt().await?;
            return self.connection(server.name.as_str());
        }
        let deadline = context.startup_deadline(&server);
        let learned = server.with_connection(deadline, |live| {
            let server = Arc::clone(&server);
            async move { server.wait_for_tools(&live, deadline).await.map(|()| live.connection) }
        });
        learned.await
    }

    /// Connects a server, regardless of its state, and waits for the first attempt to end.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown or not ready after the attempt.
    ///
    /// # Cancel safety
    ///
    /// The attempt begins at the first poll and continues if the future is dropped.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn connect(&self, server: &str) -> Result<(), HostError> {
        self.connect_with(server, SupervisorCommand::Connect).await
    }

    /// Disconnects a server and connects it again.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown or not ready after the attempt.
    ///
    /// # Cancel safety
    ///
    /// The attempt begins at the first poll and continues if the future is dropped.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn reconnect(&self, server: &str) -> Result<(), HostError> {
        self.connect_with(server, SupervisorCommand::Reconnect).await
    }

    async fn connect_with(&self, server: &str, command: SupervisorCommand) -> Result<(), HostError> {
        let server = self.context().server(server)?;
        server.login_state.allow_prompts();
        let number = server.send_command(command);
        server.wait_for_command(number).await;
        server.wait_for_attempt().await
    }

    /// Disconnects a server until it is connected explicitly. Calls to it fail from now on.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown.
    ///
    /// # Cancel safety
    ///
    /// The server is disconnected even if the future is dropped after the first poll.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn disconnect(&self, server: &str) -> Result<(), HostError> {
        let server = self.context().server(server)?;
        let number = server.send_command(SupervisorCommand::Disconnect);
        server.wait_for_command(number).await;
        Ok(())
    }

    /// Enables a server until the host stops or [`Host::set_servers`] changes its setting.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown or not approved.
    ///
    /// # Cancel safety
    ///
    /// While another change of the servers is in progress, dropping the future changes nothing. Afterwards the setting
    /// applies, but the catalog can show the server's earlier tools until its next change.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn enable(&self, server: &str) -> Result<(), HostError> {
        self.set_admission(server, wharf_spec::ActivationState::Enabled).await
    }

    /// Disables a server until the host stops or [`Host::set_servers`] changes its setting.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown or not approved.
    ///
    /// # Cancel safety
    ///
    /// While another change of the servers is in progress, dropping the future changes nothing. Afterwards the setting
    /// applies, but the catalog can show the server's earlier tools until its next change.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn disable(&self, server: &str) -> Result<(), HostError> {
        self.set_admission(server, wharf_spec::ActivationState::Disabled).await
    }

    async fn set_admission(&self, server: &str, admission: wharf_spec::ActivationState) -> Result<(), HostError> {
        let context = self.context();
        let changing = context.changing.acquire().await;
        let server = context.server(server)?;
        if server.settings.load().effective.admission == wharf_spec::ActivationState::Unapproved {
            return Err(server.unavailable_error(&server.snapshot.borrow()));
        }
        let number = server.override_admission(admission);
        drop(changing);
        server.wait_for_command(number).await;
        context.republish(&server).await;
        Ok(())
    }

    /// Replaces the set of configured servers: adds new ones, removes missing ones and replaces those whose spec has
    /// changed. In-process servers stay; [`Host::set_all_servers`] replaces them, too. Calls in progress on removed
    /// servers have a short time to finish. Invalid entries are reported in [`ServerSetChanges::errors`] and do not
    /// affect the others.
    ///
    /// # Cancel safety
    ///
    /// The change begins at the first poll and continues if the future is dropped.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn set_servers(&self, servers: Vec<ServerEntry>) -> ServerSetChanges {
        let (wanted, errors) = server_set::configs_by_name(servers);
        self.change_servers(wanted, errors, LocalServers::Keep).await
    }

    /// Replaces all servers, including in-process ones: those that are not given are removed. Otherwise like
    /// [`Host::set_servers`].
    ///
    /// # Cancel safety
    ///
    /// The change begins at the first poll and continues if the future is dropped.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn set_all_servers(&self, servers: Vec<ServerEntry>, local: Vec<LocalEntry>) -> ServerSetChanges {
        let (mut wanted, mut errors) = server_set::configs_by_name(servers);
        server_set::add_local(&mut wanted, &mut errors, local);
        self.change_servers(wanted, errors, LocalServers::Replace).await
    }

    async fn change_servers(
        &self,
        wanted: BTreeMap<ServerName, DesiredServer>,
        errors: Vec<(ServerName, String)>,
        local: LocalServers,
    ) -> ServerSetChanges {
        let host = self.clone();
        // A separate task, so that the change cannot be dropped halfway: a server that has been started must be in the
        // set.
        let changed = tokio::spawn(async move { server_set::change_servers(&host, wanted, local).await }).await;
        let mut changes = changed.unwrap_or_else(|broken| {
            tracing::error!("internal error: changing the set of servers failed: {broken}");
            ServerSetChanges::default()
        });
        changes.errors.extend(errors);
        changes
    }
}
