//! Scenes with messages from the server: a question, a change notification, the status of a task.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wharf_client::{
    BoxedFuture, ClientServices, Connection, Elicitor, Event, RequestOptions, RequestSource, Started, TaskOptions,
};
use wharf_spec::UntrustedText;
use wharf_wire::{Elicitation, ElicitationResponse, Interest, Task, UrlRequest};

use super::demo_servers::{AnswerSource, DemoServers};
use super::scenes::{call_tool, ensure, error_text, raw, result_line};
use super::tour::SceneResult;
use wharf_terminal::content::resource_text;

const TIDE_URI: &str = "harbour://tide";
/// Timeout for a change notification.
const EVENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Records the questions of servers, for the scene to show.
#[derive(Clone, Default)]
pub struct QuestionRecorder(Arc<Mutex<Vec<String>>>);

impl QuestionRecorder {
    /// Wraps the elicitor of these services so that its questions are recorded.
    pub fn wrap(mut services: ClientServices) -> (Self, ClientServices) {
        let recorder = Self::default();
        if let Some(person) = services.elicitation.take() {
            services = services.elicitation(RecordingElicitor { person, recorder: recorder.clone() });
        }
        (recorder, services)
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct RecordingElicitor {
    person: Arc<dyn Elicitor>,
    recorder: QuestionRecorder,
}

impl Elicitor for RecordingElicitor {
    fn supports_pages(&self) -> bool {
        self.person.supports_pages()
    }

    fn elicit(&self, source: RequestSource<'_>, question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        let text = match &question {
            Elicitation::Form(form) => format!("{} ({} fields)", form.message, form.fields.len()),
            Elicitation::Url(page) => page.message.clone(),
        };
        let text = UntrustedText::new(text).truncate(200).to_string();
        self.recorder.0.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{} asks: {text}", source.server));
        self.person.elicit(source, question)
    }

    fn wait_for_page(&self, source: RequestSource<'_>, page: &UrlRequest) -> BoxedFuture<()> {
        self.person.wait_for_page(source, page)
    }
}

pub async fn question(cast: &DemoServers<'_>) -> SceneResult {
    let answer = call_tool(cast.north(), "book_berth", "{}").await?;
    let mut lines: Vec<String> = cast.recorder.take().iter().map(|asked| format!("book_berth  →  {asked}")).collect();
    ensure(lines.len() == 1, "book_berth should ask once")?;
    if cast.answers == AnswerSource::Tour {
        lines.push(
            "the tour answers with the server's defaults and an email address; use --ask to answer yourself".to_owned(),
        );
        ensure(result_line(&answer).starts_with("Booked: "), "the berth should be booked")?;
    }
    lines.push(format!("→  {}", result_line(&answer)));
    Ok(lines)
}

/// Watches a resource with the newest and the oldest revision, which subscribe differently.
pub async fn watch(cast: &DemoServers<'_>) -> SceneResult {
    let mut lines = Vec::new();
    for server in [cast.north(), cast.west()] {
        lines.push(raise_tide(server).await?);
    }
    Ok(lines)
}

async fn raise_tide(server: &Connection) -> Result<String, String> {
    let interest = Interest { uris: vec![TIDE_URI.to_owned()], ..Interest::default() };
    let mut subscription = server.subscribe(interest).await.map_err(error_text)?;
    let raised = result_line(&call_tool(server, "raise_tide", "{}").await?);
    let event = tokio::time::timeout(EVENT_TIMEOUT, subscription.next()).await;
    let event = event.map_err(|_| "no change notification arrived")?.map_err(error_text)?;
    ensure(matches!(&event, Event::Resource(uri) if uri == TIDE_URI), "the tide should have changed")?;
    let read = server.read_resource(TIDE_URI, RequestOptions::default()).await.map_err(error_text)?;
    let read = UntrustedText::new(read.contents.iter().map(resource_text).collect::<String>()).to_string();
    ensure(read == raised, "reading should return the new value")?;
    Ok(format!("{}: raise_tide  →  {TIDE_URI} changed  →  {read}", server.facts().name))
}

pub async fn task(cast: &DemoServers<'_>) -> SceneResult {
    let arguments = raw(r#"{"containers":3,"interval_ms":40}"#)?;
    let started =
        cast.north().start_task("unload_ship", &arguments, TaskOptions::default()).await.map_err(error_text)?;
    let Started::Task(task) = started else { return Err("unload_ship should become a task".to_owned()) };
    let words = Arc::new(Mutex::new(Vec::<String>::new()));
    let (collected, console) = (words.clone(), cast.session.console.clone());
    let answer = task.finish(Some(Arc::new(move |task: &Task| {
        let word = task.message.clone().unwrap_or_else(|| task.status.to_string());
        let word = UntrustedText::new(word.trim_end_matches('.')).truncate(80).to_string();
        console.show_status(&format!("north · unload_ship  {word}"));
        let mut words = collected.lock().unwrap_or_else(PoisonError::into_inner);
        if words.last() != Some(&word) {
            words.push(word);
        }
    })));
    let answer = answer.await;
    cast.session.console.clear_status();
    let answer = answer.map_err(error_text)?;
    let words = std::mem::take(&mut *words.lock().unwrap_or_else(PoisonError::into_inner));
    ensure(words.len() > 1, "the task should have reported its status")?;
    Ok(vec![format!("unload_ship containers=3  →  {}  →  {}", words.join(", "), result_line(&answer))])
}
