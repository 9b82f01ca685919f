//! Which revision a connection speaks, and whether a request is welcome in it.
//!
//! The first request that is valid in some era settles the era for the connection's lifetime
//! (2026-07-28 basic/versioning, "Backward Compatibility"). Refusals settle nothing, so a client
//! whose version was refused may still turn to `initialize`.

use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::message::{INVALID_REQUEST, METHOD_NOT_FOUND, Request, RpcError, UNSUPPORTED_VERSION, locked};
use super::revision::Revision;

pub const PROTOCOL_VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub const CLIENT_CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

pub struct Negotiation {
    /// The only revision to speak, when there is only one.
    pinned: Option<Revision>,
    /// Whether the connection has to begin with `initialize`, whatever else the server speaks.
    is_session: bool,
    /// What the connection has settled on.
    agreed: Mutex<Option<Revision>>,
}

impl Negotiation {
    pub fn new(pinned: Option<Revision>) -> Self {
        // A stateless server has nothing to settle.
        let agreed = pinned.filter(|revision| revision.is_stateless());
        Self { pinned, is_session: false, agreed: Mutex::new(agreed) }
    }

    /// Another one of the same server, for a request that stands alone.
    pub fn stateless(&self) -> Option<Self> {
        let revision = self.pinned.unwrap_or(Revision::LATEST);
        let agreed = revision.is_stateless().then_some(revision);
        agreed.map(|_| Self { pinned: self.pinned, is_session: false, agreed: Mutex::new(agreed) })
    }

    /// Another one of the same server, for a session that `initialize` begins.
    pub fn handshake(&self) -> Option<Self> {
        let is_spoken = !self.pinned.is_some_and(Revision::is_stateless);
        is_spoken.then(|| Self { pinned: self.pinned, is_session: true, agreed: Mutex::default() })
    }

    /// The revision settled on so far.
    pub fn agreed(&self) -> Option<Revision> {
        *locked(&self.agreed)
    }

    /// What the server supports, newest first, whatever this connection has settled on.
    pub fn supported(&self) -> Vec<&'static str> {
        match self.pinned {
            Some(revision) => vec![revision.as_str()],
            None => Revision::ALL.map(Revision::as_str).into(),
        }
    }

    /// Says in which revision to answer `request`, settling it if this is the first, or refuses.
    pub fn admit(&self, request: &Request) -> Result<Revision, RpcError> {
        let mut agreed = locked(&self.agreed);
        let revision = match (*agreed, self.pinned) {
            (Some(revision), _) if revision.is_stateless() => self.admit_stateless(request)?,
            (Some(revision), _) => self.admit_to_session(revision, request)?,
            // An answer to `ping` promises nothing.
            (None, pinned) if request.method == "ping" && declared_version(request).is_none() => {
                return Ok(pinned.unwrap_or(Revision::LATEST_HANDSHAKE));
            }
            (None, pinned) if request.method == "initialize" => initialize(pinned, request)?,
            (None, pinned) if pinned.is_some() || self.is_session => return Err(before_initialize(request)),
            (None, _) => self.admit_stateless(request)?,
        };
        *agreed = Some(revision);
        Ok(revision)
    }

    fn admit_stateless(&self, request: &Request) -> Result<Revision, RpcError> {
        // With the keys of a stateless request it is a method like others, and an unknown one.
        let is_handshake = request.method == "initialize" && declared_version(request).is_none();
        if is_handshake && self.pinned.is_none() {
            return Err(RpcError::new(
                INVALID_REQUEST,
                "this connection serves the stateless revision; start another one to initialize",
            ));
        }
        if is_handshake {
            // A client of the handshake era learns from this which versions would have done.
            let requested = request.params.get("protocolVersion").and_then(Value::as_str);
            return Err(self.unsupported(requested.unwrap_or_default()));
        }
        let requested = declared_version(request).ok_or_else(|| missing(PROTOCOL_VERSION_KEY))?;
        // The version comes first: another one may ask for other keys.
        let revision = Revision::parse(requested)
            .filter(|revision| revision.is_stateless())
            .ok_or_else(|| self.unsupported(requested))?;
        if !meta(&request.params).is_some_and(|meta| meta.get(CLIENT_CAPABILITIES_KEY).is_some_and(Value::is_object)) {
            return Err(missing(CLIENT_CAPABILITIES_KEY));
        }
        Ok(revision)
    }

    fn admit_to_session(&self, revision: Revision, request: &Request) -> Result<Revision, RpcError> {
        if request.method == "initialize" {
            return Err(RpcError::new(INVALID_REQUEST, "this connection is initialized already"));
        }
        // A server that knows one handshake revision only has never heard of these keys.
        if self.pinned.is_none() && declared_version(request).is_some() {
            return Err(RpcError::new(
                INVALID_REQUEST,
                format!("this connection was initialized at {revision}; start another one"),
            ));
        }
        Ok(revision)
    }

    fn unsupported(&self, requested: &str) -> RpcError {
        RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
            .with_data(json!({"supported": self.supported(), "requested": requested}))
    }
}

/// Agrees on a handshake revision: the one asked for if it can be had, else the newest.
fn initialize(pinned: Option<Revision>, request: &Request) -> Result<Revision, RpcError> {
    let requested = request
        .params
        .get("protocolVersion")
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params("`protocolVersion` must be a string"))?;
    let spoken = Revision::parse(requested).filter(|revision| !revision.is_stateless());
    Ok(pinned.or(spoken).unwrap_or(Revision::LATEST_HANDSHAKE))
}

fn before_initialize(request: &Request) -> RpcError {
    if request.method == "server/discover" {
        return RpcError::new(METHOD_NOT_FOUND, "unknown method `server/discover`");
    }
    RpcError::new(INVALID_REQUEST, "the first request must be `initialize`")
}

fn missing(key: &str) -> RpcError {
    RpcError::invalid_params(format!(
        "`params._meta` must have `{key}`, unless the connection begins with `initialize`"
    ))
}

/// The version that a request claims for itself, as only those of a stateless revision do.
pub fn declared_version(request: &Request) -> Option<&str> {
    meta(&request.params)?.get(PROTOCOL_VERSION_KEY)?.as_str()
}

fn meta(params: &Map<String, Value>) -> Option<&Map<String, Value>> {
    params.get("_meta")?.as_object()
}
