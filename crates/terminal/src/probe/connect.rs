//! The steps of a probe: connects to an entry and examines the connection.

use std::time::Instant;

use wharf::catalog::{ListFreshness, ListName, NameStyle, Section, SectionInput, ServerLists, ToolFilter, ToolWarning};
use wharf::{Host, HostError, ServerError};
use wharf_auth::{Account, TokenSet};
use wharf_client::{CallError, ConnectStep, ConnectTrace, Connection, Listing, RequestOptions, WithheldEntry};
use wharf_spec::{Environment, HttpSpec, ServerEntry, ServerSpec, UntrustedText};

use super::{ProbeCode, ProbeFailure, ProbeResult, ProbeStep, ReadyServer, StepState};
use crate::accounts::{has_own_credentials, unix_millis_now};
use crate::age::{AgeText, ExpiryText};
use crate::clock::unix_time;
use crate::count_text::CountText;
use crate::failure::{Failure, unavailable_error};
use crate::one_shot_host::OneShotHost;
use crate::session::CommandSession;

/// Maximum number of evidence lines per step.
const MAX_EVIDENCE_LINES: usize = 40;
/// Maximum characters of an evidence line.
const MAX_EVIDENCE_LEN: usize = 400;

type ProbeConnection = Result<Connection, Box<ProbeFailure>>;

/// A server of a host that connects to it.
pub struct ProbeTarget {
    host: Host,
    entry: ServerEntry,
    account: Option<Account>,
    environment: Environment,
}

impl ProbeTarget {
    pub fn new(hosted: &OneShotHost<'_>, session: &CommandSession, entry: &ServerEntry) -> Self {
        let account = session.account(entry);
        Self { host: hosted.host.clone(), entry: entry.clone(), account, environment: session.environment.clone() }
    }

    /// Waits for the connection.
    async fn connect(&self) -> (Vec<ProbeStep>, ProbeConnection) {
        let Self { host, entry, account, environment } = self;
        let connected = host.wait_until_ready(entry.name.as_str()).await;
        let login = login_text(&entry.spec, account.as_ref()).await;
        let error = match connected {
            Ok(connection) => return (steps(connection.trace(), entry, login, None), Ok(connection)),
            Err(error) => error,
        };
        let (steps, failed) = failed_connection(entry, environment, &error, login);
        (steps, Err(failed))
    }

    /// Connects, pings the server and lists its items.
    pub async fn probe(&self) -> ProbeResult {
        let began = Instant::now();
        let (mut steps, connected) = self.connect().await;
        let outcome = match connected {
            Err(broken) => Err(broken),
            Ok(connection) => self.examine(&mut steps, &connection).await,
        };
        ProbeResult { steps, outcome, duration: began.elapsed() }
    }

    /// Pings and lists the server. Caches the lists, so that an agent knows the tools of a lazy server.
    async fn examine(
        &self,
        steps: &mut Vec<ProbeStep>,
        connection: &Connection,
    ) -> Result<ReadyServer, Box<ProbeFailure>> {
        ping(steps, connection).await?;
        let began = Instant::now();
        let listed = list(steps, connection).await?;
        // Fails only for an unknown server.
        let _ = self.host.cache_lists(self.entry.name.as_str(), &listed);
        let section = section(&self.entry, listed);
        steps.push(list_step(&section).with_duration(began.elapsed()));
        lint(steps, &section);
        check_output(steps, connection);
        let facts = connection.facts();
        Ok(ReadyServer { revision: facts.revision.to_string(), server_info: facts.server_info.clone(), section })
    }
}

/// Returns the successful steps of a connection attempt.
fn steps(trace: &ConnectTrace, entry: &ServerEntry, login: String, code: Option<ProbeCode>) -> Vec<ProbeStep> {
    let mut steps = trace_steps(trace);
    steps.retain(|step| step.state != StepState::Failed);
    if let ServerSpec::Http(spec) = &entry.spec {
        insert_http_steps(&mut steps, spec, login, code);
    }
    steps
}

/// Converts the steps of a connection attempt.
pub fn trace_steps(trace: &ConnectTrace) -> Vec<ProbeStep> {
    let convert = |step: &ConnectStep| {
        let name = stage(step.name);
        let detail = match (name, step.name) {
            ("path", _) | ("spawn", "spawn") | ("dial", "open") => step.detail.clone(),
            (_, own) => format!("{own}: {}", step.detail),
        };
        ProbeStep::new(name, step.outcome.into(), UntrustedText::new(detail)).with_duration(step.duration)
    };
    trace.steps.iter().map(convert).collect()
}

/// Maps a step of the trace to a step of the diagnosis.
fn stage(step: &str) -> &'static str {
    match step {
        "resolve" => "path",
        "spawn" | "respawn" => "spawn",
        "open" | "recall" | "fall back" => "dial",
        _ => "handshake",
    }
}

/// Inserts the steps of an HTTP server that the trace does not contain, as far as they succeeded: the connection opens
/// only with the handshake.
fn insert_http_steps(steps: &mut Vec<ProbeStep>, spec: &HttpSpec, login: String, code: Option<ProbeCode>) {
    let broke = code.map(ProbeCode::stage);
    if broke == Some("dial") {
        // At this point only the local HTTP client was set up.
        steps.retain(|step| step.name != "dial");
        return;
    }
    if spec.proxy.is_some() {
        let dialled = steps.iter_mut().filter(|step| step.name == "dial");
        dialled.for_each(|step| step.detail.push_str(", through the proxy"));
    }
    let after = steps.iter().position(|step| step.name == "handshake").unwrap_or(steps.len());
    let mut passed = Vec::new();
    if broke != Some("tls") {
        passed.push(ProbeStep::new("tls", StepState::Ok, encryption(spec)));
        if broke != Some("login") {
            passed.push(ProbeStep::new("login", StepState::Ok, login));
        }
    }
    steps.splice(after..after, passed);
}

fn encryption(spec: &HttpSpec) -> String {
    match (spec.url.scheme(), spec.extra_ca.len()) {
        ("http", _) => "not encrypted (http://)".to_owned(),
        (_, 0) => "certificate trusted by the system".to_owned(),
        (_, more) => format!("certificate trusted by the system or by {more} files of your own"),
    }
}

/// Describes the authentication in use.
async fn login_text(spec: &ServerSpec, account: Option<&Account>) -> String {
    if matches!(spec, ServerSpec::Http(spec) if has_own_credentials(spec)) {
        return "the configured authorization was accepted".to_owned();
    }
    let kept = match account {
        Some(account) => account.status().await.ok().and_then(|standing| standing.kept),
        None => None,
    };
    match kept.and_then(|kept| kept.tokens) {
        Some(TokenSet { expires_at: Some(at), .. }) if at <= unix_millis_now() => {
            format!("expired {}", AgeText(unix_time(at)))
        }
        Some(TokenSet { expires_at: Some(at), .. }) => format!("logged in, ends {}", ExpiryText(unix_time(at))),
        Some(_) => "logged in".to_owned(),
        None => "not required".to_owned(),
    }
}

/// Returns the steps of a failed connection, the failed one last.
fn failed_connection(
    entry: &ServerEntry,
    environment: &Environment,
    error: &HostError,
    login: String,
) -> (Vec<ProbeStep>, Box<ProbeFailure>) {
    let code = ProbeCode::from_host_error(error);
    let failure = Failure::from_host_error(entry.name.as_str(), Some(&entry.spec), environment, error);
    let trace = unavailable_error(error).and_then(ServerError::trace);
    let mut steps = trace.map_or_else(Vec::new, |trace| steps(trace, entry, login, Some(code)));
    let mut step = failed_step(trace, code, &failure);
    match (&entry.spec, code) {
        (ServerSpec::Stdio(_), ProbeCode::PathNotFound) => step.evidence.extend(search_evidence(&failure, environment)),
        (ServerSpec::Http(spec), _) => step.evidence.push(format!("URL: {}", spec.masked_url())),
        _ => {}
    }
    steps.push(step);
    (steps, Box::new(ProbeFailure { code, failure }))
}

/// Creates the failed step with the server's stderr.
fn failed_step(trace: Option<&ConnectTrace>, code: ProbeCode, failure: &Failure) -> ProbeStep {
    let duration = trace.and_then(ConnectTrace::failed_step).map(|step| step.duration).unwrap_or_default();
    let mut step = ProbeStep::new(code.stage(), StepState::Failed, UntrustedText::new(failure.error.message.as_str()))
        .with_duration(duration);
    step.evidence.extend(failure.error.stderr.iter().map(|line| format!("stderr: {}", escape_shortened(line))));
    step
}

/// Lists the searched places for the program.
fn search_evidence(failure: &Failure, environment: &Environment) -> Vec<String> {
    let path = environment.var("PATH").map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let hints = failure.hints.iter().skip(1).map(|hint| escape_shortened(hint));
    hints.chain([format!("PATH: {}", escape_shortened(&path))]).collect()
}

fn escape_shortened(text: &str) -> String {
    UntrustedText::new(text).truncate(MAX_EVIDENCE_LEN).to_string()
}

/// Pings the server. A server that rejects the ping is still alive.
///
/// # Errors
///
/// Fails if there is no response.
async fn ping(steps: &mut Vec<ProbeStep>, connection: &Connection) -> Result<(), Box<ProbeFailure>> {
    let began = Instant::now();
    let answered = connection.ping(RequestOptions::default()).await;
    let duration = began.elapsed();
    match answered {
        Ok(()) => steps.push(ProbeStep::new("ping", StepState::Ok, "responded").with_duration(duration)),
        Err(error) if error.is_error_response() => {
            steps.push(
                ProbeStep::new("ping", StepState::Detour, escape_shortened(&error.to_string())).with_duration(duration),
            );
        }
        Err(error) => {
            return Err(fail_step(steps, ProbeCode::PingFailed, Failure::from_call_error(connection, error), began));
        }
    }
    Ok(())
}

/// Adds a failed step and returns its failure.
fn fail_step(steps: &mut Vec<ProbeStep>, code: ProbeCode, failure: Failure, began: Instant) -> Box<ProbeFailure> {
    let step = failed_step(None, code, &failure);
    steps.push(step.with_duration(began.elapsed()));
    Box::new(ProbeFailure { code, failure })
}

/// Lists all items of the server.
///
/// # Errors
///
/// Fails if the tools cannot be listed. Failures of the other lists are recorded in the step.
async fn list(steps: &mut Vec<ProbeStep>, connection: &Connection) -> Result<ServerLists, Box<ProbeFailure>> {
    let began = Instant::now();
    let offered = &connection.facts().capabilities;
    let mut listed = ServerLists { freshness: ListFreshness::Live, ..ServerLists::default() };
    listed.instructions.clone_from(&connection.facts().instructions);
    if offered.tools {
        match connection.list_tools().await {
            Ok(listing) => listed.tools = take(&mut listed.withheld, ListName::Tools, listing),
            Err(error) => {
                return Err(fail_step(
                    steps,
                    ProbeCode::ListFailed,
                    Failure::from_call_error(connection, error),
                    began,
                ));
            }
        }
    }
    if offered.resources {
        let resources = connection.list_resources().await;
        listed.resources = take_or_record(&mut listed, ListName::Resources, resources);
        let templates = connection.list_templates().await;
        listed.templates = take_or_record(&mut listed, ListName::Templates, templates);
    }
    if offered.prompts {
        let prompts = connection.list_prompts().await;
        listed.prompts = take_or_record(&mut listed, ListName::Prompts, prompts);
    }
    Ok(listed)
}

fn take<T>(withheld: &mut Vec<(ListName, WithheldEntry)>, name: ListName, listing: Listing<T>) -> Vec<T> {
    withheld.extend(listing.withheld.into_iter().map(|item| (name, item)));
    listing.items
}

fn take_or_record<T>(listed: &mut ServerLists, name: ListName, listing: Result<Listing<T>, CallError>) -> Vec<T> {
    match listing {
        Ok(listing) => take(&mut listed.withheld, name, listing),
        Err(error) => {
            listed.failures.push((name, escape_shortened(&error.to_string())));
            Vec::new()
        }
    }
}

fn section(entry: &ServerEntry, listed: ServerLists) -> Section {
    let filter = &ToolFilter::from_settings(&entry.settings);
    let (server, trust) = (&entry.name, entry.settings.trust);
    Section::build(SectionInput { server, style: NameStyle::default(), filter, trust, inspector: None, listed })
}

fn list_step(section: &Section) -> ProbeStep {
    let counts = [
        CountText(section.tools.len(), "tool"),
        CountText(section.resources.len(), "resource"),
        CountText(section.templates.len(), "template"),
        CountText(section.prompts.len(), "prompt"),
    ];
    let some = counts.iter().filter(|CountText(count, noun)| *count > 0 || *noun == "tool");
    let filtered = (section.filtered > 0).then(|| format!("{} tools filtered out", section.filtered));
    let unmatched =
        section.unmatched.iter().map(|glob| format!("`{}` matches no tool", escape_shortened(glob.as_str())));
    let withheld = section.withheld.iter().map(|(list, item)| {
        let name = item.name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
        format!("{list}:{name} at position {} is withheld: {}", item.position + 1, item.reason)
    });
    let failures = section.failures.iter().map(|(list, why)| format!("cannot list {list}: {why}"));
    let evidence: Vec<String> = filtered.into_iter().chain(unmatched).chain(withheld).chain(failures).collect();
    let spoilt = !section.withheld.is_empty() || !section.failures.is_empty() || !section.unmatched.is_empty();
    let state = if spoilt { StepState::Detour } else { StepState::Ok };
    ProbeStep::new("list", state, some.map(ToString::to_string).collect::<Vec<_>>().join(", "))
        .with_evidence(limit_lines(evidence))
}

/// Records the tools with names or schemas that had to be adapted for models.
fn lint(steps: &mut Vec<ProbeStep>, section: &Section) {
    let mut odd: Vec<String> = Vec::new();
    for tool in &section.tools {
        let name = escape_shortened(&tool.id.tool);
        if !tool.description.name.ends_with(&*tool.id.tool) {
            odd.push(format!("{name}: offered to models as {}", tool.description.name));
        }
        let warnings = tool.marks.iter().filter(|mark| !matches!(mark, ToolWarning::OddName));
        odd.extend(warnings.map(|mark| format!("{name}: {mark}")));
    }
    let step = match odd.len() {
        0 => ProbeStep::new("schema", StepState::Ok, "no adaptation needed for models"),
        count => ProbeStep::new("schema", StepState::Detour, format_args!("{count} adaptations for models")),
    };
    steps.push(step.with_evidence(limit_lines(odd)));
}

/// Records lines of the server that are not messages, with the first ones as evidence.
fn check_output(steps: &mut Vec<ProbeStep>, connection: &Connection) {
    let counters = connection.counters();
    let detail = match counters.noise + counters.broken {
        0 => return,
        1 => "1 line that is not a message; log output belongs on stderr".to_owned(),
        count => format!("{count} lines that are not messages; log output belongs on stderr"),
    };
    let lines = connection.unreadable_lines().into_iter().map(|line| format!("stdout: {}", escape_shortened(&line)));
    steps.push(ProbeStep::new("stdout", StepState::Detour, detail).with_evidence(lines));
}

fn limit_lines(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(MAX_EVIDENCE_LINES);
    lines.truncate(MAX_EVIDENCE_LINES);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use wharf_client::{DisconnectCause, DisconnectReport, ProcessExit};
    use wharf_spec::{ServerName, StdioSpec};

    use super::*;
    use crate::failure::FailureKind;

    #[test]
    fn host_error_without_a_trace_has_a_code_and_a_failed_step() {
        let name = ServerName::new("git").unwrap();
        let entry = ServerEntry::new(name.clone(), ServerSpec::Stdio(StdioSpec::default()));
        let gone = DisconnectReport {
            cause: DisconnectCause::Exited,
            exit: Some(ProcessExit::Code(3)),
            stderr: vec!["no key".to_owned()],
            hint: None,
        };
        let late = |trouble: Option<ServerError>| HostError::NotInTime {
            server: name.clone(),
            what: "starting",
            after: Duration::from_secs(9),
            last_error: trouble.map(Arc::new),
        };
        for (error, code, kind, detail) in [
            (late(None), ProbeCode::HandshakeTimeout, FailureKind::TimedOut, "after 9 s"),
            (late(Some(ServerError::Lost(Arc::new(gone)))), ProbeCode::SpawnExited, FailureKind::Unreachable, "code 3"),
            (
                late(Some(ServerError::NotMade("no".to_owned()))),
                ProbeCode::HandshakeBroken,
                FailureKind::Unreachable,
                "no",
            ),
            (HostError::Closed, ProbeCode::HandshakeBroken, FailureKind::Unreachable, "closed"),
        ] {
            let (steps, failed) = failed_connection(&entry, &Environment::default(), &error, String::new());
            assert_eq!((failed.code, failed.failure.kind), (code, kind), "{error:?}");
            let [step] = &steps[..] else { panic!("{steps:?}") };
            assert_eq!((step.name, step.state), (code.stage(), StepState::Failed), "{error:?}");
            assert!(step.detail.contains(detail), "{step:?}");
        }
    }
}
