//! The first lines of a connection to a gateway.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_spec::Environment;

/// Version of the messages at the socket, for requests that cross versions of `wharf`.
pub const SOCKET_PROTOCOL: u32 = 1;

/// The first line of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestLine {
    /// Version of the client's `wharf`. A gateway of another version refuses requests that do not cross versions.
    pub version: String,
    /// Version of the messages.
    #[serde(default)]
    pub protocol: u32,
    /// What the client wants.
    pub request: GatewayRequest,
}

/// What a client wants of a gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatewayRequest {
    /// Speak MCP on this connection.
    Attach(Box<AttachRequest>),
    /// Report the projects and clients.
    Status,
    /// Report the questions that wait for an answer: all of them shortened, or one of them in full.
    Questions {
        /// Number of the question.
        id: Option<u64>,
    },
    /// Answer a question for its client.
    Answer {
        /// Number of the question.
        id: u64,
        /// Result of the elicitation, as JSON.
        answer: String,
    },
    /// End.
    Stop,
    /// Hand over the listening sockets to this process.
    TakeOver(TakeoverRequest),
}

impl GatewayRequest {
    /// Reports whether gateways of other versions carry it out: those that replace one version by another.
    pub fn crosses_versions(&self) -> bool {
        match self {
            Self::Attach(request) => request.is_moving,
            Self::Status | Self::Questions { .. } | Self::Answer { .. } => false,
            Self::Stop | Self::TakeOver(_) => true,
        }
    }
}

/// What a process that replaces a gateway serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakeoverRequest {
    /// Address over HTTP. The gateway refuses if it is not its own.
    pub address: Option<SocketAddr>,
}

/// What the servers of a client depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttachRequest {
    /// Working directory, which decides the project.
    pub cwd: PathBuf,
    /// Environment variables. Those that are not Unicode are left out.
    pub variables: Vec<(String, String)>,
    /// How the client sees the servers.
    pub view: ViewRequest,
    /// Keep the gateway running after the last client.
    pub stay: bool,
    /// Set for a client of a gateway that has been replaced.
    #[serde(default)]
    pub is_moving: bool,
}

/// How a client sees the servers of its project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ViewRequest {
    /// Servers to serve. Empty selects all.
    pub servers: Vec<String>,
    /// Gives tools and prompts the names that their servers use.
    pub plain_names: Option<bool>,
    /// Profile of the user's configuration.
    pub profile: Option<String>,
}

/// The first line of a gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatewayReply {
    /// The client is attached.
    Attached {
        /// Process of the gateway.
        pid: u32,
        /// Servers that cannot be served, with the reason.
        warnings: Vec<String>,
    },
    /// The request has been carried out.
    Done {
        /// Process of the gateway.
        pid: u32,
        /// The result.
        result: Value,
    },
    /// The listening sockets come with this reply: the one of attached clients, then that of clients over HTTP, if there
    /// is one.
    Offered {
        /// Process of the gateway.
        pid: u32,
        /// Reports whether the gateway keeps running after the last client.
        stays: bool,
    },
    /// The gateway cannot do this.
    Refused {
        /// The reason, as a sentence without a full stop.
        reason: String,
    },
}

impl RequestLine {
    /// A request of this version of `wharf`.
    pub fn new(request: GatewayRequest) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), protocol: SOCKET_PROTOCOL, request }
    }
}

impl AttachRequest {
    /// A request for the servers that a process in this environment would use.
    pub fn new(environment: &Environment, view: ViewRequest) -> Self {
        let text = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        let variables = environment.env.iter().filter_map(text).collect();
        Self { cwd: environment.cwd.clone(), variables, view, stay: false, is_moving: false }
    }

    /// Returns the environment of the client.
    pub fn environment(&self) -> Environment {
        let variables = self.variables.iter().map(|(name, value)| (name.into(), value.into()));
        Environment { env: variables.collect(), cwd: self.cwd.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attach_request_keeps_the_environment() {
        let environment = Environment { env: vec![("A".into(), "1".into())], cwd: "/here".into() };
        let request = AttachRequest::new(&environment, ViewRequest::default());
        let line = RequestLine::new(GatewayRequest::Attach(Box::new(request)));
        let read: RequestLine = serde_json::from_slice(&serde_json::to_vec(&line).unwrap()).unwrap();
        assert_eq!(read, line);
        let GatewayRequest::Attach(request) = read.request else { panic!() };
        assert_eq!((request.environment().env, request.environment().cwd), (environment.env, environment.cwd));
    }
}
