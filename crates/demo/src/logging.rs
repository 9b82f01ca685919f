//! Log messages to the client: level and format.

use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::message::{RpcError, lock_unpoisoned};
use super::revision::DemoRevision;

const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// The levels of RFC 5424, least severe first.
pub const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Initial level of a handshake client, which 2025-11-25 leaves to the server.
const INITIAL_LEVEL: usize = 1;

pub struct LogSettings {
    /// Minimum level to send, set by `logging/setLevel`.
    level: Mutex<usize>,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { level: Mutex::new(INITIAL_LEVEL) }
    }
}

impl LogSettings {
    /// Answers `logging/setLevel`.
    pub fn set_level(&self, params: &Map<String, Value>) -> Result<Value, RpcError> {
        *lock_unpoisoned(&self.level) = rank(params.get("level"))?;
        Ok(json!({}))
    }

    /// Reports whether the client wants messages of `level` during the request with `params`.
    ///
    /// A stateless request without a level wants none (2026-07-28 server/utilities/logging).
    pub fn wants(&self, level: &str, params: &Map<String, Value>, revision: DemoRevision) -> Result<bool, RpcError> {
        let severity = rank(Some(&level.into()))?;
        if !revision.is_stateless() {
            return Ok(severity >= *lock_unpoisoned(&self.level));
        }
        match params.get("_meta").and_then(|meta| meta.get(LOG_LEVEL_KEY)) {
            Some(wanted) => Ok(severity >= rank(Some(wanted))?),
            None => Ok(false),
        }
    }
}

/// Returns the notification of a log message.
pub fn log_notification(level: &str, message: &str) -> Value {
    let params = json!({"level": level, "logger": "harbour", "data": {"message": message}});
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
}

fn rank(level: Option<&Value>) -> Result<usize, RpcError> {
    let place = LEVELS.iter().position(|known| level.is_some_and(|level| level == known));
    place.ok_or_else(|| RpcError::invalid_params(format!("the level must be one of {}", LEVELS.join(", "))))
}
