//! Arguments of the management tools, and their validation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use wharf_json::RawJson;
use wharf_spec::UntrustedText;
use wharf_tools::{ToolError, ToolErrorKind};

use crate::catalog::sanitize;
use crate::context::HostContext;
use crate::error::HostError;
use crate::polling::{DEFAULT_POLL_INTERVAL, MAX_POLL_INTERVAL, MIN_POLL_INTERVAL};
use crate::server::Server;
use crate::tool::to_tool_error;

/// Maximum bytes of a URI.
pub(super) const MAX_URI_BYTES: usize = 8 << 10;
/// Maximum bytes of other texts.
const MAX_TEXT_BYTES: usize = 1 << 10;
/// Maximum number of servers named in an error.
const MAX_NAMED_SERVERS: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    pub server: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadResourceArguments {
    pub server: String,
    pub uri: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscribeArguments {
    pub server: String,
    pub uri: String,
    pub reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UnsubscribeArguments {
    pub server: Option<String>,
    pub uri: Option<String>,
    pub subscription_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PollingArguments<'a> {
    pub r#type: PollKind,
    pub server: String,
    pub tool_name: Option<String>,
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
    pub uri: Option<String>,
    pub interval_ms: Option<f64>,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PollKind {
    Tool,
    Resource,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StopPollingArguments {
    pub subscription_id: Option<String>,
    pub server: Option<String>,
    pub target: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetPromptArguments {
    pub server: String,
    pub name: String,
    pub arguments: Option<BTreeMap<String, String>>,
}

/// Decodes the arguments of a call.
pub(super) fn decode_arguments<'a, T: Deserialize<'a>>(
    context: &HostContext,
    arguments: &'a RawJson,
) -> Result<T, ToolError> {
    arguments.decode(&context.options.limits.bounds).map_err(|odd| {
        invalid_call(format!("invalid arguments: {}", UntrustedText::new(odd.to_string()).truncate(300)))
    })
}

/// Returns the server of that name, unless a rule denies it entirely.
pub(super) fn permitted_server(context: &HostContext, name: &str) -> Result<Arc<Server>, ToolError> {
    let server = known_server(context, name)?;
    context.check_not_denied(&server).map_err(|denied| to_tool_error(&denied))?;
    Ok(server)
}

/// Returns the server of that name, or an error that names the existing ones.
pub(super) fn known_server(context: &HostContext, name: &str) -> Result<Arc<Server>, ToolError> {
    context.server(name).map_err(|unknown| match unknown {
        HostError::UnknownServer { .. } => to_tool_error(&unknown).with_next_action(server_list_hint(context)),
        other => to_tool_error(&other),
    })
}

fn server_list_hint(context: &HostContext) -> String {
    let servers = context.servers.load();
    let mut names: Vec<&str> = servers.keys().map(wharf_spec::ServerName::as_str).collect();
    names.sort_unstable();
    let more = if names.len() > MAX_NAMED_SERVERS { " and others" } else { "" };
    names.truncate(MAX_NAMED_SERVERS);
    match names.as_slice() {
        [] => "no servers are configured".to_owned(),
        names => format!("available servers: {}{more}", names.join(", ")),
    }
}

/// Checks the length and characters of a URI. Its meaning is up to the server.
pub(super) fn check_uri(uri: &str) -> Result<(), ToolError> {
    if uri.is_empty() || uri.len() > MAX_URI_BYTES {
        return Err(invalid_call(format!("the URI must have 1 to {MAX_URI_BYTES} bytes, but has {}", uri.len())));
    }
    if sanitize(uri, MAX_URI_BYTES).revealed || uri.contains(['\n', '\t', '\r']) {
        let shown = UntrustedText::new(uri);
        return Err(invalid_call(format!("the URI contains invisible characters: {}", shown.truncate(200))));
    }
    Ok(())
}

/// Checks the length of an optional text.
pub(super) fn check_text(what: &str, text: Option<&str>) -> Result<(), ToolError> {
    match text {
        Some(text) if text.len() > MAX_TEXT_BYTES => {
            Err(invalid_call(format!("`{what}` is longer than {MAX_TEXT_BYTES} bytes")))
        }
        _ => Ok(()),
    }
}

/// Returns the poll interval, or the default.
pub(super) fn poll_interval(millis: Option<f64>) -> Result<Duration, ToolError> {
    let Some(millis) = millis else { return Ok(DEFAULT_POLL_INTERVAL) };
    let found = Duration::try_from_secs_f64(millis / 1000.0).ok();
    let fits = found.filter(|interval| (MIN_POLL_INTERVAL..=MAX_POLL_INTERVAL).contains(interval));
    fits.ok_or_else(|| {
        invalid_call(format!(
            "`intervalMs` must be between {} and {}",
            MIN_POLL_INTERVAL.as_millis(),
            MAX_POLL_INTERVAL.as_millis()
        ))
    })
}

/// Creates the error of an invalid call.
pub(super) fn invalid_call(message: impl Into<String>) -> ToolError {
    ToolError::new(ToolErrorKind::Failed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poll_interval_out_of_range_is_rejected() {
        for (millis, expected) in [
            (None, Some(5_000)),
            (Some(1_000.0), Some(1_000)),
            (Some(1_500.5), Some(1_500)),
            (Some(86_400_000.0), Some(86_400_000)),
            (Some(999.9), None),
            (Some(0.0), None),
            (Some(-5_000.0), None),
            (Some(1e300), None),
            (Some(f64::NAN), None),
        ] {
            let found = poll_interval(millis).ok().map(|interval| interval.as_millis());
            assert_eq!(found, expected, "{millis:?}");
        }
    }

    #[test]
    fn empty_long_or_deceptive_uris_are_rejected() {
        for (uri, fits) in [
            ("file:///etc/passwd", true),
            ("no scheme at all", true),
            ("ünï:code", true),
            (&"a".repeat(MAX_URI_BYTES), true),
            (&"a".repeat(MAX_URI_BYTES + 1), false),
            ("", false),
            ("a:\u{202e}b", false),
            ("a:\nb", false),
            ("a:\r\nb", false),
            ("a:\u{1b}[2J", false),
            ("a:\u{e0041}", false),
        ] {
            assert_eq!(check_uri(uri).is_ok(), fits, "{uri:?}");
        }
    }
}
