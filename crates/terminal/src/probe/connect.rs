//! The steps of a probe: connects to an entry and examines the connection.

use std::time::Instant;

use wharf::Host;
use wharf::catalog::{ListFreshness, ListName, NameStyle, Section, SectionInput, ServerLists, ToolFilter, ToolWarning};
use wharf_auth::{Account, TokenSet};
use wharf_client::{CallError, ConnectTrace, Connection, Listing, RequestOptions, WithheldEntry};
use wharf_spec::{Environment, HttpSpec, ServerEntry, ServerSpec, UntrustedText};

use super::{ProbeCode, ProbeFailure, ProbeResult, ProbeStep, ReadyServer, StepState};
use crate::accounts::{has_own_credentials, unix_millis_now};
use crate::age::{AgeText, ExpiryText};
use crate::clock::unix_time;
use crate::failure::{Failure, FailureKind};
use crate::one_shot_host::{OneShotHost, connect_error};
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
    surroundings: Environment,
}

impl ProbeTarget {
    pub fn new(hosted: &OneShotHost<'_>, session: &CommandSession, entry: &ServerEntry) -> Self {
        let account = session.account(entry);
        Self { host: hosted.host.clone(), entry: entry.clone(), account, surroundings: session.surroundings.clone() }
    }

    /// Waits for the connection.
    async fn connect(&self) -> (Vec<ProbeStep>, ProbeConnection) {
        let Self { host, entry, account, surroundings } = self;
        let connected = host.wait_until_ready(entry.name.as_str()).await;
        let login = login_text(&entry.spec, account.as_ref()).await;
        let error = match connected {
            Ok(connection) => return (steps(connection.trace(), entry, login, None), Ok(connection)),
            Err(error) => error,
        };
        let Some(error) = connect_error(&error) else {
            let failure = Failure::new(FailureKind::Unreachable, &error).about_server(entry.name.as_str());
            return (Vec::new(), Err(Box::new(ProbeFailure { code: ProbeCode::HandshakeBroken, failure })));
        };
        let code = ProbeCode::from_cause(&error.cause);
        let mut steps = steps(&error.trace, entry, login, Some(code));
        let failure = Failure::from_connect_error(entry.name.as_str(), &entry.spec, surroundings, &**error);
        steps.push(failed_step(&error.trace, code, &failure, (entry, surroundings)));
        (steps, Err(Box::new(ProbeFailure { code, failure })))
    }

    /// Connects, pings the server and lists its items.
    pub async fn probe(&self) -> ProbeResult {
        let began = Instant::now();
        let (mut steps, connected) = self.connect().await;
        let outcome = match connected {
            Err(broken) => Err(broken),
            Ok(connection) => examine(&mut steps, &self.entry, &connection).await,
        };
        ProbeResult { steps, outcome, took: began.elapsed() }
    }
}

async fn examine(
    steps: &mut Vec<ProbeStep>,
    entry: &ServerEntry,
    connection: &Connection,
) -> Result<ReadyServer, Box<ProbeFailure>> {
    ping(steps, connection).await?;
    let section = list(steps, entry, connection).await?;
    lint(steps, &section);
    let facts = connection.facts();
    Ok(ReadyServer { revision: facts.revision.to_string(), server_info: facts.server_info.clone(), section })
}

/// Converts the successful steps of the trace.
fn steps(trace: &ConnectTrace, entry: &ServerEntry, login: String, code: Option<ProbeCode>) -> Vec<ProbeStep> {
    let mut steps: Vec<ProbeStep> = Vec::new();
    for step in trace.steps.iter().filter(|step| step.outcome != wharf_client::StepOutcome::Failed) {
        let name = stage(step.name);
        let detail = match (name, step.name) {
            ("path", _) | ("spawn", "spawn") | ("dial", "open") => step.detail.clone(),
            (_, own) => format!("{own}: {}", step.detail),
        };
        steps.push(ProbeStep::new(name, step.outcome.into(), UntrustedText::new(detail)).with_duration(step.duration));
    }
    if let ServerSpec::Http(spec) = &entry.spec {
        insert_http_steps(&mut steps, spec, login, code);
    }
    steps
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

/// Creates the failed step with all its evidence.
fn failed_step(
    trace: &ConnectTrace,
    code: ProbeCode,
    failure: &Failure,
    (entry, around): (&ServerEntry, &Environment),
) -> ProbeStep {
    let took = trace.failed_step().map(|step| step.duration).unwrap_or_default();
    let mut step = ProbeStep::new(code.stage(), StepState::Failed, UntrustedText::new(failure.error.message.as_str()))
        .with_duration(took);
    step.evidence.extend(failure.error.stderr.iter().map(|line| format!("stderr: {}", escape_shortened(line))));
    match (&entry.spec, code) {
        (ServerSpec::Stdio(_), ProbeCode::PathNotFound) => step.evidence.extend(search_evidence(failure, around)),
        (ServerSpec::Http(spec), _) => step.evidence.push(format!("URL: {}", spec.masked_url())),
        _ => {}
    }
    step
}

/// Lists the searched places for the program.
fn search_evidence(failure: &Failure, around: &Environment) -> Vec<String> {
    let path = around.var("PATH").map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
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
    let took = began.elapsed();
    match answered {
        Ok(()) => steps.push(ProbeStep::new("ping", StepState::Ok, "responded").with_duration(took)),
        Err(error) if error.is_refusal() => {
            steps.push(
                ProbeStep::new("ping", StepState::Detour, escape_shortened(&error.to_string())).with_duration(took),
            );
        }
        Err(error) => return Err(fail_step(steps, connection, (ProbeCode::PingFailed, error), began)),
    }
    Ok(())
}

fn fail_step(
    steps: &mut Vec<ProbeStep>,
    connection: &Connection,
    (code, error): (ProbeCode, CallError),
    began: Instant,
) -> Box<ProbeFailure> {
    let failure = Failure::from_call_error(connection, error);
    let step = ProbeStep::new(code.stage(), StepState::Failed, UntrustedText::new(failure.error.message.as_str()));
    let stderr = failure.error.stderr.iter().map(|line| format!("stderr: {}", escape_shortened(line)));
    steps.push(step.with_duration(began.elapsed()).with_evidence(stderr));
    Box::new(ProbeFailure { code, failure })
}

/// Lists all items of the server.
///
/// # Errors
///
/// Fails if the tools cannot be listed. Failures of the other lists are recorded in the step.
async fn list(
    steps: &mut Vec<ProbeStep>,
    entry: &ServerEntry,
    connection: &Connection,
) -> Result<Section, Box<ProbeFailure>> {
    let began = Instant::now();
    let offered = &connection.facts().capabilities;
    let mut listed = ServerLists { freshness: ListFreshness::Live, ..ServerLists::default() };
    if offered.tools {
        match connection.list_tools().await {
            Ok(listing) => listed.tools = take(&mut listed.withheld, ListName::Tools, listing),
            Err(error) => return Err(fail_step(steps, connection, (ProbeCode::ListFailed, error), began)),
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
    let section = section(entry, listed);
    steps.push(list_step(&section).with_duration(began.elapsed()));
    Ok(section)
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
        (section.tools.len(), "tool", "tools"),
        (section.resources.len(), "resource", "resources"),
        (section.templates.len(), "template", "templates"),
        (section.prompts.len(), "prompt", "prompts"),
    ];
    let told = |(count, one, many)| format!("{count} {}", if count == 1 { one } else { many });
    let some = counts.into_iter().filter(|(count, one, _)| *count > 0 || *one == "tool");
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
    ProbeStep::new("list", state, some.map(told).collect::<Vec<_>>().join(", ")).with_evidence(limit_lines(evidence))
}

/// Records the tools with names or schemas that had to be adapted for models.
fn lint(steps: &mut Vec<ProbeStep>, section: &Section) {
    let mut odd: Vec<String> = Vec::new();
    for tool in &section.tools {
        let name = escape_shortened(&tool.id.tool);
        if !tool.description.name.ends_with(&*tool.id.tool) {
            odd.push(format!("{name}: offered to models as {}", tool.description.name));
        }
        let said = tool.marks.iter().filter(|mark| !matches!(mark, ToolWarning::OddName));
        odd.extend(said.map(|mark| format!("{name}: {mark}")));
    }
    let step = match odd.len() {
        0 => ProbeStep::new("schema", StepState::Ok, "no adaptation needed for models"),
        count => ProbeStep::new("schema", StepState::Detour, format_args!("{count} adaptations for models")),
    };
    steps.push(step.with_evidence(limit_lines(odd)));
}

fn limit_lines(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(MAX_EVIDENCE_LINES);
    lines.truncate(MAX_EVIDENCE_LINES);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}
