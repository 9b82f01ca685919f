//! `/mcp debug SERVER`: details, the connection steps, and counters of silent problems.

use wharf_client::{ConnectTrace, ConnectionCounters};

use super::details::render_sheets;
use super::resolve_configured;
use crate::slash::{CommandContext, ReplAction};
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::Failure;
use wharf_terminal::probe::{render_steps, trace_steps};
use wharf_terminal::style::{QUIET, paint};
use wharf_terminal::table::wrap;

pub fn run(server: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let name = resolve_configured(server, context)?;
    let mut text = render_sheets(name.as_str(), context).concat();
    if let Some(trace) = connect_trace(name.as_str(), context) {
        text.push_str(&format!(
            "  {}\n{}",
            paint(QUIET, "Connection steps:"),
            render_steps(&trace_steps(&trace), context.width())
        ));
    }
    let status = context.managed_host.host.status_of(name.as_str());
    if let Some(connected) = status.ok().and_then(|status| status.connected) {
        text.push_str(&format!("  {} {}\n", paint(QUIET, "Counters:"), format_counters(&connected.counters)));
    }
    for line in further_sources(name.as_str(), context) {
        text.push_str(&format!("{}\n", paint(QUIET, wrap(&format!("  {line}"), context.width()))));
    }
    context.print(text)
}

/// Returns the trace of the last connection attempt.
fn connect_trace(server: &str, context: &CommandContext<'_>) -> Option<ConnectTrace> {
    let host = &context.managed_host.host;
    match host.connection(server) {
        Ok(connection) => Some(connection.trace().clone()),
        Err(_) => host.status_of(server).ok()?.last_error?.trace().cloned(),
    }
}

/// Formats the non-zero counters.
fn format_counters(counters: &ConnectionCounters) -> String {
    let all = [
        (counters.notifications, "notifications"),
        (counters.noise, "lines that were not messages"),
        (counters.broken, "malformed messages"),
        (counters.oversized, "oversized messages"),
        (counters.unmatched, "unmatched responses"),
        (counters.unwanted_requests, "requests rejected"),
        (counters.stray_errors, "errors without a call"),
        (counters.stray_progress, "progress without a call"),
        (counters.strays, "notifications without a subscription"),
        (counters.turned_away, "server requests rejected over the limit"),
        (counters.unsent, "outgoing messages dropped"),
    ];
    let anomalies: Vec<String> =
        all.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if anomalies.is_empty() { "no anomalies".to_owned() } else { anomalies.join(", ") }
}

/// Lists further sources of information.
fn further_sources(server: &str, context: &CommandContext<'_>) -> Vec<String> {
    let session = context.managed_host.session;
    let log = session.configuration.state.as_deref().map(|state| {
        let file = state.join("logs").join(wharf::log_file_name(server));
        format!("log file: {} (wharf logs {server})", display_path(&file, &session.environment))
    });
    let messages = format!(
        "wire messages: wharf test {server} --debug. Set `debug: true` in its entry to show them here \
         after the next start of wharf"
    );
    log.into_iter().chain([messages]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_counters_are_omitted() {
        let mut counters = ConnectionCounters::default();
        assert_eq!(format_counters(&counters), "no anomalies");
        (counters.noise, counters.notifications) = (2, 7);
        assert_eq!(format_counters(&counters), "7 notifications, 2 lines that were not messages");
    }
}
