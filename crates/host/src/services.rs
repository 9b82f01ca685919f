//! Services that the host provides to servers: elicitation, sampling, roots and logging.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;
use wharf_client::{
    BoxedFuture, ClientServices, Elicitor, LogSink, RequestSource, RootsSource, Sampler, SamplingError,
};
use wharf_spec::ServerName;
use wharf_wire::{
    Elicitation, ElicitationResponse, JsonLimits, LogLevel, LogMessage, RawJson, Root, SamplingRequest, UrlRequest,
    View as _,
};

use crate::ask::{Ask, Asker, ElicitationAsk, PageAsk, SamplingAsk, ask_and_wait};
use crate::context::HostContext;
use crate::events::Event;

/// Maximum number of tokens generated for one server per day.
const MAX_TOKENS_PER_DAY: u64 = 100_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Builds the services of the host. Elicitation, sampling and roots are declared only if the host can provide them.
pub(crate) fn build_services(context: &Arc<HostContext>) -> ClientServices {
    let logs = EventLogSink(Arc::downgrade(context));
    let mut services = ClientServices::default().logs(LogLevel::Info, logs).tasks();
    if let Some(asker) = &context.asker {
        if asker.supports_elicitation() {
            let person = AskerElicitor { asker: Arc::clone(asker), context: Arc::downgrade(context) };
            services = services.elicitation(person);
        }
        if asker.supports_sampling() {
            let context = Arc::downgrade(context);
            services = services.sampling(AskerSampler { asker: Arc::clone(asker), context, spent: Mutex::default() });
        }
    }
    if !context.options.roots.is_empty() {
        services = services.roots(ConfiguredRoots(context.options.roots.clone()));
    }
    services
}

/// Publishes servers' log messages as events and appends them to the servers' log files.
struct EventLogSink(Weak<HostContext>);

impl LogSink for EventLogSink {
    fn log(&self, source: RequestSource<'_>, message: LogMessage) {
        if let (Some(context), Ok(server)) = (self.0.upgrade(), ServerName::new(source.server)) {
            if let Some(logs) = &context.logs {
                logs.record_message(server.as_str(), &message);
            }
            if let Some(sink) = context.log_sink.get() {
                sink.log(source, message.clone());
            }
            context.event_bus.publish(Event::Log { server, call: source.call, message });
        }
    }
}

/// The directories that servers may request, as configured.
struct ConfiguredRoots(Vec<Root>);

impl RootsSource for ConfiguredRoots {
    fn roots(&self, _: RequestSource<'_>) -> BoxedFuture<Vec<Root>> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

/// Forwards servers' elicitations to the asker.
struct AskerElicitor {
    asker: Arc<dyn Asker>,
    context: Weak<HostContext>,
}

impl Elicitor for AskerElicitor {
    fn supports_pages(&self) -> bool {
        self.asker.shows_pages()
    }

    fn elicit(&self, source: RequestSource<'_>, question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        let (asker, context, server) = (Arc::clone(&self.asker), self.context.clone(), ServerName::new(source.server));
        let call = source.call;
        Box::pin(async move {
            let Ok(server) = server else { return ElicitationResponse::Decline };
            let tell = |event| {
                if let Some(context) = context.upgrade() {
                    context.event_bus.publish(event);
                }
            };
            if let Some(field) = secret_field(&question) {
                let text = format!("declined: its form asked for the secret `{field}`");
                tell(Event::Warning { server, text });
                return ElicitationResponse::Decline;
            }
            tell(Event::Asked { server: server.clone(), kind: "elicitation" });
            let ask = |reply| Ask::Elicitation(ElicitationAsk { server, call, question }, reply);
            ask_and_wait(&*asker, ask).await.unwrap_or(ElicitationResponse::Decline)
        })
    }

    fn wait_for_page(&self, source: RequestSource<'_>, _: &UrlRequest) -> BoxedFuture<()> {
        let (asker, server, call) = (Arc::clone(&self.asker), ServerName::new(source.server), source.call);
        Box::pin(async move {
            let Ok(server) = server else { return std::future::pending().await };
            match ask_and_wait(&*asker, |reply| Ask::Page(PageAsk { server, call }, reply)).await {
                Some(()) => {}
                None => std::future::pending().await,
            }
        })
    }
}

/// Returns the name of a form field that asks for a secret, escaped.
fn secret_field(question: &Elicitation) -> Option<String> {
    let Elicitation::Form(form) = question else { return None };
    let field = form.secret_field()?;
    Some(wharf_spec::UntrustedText::new(field.name.as_str()).truncate(60).to_string())
}

/// Forwards sampling requests to the asker, without tools or context and within a daily token budget.
struct AskerSampler {
    asker: Arc<dyn Asker>,
    context: Weak<HostContext>,
    spent: Mutex<HashMap<ServerName, DailyTokenUsage>>,
}

/// Tokens used by one server since the given time.
struct DailyTokenUsage {
    since: Instant,
    tokens: u64,
}

impl AskerSampler {
    /// Takes tokens from the server's budget. Returns false if too few are left.
    fn take_tokens(&self, server: &ServerName, tokens: u64) -> bool {
        let now = Instant::now();
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = spent.entry(server.clone()).or_insert(DailyTokenUsage { since: now, tokens: 0 });
        if now.duration_since(entry.since) >= DAY {
            *entry = DailyTokenUsage { since: now, tokens: 0 };
        }
        let fits = entry.tokens.saturating_add(tokens) <= MAX_TOKENS_PER_DAY;
        if fits {
            entry.tokens += tokens;
        }
        fits
    }
}

impl Sampler for AskerSampler {
    fn sample(
        &self,
        source: RequestSource<'_>,
        request: SamplingRequest,
    ) -> BoxedFuture<Result<RawJson, SamplingError>> {
        let (asker, context, server) = (Arc::clone(&self.asker), self.context.clone(), ServerName::new(source.server));
        let call = source.call;
        let allowed = server.as_ref().is_ok_and(|server| self.take_tokens(server, request.max_tokens));
        Box::pin(async move {
            let Ok(server) = server else { return Err(SamplingError::Declined) };
            if !allowed {
                return Err(SamplingError::Failed(format!(
                    "daily sampling limit of {MAX_TOKENS_PER_DAY} tokens exceeded"
                )));
            }
            let request = strip_request(request).ok_or(SamplingError::Declined)?;
            if let Some(context) = context.upgrade() {
                context.event_bus.publish(Event::Asked { server: server.clone(), kind: "sampling" });
            }
            let ask = |reply| Ask::Sampling(SamplingAsk { server, call, request }, reply);
            ask_and_wait(&*asker, ask).await.unwrap_or(Err(SamplingError::Declined))
        })
    }
}

/// Removes the fields that would give the server access to the conversation or to tools.
fn strip_request(request: SamplingRequest) -> Option<SamplingRequest> {
    let bounds = JsonLimits::default();
    let mut members: serde_json::Map<String, serde_json::Value> = request.raw.decode(&bounds).ok()?;
    for member in ["includeContext", "tools", "toolChoice"] {
        members.remove(member);
    }
    SamplingRequest::from_raw(RawJson::from_value(&members).ok()?, &bounds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Confirms every page.
    struct ConfirmingAsker;

    impl Asker for ConfirmingAsker {
        fn ask(&self, ask: Ask) {
            match ask {
                Ask::Page(ask, reply) if ask.server.as_str() == "demo" => reply.answer(()),
                _ => panic!("only pages are asked about"),
            }
        }
    }

    /// Drops every question.
    struct SilentAsker;

    impl Asker for SilentAsker {
        fn ask(&self, _: Ask) {}
    }

    #[tokio::test(start_paused = true)]
    async fn page_completes_only_on_user_confirmation() {
        let raw =
            RawJson::parse(r#"{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"1"}"#).unwrap();
        let Ok(Elicitation::Url(page)) = Elicitation::from_raw(raw, &JsonLimits::default()) else { panic!("no page") };
        for (asker, is_done) in [(Arc::new(ConfirmingAsker) as Arc<dyn Asker>, true), (Arc::new(SilentAsker), false)] {
            let person = AskerElicitor { asker, context: Weak::new() };
            let done =
                tokio::time::timeout(Duration::from_secs(60), person.wait_for_page(RequestSource::new("demo"), &page))
                    .await;
            assert_eq!(done.is_ok(), is_done);
        }
    }
}
