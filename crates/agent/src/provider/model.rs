//! One model: what it is asked, and how often.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use wharf_net::{HeaderMap, Method, Net, Redirects, Response, header};
use wharf_spec::Shown;

use super::definitions::{Compiled, Withheld, compile};
use super::error::ModelError;
use super::event::Decode;
use super::retry::{Retries, retry_after};
use super::said::Said;
use super::stream::{PATIENCE, Reading, Stream};
use super::{Format, Provider, Request, anthropic, chat, responses};

/// What is read of an answer that is none.
const EXCERPT: usize = 16 << 10;

/// A model that can be asked. Cheap to clone, apart from its headers.
#[derive(Clone)]
pub struct Model {
    provider: Provider,
    headers: HeaderMap,
    net: Net,
}

impl Model {
    /// Makes a model of what is known about it. Dials nobody.
    ///
    /// Fails where the key or a header cannot be sent.
    pub fn open(provider: Provider, net: Net) -> Result<Self, ModelError> {
        let headers = provider.headers()?;
        Ok(Self { provider, headers, net })
    }

    /// Where the model is, and how it is asked.
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// The same model, whose answers have at most this many tokens, or fewer where it was so before.
    #[must_use]
    pub fn limited_to(mut self, max_tokens: u32) -> Self {
        self.provider.max_tokens = self.provider.max_tokens.min(max_tokens);
        self
    }

    /// Asks the model and gives its answer as soon as that begins.
    ///
    /// An API that has too much to do is asked again, up to five times, as long as nothing of an answer has come.
    /// Dropped while it waits, the request may or may not have left.
    pub async fn stream(&self, request: Request<'_>) -> Result<Stream, ModelError> {
        let tools = Arc::new(compile(self.provider.format, request.tools));
        for Withheld { name, reason } in &tools.withheld {
            tracing::warn!(tool = %Shown::line(name, 100), %reason, "a tool is withheld from the model");
        }
        let body = self.body(&request, &tools).map_err(|error| ModelError::Unwritable(error.to_string()))?;
        let body = Bytes::from(body);
        let mut retries = Retries::new(getrandom::u64().unwrap_or_default());
        loop {
            let error = match self.ask(body.clone(), &tools).await {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            let Some(wait) = retries.wait(&error) else { return Err(error) };
            tracing::info!(%error, wait_ms = wait.as_millis(), "asking the model again");
            tokio::time::sleep(wait).await;
        }
    }

    fn body(&self, request: &Request<'_>, tools: &Compiled) -> Result<Vec<u8>, serde_json::Error> {
        match self.provider.format {
            Format::Anthropic => anthropic::body(&self.provider, request, tools),
            Format::ChatCompletions => chat::body(&self.provider, request, tools),
            Format::Responses => responses::body(&self.provider, request, tools),
        }
    }

    fn decoder(&self) -> Box<dyn Decode> {
        let source = self.provider.source();
        match self.provider.format {
            Format::Anthropic => Box::new(anthropic::Decoder::new(source)),
            Format::ChatCompletions => Box::new(chat::Decoder::new(source)),
            Format::Responses => Box::new(responses::Decoder::new(source)),
        }
    }

    async fn ask(&self, body: Bytes, tools: &Arc<Compiled>) -> Result<Stream, ModelError> {
        let (url, headers) = (self.provider.endpoint(), self.headers.clone());
        let request = wharf_net::Request { method: Method::POST, url, headers, body, redirects: Redirects::Refused };
        let sent = tokio::time::timeout(PATIENCE, self.net.send(request)).await;
        let response = sent.map_err(|_| ModelError::Silent(PATIENCE))?.map_err(ModelError::Send)?;
        if !response.status.is_success() || !is_stream(&response.headers) {
            return Err(self.refusal(response).await);
        }
        let mut stream = Stream::new(response.body, Reading::new(self.decoder(), Arc::clone(tools)));
        stream.begin().await.map_err(|error| self.masked(error))?;
        Ok(stream)
    }

    async fn refusal(&self, mut response: Response) -> ModelError {
        let excerpt = tokio::time::timeout(PATIENCE, response.body.excerpt(EXCERPT)).await.unwrap_or_default();
        let said = Said::of_body(&excerpt).without(self.provider.key.as_ref());
        let host = || self.provider.base_url.host_str().unwrap_or_default().to_owned();
        let variable = self.provider.format.key_variable();
        match response.status.as_u16() {
            401 | 403 if self.provider.key.is_none() => ModelError::KeyMissing { host: host(), variable, said },
            401 | 403 => ModelError::KeyRefused { host: host(), variable, said },
            200..300 => ModelError::NoStream(said),
            status => {
                let retry_after = retry_after(&response.headers, SystemTime::now());
                ModelError::Refused { status, said, retry_after }
            }
        }
    }

    fn masked(&self, error: ModelError) -> ModelError {
        match error {
            ModelError::Failed(said) => ModelError::Failed(said.without(self.provider.key.as_ref())),
            other => other,
        }
    }
}

/// Whether an answer is a stream. One that does not say what it is may be.
fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase());
    kind.is_none_or(|kind| kind.starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests;
