//! Tests of the supervisor: single decisions in tables, and random histories in a model.

mod model;
mod schedule;
mod table;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use wharf_client::{AuthRecovery, CallError, ConnectCause, ConnectError, ConnectTrace, NotAuthorized};
use wharf_spec::{ActivationState, BackoffSettings, ReconnectPolicy};

use super::step::{ClockReading, ServerActivity, SupervisionPolicy};
use crate::server_error::ServerError;

/// An eager server with retries and a health check every minute.
fn default_policy() -> SupervisionPolicy {
    SupervisionPolicy {
        admission: ActivationState::Enabled,
        lazy: false,
        reconnect: ReconnectPolicy::Backoff(BackoffSettings::default()),
        health_check: Some(Duration::from_secs(60)),
        idle_stop: Some(Duration::from_secs(600)),
    }
}

fn clock_reading(at: Instant) -> ClockReading {
    ClockReading { at, date: SystemTime::UNIX_EPOCH }
}

fn unused_since(last_used: Instant) -> ServerActivity {
    ServerActivity { in_flight: 0, held: 0, last_used }
}

fn transient_error() -> Arc<ServerError> {
    Arc::new(ServerError::Silent("nothing".to_owned()))
}

fn permanent_error() -> Arc<ServerError> {
    Arc::new(ServerError::NotMade("no such thing".to_owned()))
}

fn login_error() -> Arc<ServerError> {
    let cause = ConnectCause::Unauthorized { status: 401, challenge: None, why: None };
    let error = ConnectError { cause, trace: ConnectTrace::default(), stderr: Vec::new() };
    Arc::new(ServerError::NotConnected(Arc::new(error)))
}

/// A rejected call, with the remedy that the authorizer reports.
fn rejected_call(remedy: Option<AuthRecovery>) -> Arc<ServerError> {
    let why = remedy.map(|remedy| Box::new(NotAuthorized { remedy, reason: "it has ended".to_owned() }));
    Arc::new(ServerError::LoginRequired(CallError::Unauthorized {
        status: 401,
        challenge: None,
        said: String::new(),
        why,
    }))
}
