//! Handles requests from the server, whether sent as requests or as input requests within a call.
//!
//! Accepts only declared capabilities, within a rate limit, decodes the request and encodes the answer. Independent of
//! ids, calls and links.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wharf_spec::{Redactor, UntrustedText};
use wharf_wire::{
    Elicitation, ElicitationResponse, JsonDecodeError, JsonLimits, LogLevel, LogMessage, RawJson, Revision,
    SamplingRequest, UrlRequest, View, code,
};

use crate::connection::{SKILLS_EXTENSION, TASKS_EXTENSION};
use crate::counters::{ConnectionCounters, CounterKind, CounterSet};
use crate::engine::{PendingReply, RequestOrigin, RequestRefusal};
use crate::limits::Limits;
use crate::options::CallTag;
use crate::services::{BoxedFuture, ClientServices, RequestSource, SamplingError};
use crate::tap::masked_value;

pub(crate) const ELICIT: &str = "elicitation/create";
pub(crate) const SAMPLE: &str = "sampling/createMessage";
pub(crate) const ROOTS: &str = "roots/list";

/// Error code sent when the user declines sampling (2025-11-25, client/sampling).
pub(crate) const USER_REJECTED: i64 = -1;

/// Window of the rate limit for prompts to the user.
const PROMPT_WINDOW: Duration = Duration::from_secs(60);

pub(crate) struct ServerRequestHandler {
    server: String,
    redactor: Arc<Redactor>,
    counters: CounterSet,
    services: ClientServices,
    limits: Limits,
    /// Current minimum log level.
    level: Mutex<Option<LogLevel>>,
    /// Times of the prompts to the user in the last minute.
    asked: Mutex<VecDeque<Instant>>,
}

impl ServerRequestHandler {
    pub fn new(server: String, services: ClientServices, limits: Limits, redactor: Arc<Redactor>) -> Self {
        let level = Mutex::new(services.log_level);
        Self {
            counters: CounterSet::new(server.clone()),
            server,
            redactor,
            services,
            limits,
            level,
            asked: Mutex::default(),
        }
    }

    /// Returns the minimum log level, or `None` if logs are not wanted.
    pub fn log_level(&self) -> Option<LogLevel> {
        let level = *self.level.lock().unwrap_or_else(PoisonError::into_inner);
        level.filter(|_| self.services.logs.is_some())
    }

    /// Sets the minimum log level.
    pub fn set_log_level(&self, level: LogLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    pub fn services(&self) -> &ClientServices {
        &self.services
    }

    /// Returns the counters of declined requests and discarded log messages.
    pub fn counters(&self) -> ConnectionCounters {
        self.counters.snapshot()
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn bounds(&self) -> &JsonLimits {
        &self.limits.bounds
    }

    /// Returns the client capabilities for this revision, as JSON.
    pub fn capabilities(&self, revision: Revision) -> String {
        let ClientServices { elicitation, sampling, roots, tasks, skills, .. } = &self.services;
        let mut parts: Vec<Cow<'_, str>> = Vec::new();
        if let Some(elicitor) = elicitation.as_ref().filter(|_| revision >= Revision::V2025_06_18) {
            let elicitation = match (elicitor.supports_pages(), revision >= Revision::V2025_11_25) {
                (true, true) => r#""elicitation":{"form":{},"url":{}}"#,
                (false, true) => r#""elicitation":{"form":{}}"#,
                (_, false) => r#""elicitation":{}"#,
            };
            parts.push(elicitation.into());
        }
        if let Some(sampler) = sampling {
            let tools = sampler.supports_tools() && revision >= Revision::V2025_11_25;
            parts.push(if tools { r#""sampling":{"tools":{}}"# } else { r#""sampling":{}"# }.into());
        }
        if roots.is_some() {
            let changes = revision < Revision::V2026_07_28;
            parts.push(if changes { r#""roots":{"listChanged":true}"# } else { r#""roots":{}"# }.into());
        }
        let extensions = [(*tasks, TASKS_EXTENSION), (*skills, SKILLS_EXTENSION)];
        let extensions = extensions.iter().filter(|(offered, _)| *offered && revision >= Revision::V2026_07_28);
        let extensions: Vec<String> = extensions.map(|(_, id)| format!(r#""{id}":{{}}"#)).collect();
        if !extensions.is_empty() {
            parts.push(format!(r#""extensions":{{{}}}"#, extensions.join(",")).into());
        }
        format!("{{{}}}", parts.join(","))
    }

    /// Decodes a server request and starts to answer it.
    ///
    /// # Errors
    ///
    /// A refusal if the capability was not declared or the params cannot be decoded.
    pub fn begin_reply(
        &self,
        method: &str,
        params: Option<RawJson>,
        origin: RequestOrigin<'_>,
    ) -> Result<PendingReply, RequestRefusal> {
        let undeclared = || RequestRefusal::new(code::METHOD_NOT_FOUND, "not offered by this client");
        match method {
            ELICIT if self.services.elicitation.is_some() => self.elicit(params, origin),
            SAMPLE if self.services.sampling.is_some() => self.sample(params, origin),
            ROOTS => {
                let source = self.services.roots.as_ref().ok_or_else(undeclared)?;
                let roots = with_timeout(self.limits.call_timeout, source.available_roots(self.source(origin)));
                let work = async move {
                    let late = || RequestRefusal::new(code::INTERNAL, "the roots are not available");
                    let none = || RequestRefusal::new(code::METHOD_NOT_FOUND, "no roots are available to this server");
                    let roots = serde_json::json!({ "roots": roots.await.ok_or_else(late)?.ok_or_else(none)? });
                    RawJson::from_value(&roots).map_err(|error| RequestRefusal::new(code::INTERNAL, error.to_string()))
                };
                Ok(PendingReply { person: false, work: Box::pin(work) })
            }
            _ => Err(undeclared()),
        }
    }

    /// Forwards a log message to the log sink, with the server's secrets removed.
    pub fn log(&self, params: Option<RawJson>, call: Option<CallTag>) {
        if params.as_ref().is_some_and(|params| params.as_bytes().len() > self.limits.max_server_text) {
            return self.counters.count_and_warn(CounterKind::Oversized, "discarded a log message over the size limit");
        }
        let wanted = *self.level.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(sink), Some(params)) = (&self.services.logs, params)
            && let Ok(LogMessage { level, logger, data }) = LogMessage::from_raw(params, &self.limits.bounds)
            // Some servers ignore the requested level: the Python SDK 2.3 sends everything.
            // A call with a tag has a level of its own (2026-07-28), which its caller applies.
            && (call.is_some() || wanted.is_none_or(|wanted| level >= wanted))
            && let Ok(data) = RawJson::parse(masked_value(data.as_bytes(), &self.redactor))
        {
            let logger = logger.map(|logger| self.redactor.redact(&logger).into_owned());
            sink.log(self.source(call.into()), LogMessage { level, logger, data });
        }
    }

    /// Asks the user to open a page and returns the answer.
    pub async fn show_page(&self, page: UrlRequest, call: Option<CallTag>) -> ElicitationResponse {
        let Some(elicitor) = self.services.elicitation.as_ref().filter(|elicitor| elicitor.supports_pages()) else {
            return ElicitationResponse::Cancel;
        };
        if !self.try_count_prompt() {
            return ElicitationResponse::Decline;
        }
        with_timeout(self.limits.ask_timeout, elicitor.elicit(self.source(call.into()), Elicitation::Url(page)))
            .await
            .unwrap_or(ElicitationResponse::Cancel)
    }

    /// Tells the elicitor that a page is done.
    pub fn report_page_done(&self, params: Option<&RawJson>, call: Option<CallTag>) {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WirePageDone {
            elicitation_id: String,
        }
        let done = params.and_then(|params| params.decode::<WirePageDone>(self.bounds()).ok());
        if let (Some(elicitor), Some(done)) = (&self.services.elicitation, done) {
            elicitor.page_done(self.source(call.into()), &done.elicitation_id);
        }
    }

    /// Resolves when the user reports that they are done with the page.
    pub fn wait_for_page(&self, page: &UrlRequest, call: Option<CallTag>) -> BoxedFuture<()> {
        match &self.services.elicitation {
            Some(elicitor) => elicitor.wait_for_page(self.source(call.into()), page),
            None => Box::pin(std::future::pending()),
        }
    }

    fn elicit(&self, params: Option<RawJson>, origin: RequestOrigin<'_>) -> Result<PendingReply, RequestRefusal> {
        let question = decode_params::<Elicitation>(params, self.bounds())?;
        let Some(elicitor) = &self.services.elicitation else { return Err(invalid_params(&"not offered")) };
        if matches!(question, Elicitation::Url(_)) && !elicitor.supports_pages() {
            return Err(RequestRefusal::new(
                code::INVALID_PARAMS,
                "this client supports form elicitation only, not URLs",
            ));
        }
        if !self.try_count_prompt() {
            let answer = Ok(ElicitationResponse::Decline.to_raw());
            return Ok(PendingReply { person: false, work: Box::pin(std::future::ready(answer)) });
        }
        let asking = elicitor.elicit(self.source(origin), question.clone());
        let limit = self.limits.ask_timeout;
        let work = async move {
            let answer = with_timeout(limit, asking).await.unwrap_or(ElicitationResponse::Cancel);
            Ok(complete_answer(&question, answer).to_raw())
        };
        Ok(PendingReply { person: true, work: Box::pin(work) })
    }

    fn sample(&self, params: Option<RawJson>, origin: RequestOrigin<'_>) -> Result<PendingReply, RequestRefusal> {
        let request = decode_params::<SamplingRequest>(params, self.bounds())?;
        let Some(sampler) = &self.services.sampling else { return Err(invalid_params(&"not offered")) };
        if request.tools.is_some() && !sampler.supports_tools() {
            return Err(RequestRefusal::new(code::INVALID_PARAMS, "this client does not support tools in sampling"));
        }
        if !self.try_count_prompt() {
            return Err(RequestRefusal::new(USER_REJECTED, "too many requests"));
        }
        let sampling = sampler.sample(self.source(origin), request);
        let limit = self.limits.ask_timeout;
        let work = async move {
            match with_timeout(limit, sampling).await {
                Some(Ok(message)) => Ok(message),
                Some(Err(SamplingError::Failed(why))) => Err(RequestRefusal::new(code::INTERNAL, why)),
                Some(Err(SamplingError::Declined)) | None => {
                    Err(RequestRefusal::new(USER_REJECTED, "declined by the user"))
                }
            }
        };
        Ok(PendingReply { person: true, work: Box::pin(work) })
    }

    fn source<'a>(&'a self, RequestOrigin { call, id }: RequestOrigin<'a>) -> RequestSource<'a> {
        RequestSource { call, request: id, ..RequestSource::new(&self.server) }
    }

    /// Reports whether another prompt to the user fits the rate limit, and counts it if so.
    fn try_count_prompt(&self) -> bool {
        let now = Instant::now();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        while asked.front().is_some_and(|first| now.duration_since(*first) >= PROMPT_WINDOW) {
            asked.pop_front();
        }
        let room = asked.len() < self.limits.asks_per_minute;
        if room {
            asked.push_back(now);
        } else {
            self.counters.count_and_warn(
                CounterKind::TurnedAway,
                "too many prompts from this server, declined without prompting",
            );
        }
        room
    }
}

/// Fills in the defaults of an accepted form. Content that does not fit the form is not sent; the answer becomes a
/// cancellation.
fn complete_answer(question: &Elicitation, answer: ElicitationResponse) -> ElicitationResponse {
    match (question, answer) {
        (Elicitation::Form(form), ElicitationResponse::Accept(content)) => {
            match form.complete(&content.unwrap_or_else(RawJson::empty_object)) {
                Ok(content) => ElicitationResponse::Accept(Some(content)),
                Err(_) => ElicitationResponse::Cancel,
            }
        }
        (Elicitation::Url(_), ElicitationResponse::Accept(_)) => ElicitationResponse::Accept(None),
        (_, answer) => answer,
    }
}

fn decode_params<T: View>(params: Option<RawJson>, bounds: &JsonLimits) -> Result<T, RequestRefusal> {
    let params = params.unwrap_or_else(RawJson::empty_object);
    T::from_raw(params, bounds).map_err(|error: JsonDecodeError| invalid_params(&error))
}

fn invalid_params(error: &dyn std::fmt::Display) -> RequestRefusal {
    let error = UntrustedText::new(error.to_string());
    RequestRefusal::new(code::INVALID_PARAMS, format!("invalid params: {}", error.truncate(200)))
}

async fn with_timeout<T>(limit: Duration, work: BoxedFuture<T>) -> Option<T> {
    tokio::time::timeout(limit, work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::LogSink;

    #[derive(Default)]
    struct RecordingLogSink(Mutex<Vec<String>>);

    impl LogSink for RecordingLogSink {
        fn log(&self, source: RequestSource<'_>, LogMessage { level, logger, data }: LogMessage) {
            let line = format!("{} {level:?} {} {}", source.server, logger.unwrap_or_default(), data.as_str());
            self.0.lock().unwrap().push(line);
        }
    }

    #[test]
    fn redacted_log_messages_are_still_delivered() {
        let (logged, mut redactor) = (Arc::new(RecordingLogSink::default()), Redactor::default());
        ["warning", "logger", "123456"].into_iter().for_each(|secret| redactor.add(secret));
        let services = ClientServices { logs: Some(logged.clone()), ..ClientServices::default() };
        let request_handler =
            ServerRequestHandler::new("s".to_owned(), services, Limits::default(), Arc::new(redactor));
        for params in [
            r#"{"level":"warning","logger":"a logger","data":"a warning"}"#,
            r#"{"level":"warning","data":123456}"#,
            r#"{"level":"warning","data":{"password":"x","n":1}}"#,
        ] {
            request_handler.log(RawJson::parse(params.as_bytes().to_vec()).ok(), None);
        }
        let expected = [r#"s Warning a *** "a ***""#, r#"s Warning  "***""#, r#"s Warning  {"password":"***","n":1}"#];
        assert_eq!(*logged.0.lock().unwrap(), expected);
    }
}
