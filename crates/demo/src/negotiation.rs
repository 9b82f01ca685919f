//! Negotiates the revision of a connection and admits requests.
//!
//! The first valid request determines the era for the connection's lifetime (2026-07-28 basic/versioning, "Backward
//! Compatibility"). A rejected request determines nothing, so a client with a rejected version can still send
//! `initialize`.

use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::message::{
    INVALID_REQUEST, IncomingRequest, METHOD_NOT_FOUND, RpcError, UNSUPPORTED_VERSION, lock_unpoisoned,
};
use super::revision::DemoRevision;

pub const PROTOCOL_VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub const CLIENT_CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

pub struct RevisionNegotiation {
    /// The only supported revision, if restricted.
    pinned: Option<DemoRevision>,
    /// True if the connection must begin with `initialize`, regardless of the other revisions.
    is_session: bool,
    /// The negotiated revision.
    agreed: Mutex<Option<DemoRevision>>,
}

impl RevisionNegotiation {
    pub fn new(pinned: Option<DemoRevision>) -> Self {
        // A stateless server has nothing to negotiate.
        let agreed = pinned.filter(|revision| revision.is_stateless());
        Self { pinned, is_session: false, agreed: Mutex::new(agreed) }
    }

    /// Creates the negotiation of a single stateless request.
    pub fn for_request(&self) -> Option<Self> {
        let revision = self.pinned.unwrap_or(DemoRevision::LATEST);
        let agreed = revision.is_stateless().then_some(revision);
        agreed.map(|_| Self { pinned: self.pinned, is_session: false, agreed: Mutex::new(agreed) })
    }

    /// Creates the negotiation of a session that begins with `initialize`.
    pub fn for_session(&self) -> Option<Self> {
        let is_spoken = !self.pinned.is_some_and(DemoRevision::is_stateless);
        is_spoken.then(|| Self { pinned: self.pinned, is_session: true, agreed: Mutex::default() })
    }

    /// Returns the negotiated revision, if there is one yet.
    pub fn negotiated(&self) -> Option<DemoRevision> {
        *lock_unpoisoned(&self.agreed)
    }

    /// Returns the supported revisions, newest first, regardless of the negotiated one.
    pub fn supported(&self) -> Vec<&'static str> {
        match self.pinned {
            Some(revision) => vec![revision.as_str()],
            None => DemoRevision::ALL.map(DemoRevision::as_str).into(),
        }
    }

    /// Returns the revision to answer `request` in, and negotiates it on the first request.
    ///
    /// # Errors
    ///
    /// Fails if the request is not valid on this connection.
    pub fn admit(&self, request: &IncomingRequest) -> Result<DemoRevision, RpcError> {
        let mut agreed = lock_unpoisoned(&self.agreed);
        let revision = match (*agreed, self.pinned) {
            (Some(revision), _) if revision.is_stateless() => self.admit_stateless(request)?,
            (Some(revision), _) => self.admit_to_session(revision, request)?,
            // A reply to `ping` determines nothing.
            (None, pinned) if request.method == "ping" && declared_version(request).is_none() => {
                return Ok(pinned.unwrap_or(DemoRevision::LATEST_HANDSHAKE));
            }
            (None, pinned) if request.method == "initialize" => initialize(pinned, request)?,
            (None, pinned) if pinned.is_some() || self.is_session => return Err(before_initialize(request)),
            (None, _) => self.admit_stateless(request)?,
        };
        *agreed = Some(revision);
        Ok(revision)
    }

    fn admit_stateless(&self, request: &IncomingRequest) -> Result<DemoRevision, RpcError> {
        // With the keys of a stateless request, `initialize` is an unknown method like any other.
        let is_handshake = request.method == "initialize" && declared_version(request).is_none();
        if is_handshake && self.pinned.is_none() {
            return Err(RpcError::new(
                INVALID_REQUEST,
                "this connection serves the stateless revision; start another one to initialize",
            ));
        }
        if is_handshake {
            // This tells a handshake client which versions are supported.
            let requested = request.params.get("protocolVersion").and_then(Value::as_str);
            return Err(self.unsupported(requested.unwrap_or_default()));
        }
        let requested = declared_version(request).ok_or_else(|| missing_key(PROTOCOL_VERSION_KEY))?;
        // Check the version first: another version may require other keys.
        let revision = DemoRevision::parse(requested)
            .filter(|revision| revision.is_stateless())
            .ok_or_else(|| self.unsupported(requested))?;
        if !meta(&request.params).is_some_and(|meta| meta.get(CLIENT_CAPABILITIES_KEY).is_some_and(Value::is_object)) {
            return Err(missing_key(CLIENT_CAPABILITIES_KEY));
        }
        Ok(revision)
    }

    fn admit_to_session(&self, revision: DemoRevision, request: &IncomingRequest) -> Result<DemoRevision, RpcError> {
        if request.method == "initialize" {
            return Err(RpcError::new(INVALID_REQUEST, "this connection is initialized already"));
        }
        // A server that supports only one handshake revision does not know these keys.
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

/// Negotiates a handshake revision: the requested one if supported, otherwise the newest.
fn initialize(pinned: Option<DemoRevision>, request: &IncomingRequest) -> Result<DemoRevision, RpcError> {
    let requested = request
        .params
        .get("protocolVersion")
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params("`protocolVersion` must be a string"))?;
    let spoken = DemoRevision::parse(requested).filter(|revision| !revision.is_stateless());
    Ok(pinned.or(spoken).unwrap_or(DemoRevision::LATEST_HANDSHAKE))
}

fn before_initialize(request: &IncomingRequest) -> RpcError {
    if request.method == "server/discover" {
        return RpcError::new(METHOD_NOT_FOUND, "unknown method `server/discover`");
    }
    RpcError::new(INVALID_REQUEST, "the first request must be `initialize`")
}

fn missing_key(key: &str) -> RpcError {
    RpcError::invalid_params(format!(
        "`params._meta` must have `{key}`, unless the connection begins with `initialize`"
    ))
}

/// Returns the version that a stateless request declares.
pub fn declared_version(request: &IncomingRequest) -> Option<&str> {
    meta(&request.params)?.get(PROTOCOL_VERSION_KEY)?.as_str()
}

fn meta(params: &Map<String, Value>) -> Option<&Map<String, Value>> {
    params.get("_meta")?.as_object()
}
