//! `wharf questions`: what the calls of clients of a running gateway wait for.

use std::time::Duration;

use wharf_spec::UntrustedText;
use wharf_terminal::clock::DurationText;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure, gutter};
use wharf_terminal::gateway_socket::GatewayRequest;
use wharf_terminal::session::{CommandSession, JsonArgs};
use wharf_terminal::style::{HEADING, NAME, QUIET, paint};
use wharf_terminal::suggestions::suggestion;
use wharf_terminal::table::wrap;
use wharf_wire::{Elicitation, JsonLimits, RawJson, View as _};

use super::serve::gateway_request;
use super::serve::open_questions::{OpenQuestion, OpenQuestionKind, OpenQuestions, parse_id};

/// Maximum characters of a client's text beside other text.
const MAX_INLINE_CHARS: usize = 60;

/// Show what clients of `wharf serve` wait for
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Shows the calls of clients of `wharf serve` that wait for your permission, and questions of servers that a client has \
not answered. A call of a client that cannot be asked waits for as long as `serve.waitForAnswerMs` of your \
configuration says; by default it is refused at once. Known secrets are masked.

Examples:
  wharf questions
  wharf questions 4f9a1c
  wharf answer 4f9a1c allow")]
pub struct QuestionsArgs {
    /// Show this question in full
    #[arg(value_name = "QUESTION")]
    id: Option<String>,
    #[command(flatten)]
    pub output: JsonArgs,
}

pub async fn run(args: &QuestionsArgs, session: &CommandSession) -> CommandResult {
    session.configuration.config()?;
    let questions = match &args.id {
        Some(id) => OpenQuestions { items: vec![find(session, id).await?], more: 0 },
        None => request(session, None).await?,
    };
    if session.console.mode.json {
        session.console.print_document(true, &questions)?;
        return Ok(CommandEnding::Fine);
    }
    if questions.items.is_empty() {
        session.console.say("No questions wait for an answer.");
    }
    for question in &questions.items {
        let text = wrap(&describe(question), session.console.stdout_width());
        session.console.print(format_args!("{text}\n"))?;
    }
    if questions.more > 0 {
        session.console.say(format_args!("and {} more", questions.more));
    }
    Ok(CommandEnding::Fine)
}

/// Returns the question with this number in full.
///
/// # Errors
///
/// Fails if no gateway runs, or no such question is open.
pub async fn find(session: &CommandSession, id: &str) -> Result<OpenQuestion, Failure> {
    let number = parse_id(id);
    let found = match number {
        Some(number) => request(session, Some(number)).await?.items.pop(),
        None => None,
    };
    if let Some(found) = found {
        return Ok(found);
    }
    let open = request(session, None).await?;
    let message = format!("no question {} is open; it may have been answered", UntrustedText::new(id).truncate(40));
    Err(match open.items.is_empty() {
        true => Failure::usage(message).with_hint("`wharf questions` lists questions while calls wait for them"),
        false => Failure::usage(message).with_hint(suggestion(id, open.items.iter().map(|item| item.id.as_str()))),
    })
}

async fn request(session: &CommandSession, id: Option<u64>) -> Result<OpenQuestions, Failure> {
    let (_, result) = gateway_request(session, GatewayRequest::Questions { id }).await?;
    serde_json::from_value(result).map_err(Failure::other)
}

fn describe(question: &OpenQuestion) -> String {
    let time = |millis: u64| DurationText(Duration::from_millis(millis));
    let OpenQuestion { id, client, principal, project, server, target, .. } = question;
    let subject = match question.kind {
        OpenQuestionKind::Permission => "permission to call",
        OpenQuestionKind::Form => "a form of the server, in a call of",
        OpenQuestionKind::Page => "a page of the server, in a call of",
        OpenQuestionKind::Sampling => "the use of a model, in a call of",
        OpenQuestionKind::Roots => "the roots, in a call of",
    };
    // Short enough that a terminal does not break it into a line of its own.
    let escape = |text: &str| UntrustedText::new(text).truncate(MAX_INLINE_CHARS).to_string();
    let mut text = format!(
        "{}  {subject} {} on {}\n  {} {} ({}), {}\n  {} {} ago, for {} more\n",
        paint(HEADING, id),
        paint(NAME, escape(target)),
        escape(server),
        paint(QUIET, "client:"),
        escape(client),
        escape(principal),
        UntrustedText::new(project.as_str()),
        paint(QUIET, "asked:"),
        time(question.age_ms),
        time(question.time_left_ms),
    );
    for (label, content) in [
        ("arguments", &question.arguments),
        ("reason", &question.reason),
        ("changed definition", &question.changed),
        ("message", &question.message),
        ("page", &question.url),
        ("fields", &field_names(question)),
    ] {
        let Some(content) = content else { continue };
        text.push_str(&format!("  {}\n", paint(QUIET, format_args!("{label}:"))));
        content.lines().for_each(|line| text.push_str(&format!("{}\n", gutter(line))));
    }
    if question.is_shortened {
        text.push_str(&format!("  the arguments are longer than shown; `wharf questions {id}` shows up to 64 KiB\n"));
    }
    text.push_str(&format!("  {} {}", paint(QUIET, "next:"), next_step(question)));
    text
}

/// Returns the names of the fields of a form, one per line.
fn field_names(question: &OpenQuestion) -> Option<String> {
    let raw = RawJson::new_unchecked(question.form.as_ref()?.to_string());
    match Elicitation::from_raw(raw, &JsonLimits::default()) {
        Ok(Elicitation::Form(form)) => Some(
            form.fields.iter().map(|field| UntrustedText::new(&field.name).to_string()).collect::<Vec<_>>().join("\n"),
        ),
        _ => None,
    }
}

fn next_step(question: &OpenQuestion) -> String {
    let id = &question.id;
    match question.kind {
        OpenQuestionKind::Permission => {
            let has_session = question.choices.iter().any(|choice| choice == "session");
            format!("wharf answer {id} {}", if has_session { "allow|session|deny" } else { "allow|deny" })
        }
        OpenQuestionKind::Form => format!("wharf answer {id} FIELD=VALUE…, or decline, or cancel"),
        OpenQuestionKind::Page => format!("open the page, then wharf answer {id} accept, or decline, or cancel"),
        OpenQuestionKind::Sampling | OpenQuestionKind::Roots => "only the client can answer".to_owned(),
    }
}
