//! A model client with retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use wharf_net::{HeaderMap, HttpResponse, Method, Net, RedirectPolicy, header};
use wharf_spec::Redactor;

use super::api_error::UnredactedError;
use super::definitions::EncodedTools;
use super::error::ModelError;
use super::event::{ModelEvent, ResponseDecoder};
use super::responses::ReasoningMode;
use super::retry::{RetryPolicy, parse_retry_after};
use super::stream::{IDLE_TIMEOUT, ModelStream, StreamDecoder};
use super::{ApiFormat, CompletionRequest, ModelProvider, anthropic, chat_completions, responses};

/// Maximum bytes read of a response that is not an event stream.
const MAX_ERROR_BODY_BYTES: usize = 16 << 10;

/// A client for one model. Cheap to clone, apart from its headers.
#[derive(Clone)]
pub struct Model {
    provider: ModelProvider,
    headers: HeaderMap,
    /// Redacts the API's credentials.
    redactor: Arc<Redactor>,
    net: Net,
    /// Set once the API reports that this model does not support encrypted reasoning. Shared by clones.
    rejects_reasoning: Arc<AtomicBool>,
}

impl Model {
    /// Creates a client. Does not connect.
    ///
    /// # Errors
    ///
    /// Fails if the key or a header is not a valid header value.
    pub fn new(provider: ModelProvider, net: Net) -> Result<Self, ModelError> {
        let (headers, redactor) = (provider.headers()?, Arc::new(provider.redactor()));
        Ok(Self { provider, headers, redactor, net, rejects_reasoning: Arc::default() })
    }

    /// Returns the provider configuration.
    pub fn provider(&self) -> &ModelProvider {
        &self.provider
    }

    /// Lowers the output token limit to `max_tokens`, if it is higher.
    #[must_use]
    pub fn with_max_tokens(mut self, max_tokens: u32) -> Self {
        self.provider.max_tokens = self.provider.max_tokens.min(max_tokens);
        self
    }

    /// Sends a request and returns the response stream once it begins.
    ///
    /// Retries up to five times if the API is overloaded or the connection breaks before the first event.
    ///
    /// # Errors
    ///
    /// Fails if the request cannot be sent, if the API rejects it, or after the last retry.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the request may or may not have been sent.
    pub async fn stream(&self, request: CompletionRequest<'_>) -> Result<ModelStream, ModelError> {
        self.stream_with_retry_events(request, |_| {}).await
    }

    /// Same as [`Model::stream`], and reports every [retry delay](ModelEvent::Waiting) when it begins.
    pub async fn stream_with_retry_events(
        &self,
        request: CompletionRequest<'_>,
        mut on_retry: impl FnMut(ModelEvent),
    ) -> Result<ModelStream, ModelError> {
        let mut thoughts = self.reasoning_mode();
        let mut body = self.encode_body(&request, thoughts)?;
        let mut retries = RetryPolicy::new(getrandom::u64().unwrap_or_default());
        loop {
            let error = match self.send_once(body.clone(), request.tools).await {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if thoughts == ReasoningMode::GivenOut && lacks_encrypted_reasoning(&error) {
                self.rejects_reasoning.store(true, Ordering::Relaxed);
                thoughts = self.reasoning_mode();
                body = self.encode_body(&request, thoughts)?;
                continue;
            }
            let Some(time) = retries.next_delay(&error) else { return Err(error) };
            tracing::info!(%error, wait_ms = time.as_millis(), "retrying the model request");
            on_retry(ModelEvent::Waiting { time, because: error });
            tokio::time::sleep(time).await;
        }
    }

    fn reasoning_mode(&self) -> ReasoningMode {
        if self.rejects_reasoning.load(Ordering::Relaxed) { ReasoningMode::LeftAlone } else { ReasoningMode::GivenOut }
    }

    fn encode_body(&self, request: &CompletionRequest<'_>, thoughts: ReasoningMode) -> Result<Bytes, ModelError> {
        let body = match self.provider.format {
            ApiFormat::Anthropic => anthropic::encode_request(&self.provider, request),
            ApiFormat::ChatCompletions => chat_completions::encode_request(&self.provider, request),
            ApiFormat::Responses => responses::encode_request(&self.provider, request, thoughts),
        };
        body.map(Bytes::from).map_err(|error| ModelError::Unwritable(error.to_string()))
    }

    fn decoder(&self) -> Box<dyn ResponseDecoder> {
        let source = self.provider.source_id();
        match self.provider.format {
            ApiFormat::Anthropic => Box::new(anthropic::AnthropicDecoder::new(source)),
            ApiFormat::ChatCompletions => Box::new(chat_completions::ChatDecoder::new(source)),
            ApiFormat::Responses => Box::new(responses::ResponsesDecoder::new(source)),
        }
    }

    async fn send_once(&self, body: Bytes, tools: &Arc<EncodedTools>) -> Result<ModelStream, ModelError> {
        let (url, headers) = (self.provider.request_url(), self.headers.clone());
        let request =
            wharf_net::HttpRequest { method: Method::POST, url, headers, body, redirects: RedirectPolicy::Refused };
        let sent = tokio::time::timeout(IDLE_TIMEOUT, self.net.send(request)).await;
        let response = sent.map_err(|_| ModelError::Silent(IDLE_TIMEOUT))?.map_err(ModelError::Send)?;
        if !response.status.is_success() || !is_event_stream(&response.headers) {
            return Err(self.rejection_error(response).await);
        }
        let reading = StreamDecoder::new(self.decoder(), Arc::clone(tools), Arc::clone(&self.redactor));
        let mut stream = ModelStream::new(response.body, reading);
        stream.wait_for_first_event().await?;
        Ok(stream)
    }

    async fn rejection_error(&self, mut response: HttpResponse) -> ModelError {
        let excerpt =
            tokio::time::timeout(IDLE_TIMEOUT, response.body.excerpt(MAX_ERROR_BODY_BYTES)).await.unwrap_or_default();
        let message = UnredactedError::from_body(&excerpt).redact(&self.redactor);
        let host = || self.provider.base_url.host_str().unwrap_or_default().to_owned();
        let variable = self.provider.format.key_variable();
        match response.status.as_u16() {
            401 | 403 if self.provider.key.is_none() => ModelError::KeyMissing { host: host(), variable, message },
            401 | 403 => ModelError::KeyRefused { host: host(), variable, message },
            200..300 => ModelError::NoStream(message),
            status => {
                let retry_after = parse_retry_after(&response.headers, SystemTime::now());
                ModelError::Refused { status, message, retry_after }
            }
        }
    }
}

/// Reports whether the API rejected the request for encrypted reasoning. Only OpenAI knows which of its models support
/// it, so this matches the text of its error.
fn lacks_encrypted_reasoning(error: &ModelError) -> bool {
    let ModelError::Refused { status: 400, message, .. } = error else { return false };
    message.text.contains("Encrypted content is not supported")
}

/// Reports whether a response is an event stream. A missing content type is accepted.
fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase());
    kind.is_none_or(|kind| kind.starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests;
