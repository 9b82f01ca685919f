//! `wharf answer`: answers a question of a running gateway for its client.

use serde_json::json;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::gateway_socket::GatewayRequest;
use wharf_terminal::question::from_answers;
use wharf_terminal::session::{CommandSession, JsonArgs};
use wharf_terminal::style::{GOOD, NAME, paint};
use wharf_wire::{Elicitation, ElicitationResponse, JsonLimits, RawJson, View as _};

use super::questions;
use super::serve::gateway_request;
use super::serve::open_questions::{OpenQuestion, OpenQuestionKind, parse_id};

/// Answer a question of `wharf questions`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An answer holds only for the client that waits: `allow` for this call, `session` for this tool until \
the client's session ends. Neither writes a rule. The client's own answer is ignored afterwards.

Examples:
  wharf questions
  wharf answer 4f9a1c allow
  wharf answer 4f9a1c email=ada@example.org nights=3
  wharf answer 4f9a1c decline")]
pub struct AnswerArgs {
    /// Number of the question in `wharf questions`
    #[arg(value_name = "QUESTION")]
    id: String,
    /// For a permission: allow, session or deny. For a form: FIELD=VALUE, FIELD:=JSON or a JSON object. For a page: accept.
    /// For both: decline or cancel
    #[arg(value_name = "ANSWER", required = true)]
    answers: Vec<String>,
    #[command(flatten)]
    pub output: JsonArgs,
}

pub async fn run(args: &AnswerArgs, session: &CommandSession) -> CommandResult {
    session.configuration.config()?;
    let question = questions::find(session, &args.id).await?;
    let response = match question.kind {
        OpenQuestionKind::Permission => permission_response(&question, &args.answers)?,
        _ => form_response(&question, &args.answers, session)?,
    };
    let id = parse_id(&question.id).ok_or_else(|| Failure::other("the gateway did not understand the request"))?;
    let answer = response.to_raw().as_str().to_owned();
    gateway_request(session, GatewayRequest::Answer { id, answer }).await?;
    if session.console.mode.json {
        session.console.print_document(true, &json!({"answered": question.id}))?;
    } else {
        session.console.say(format_args!("{} {}", paint(GOOD, "Answered"), paint(NAME, &question.id)));
    }
    Ok(CommandEnding::Fine)
}

fn permission_response(question: &OpenQuestion, answers: &[String]) -> Result<ElicitationResponse, Failure> {
    let words: Vec<&str> = answers.iter().map(String::as_str).collect();
    let decision = match words[..] {
        ["allow"] => "once",
        ["session"] => "session",
        ["deny"] => "no",
        _ => return Err(Failure::usage("a question for permission is answered with allow, session or deny")),
    };
    if !question.choices.iter().any(|choice| choice == decision) {
        return Err(Failure::usage("this client has no session, so each of its calls is allowed on its own")
            .with_hint(format!("wharf answer {} allow", question.id)));
    }
    Ok(ElicitationResponse::Accept(Some(RawJson::new_unchecked(json!({ "decision": decision }).to_string()))))
}

fn form_response(
    question: &OpenQuestion,
    answers: &[String],
    session: &CommandSession,
) -> Result<ElicitationResponse, Failure> {
    match (question.kind, answers) {
        (_, [word]) if word == "decline" => return Ok(ElicitationResponse::Decline),
        (_, [word]) if word == "cancel" => return Ok(ElicitationResponse::Cancel),
        (OpenQuestionKind::Page, [word]) if word == "accept" => return Ok(ElicitationResponse::Accept(None)),
        (OpenQuestionKind::Page, _) => {
            return Err(Failure::usage("a page is answered with accept, decline or cancel"));
        }
        (OpenQuestionKind::Sampling | OpenQuestionKind::Roots, _) => {
            return Err(Failure::usage("only the client can answer this question"));
        }
        _ => {}
    }
    let form = question.form.as_ref().map(|form| RawJson::new_unchecked(form.to_string()));
    let form = form.and_then(|form| Elicitation::from_raw(form, &JsonLimits::default()).ok());
    let form = form.ok_or_else(|| {
        Failure::usage("the form is too large or cannot be read")
            .with_hint(format!("answer it in the client, or decline it: wharf answer {} decline", question.id))
    })?;
    from_answers(&form, answers, &session.environment.cwd).map_err(|failure| {
        Failure::usage(failure.error.message.replace("--answer", "the answer"))
            .with_hint(format!("`wharf questions {}` shows the fields; answer with FIELD=VALUE", question.id))
    })
}
