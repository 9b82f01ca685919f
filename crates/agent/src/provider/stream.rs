//! A response stream: bounded bytes in, events out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wharf_net::{ResponseBody, SseParser};
use wharf_spec::Redactor;

use super::definitions::EncodedTools;
use super::error::ModelError;
use super::event::{ModelEvent, ResponseDecoder};
use crate::conversation::TurnBlock;

/// Maximum bytes of one event.
const MAX_EVENT_BYTES: usize = 4 << 20;
/// Maximum bytes of a response.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
/// Timeout without data. Local models may process a long conversation for minutes before they respond.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// A response stream. Dropping it closes the connection, which stops the generation.
pub struct ModelStream {
    body: ResponseBody,
    reading: StreamDecoder,
}

impl ModelStream {
    pub(super) fn new(body: ResponseBody, reading: StreamDecoder) -> Self {
        Self { body, reading }
    }

    /// Returns the next event, or `None` after [`ModelEvent::Done`] or an error. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.reading.next() {
                return Some(event);
            }
            if self.reading.is_over {
                return None;
            }
            self.read_chunk().await;
        }
    }

    /// Waits for the first event and puts it back. Returns an error if the stream begins with one.
    pub(super) async fn wait_for_first_event(&mut self) -> Result<(), ModelError> {
        match self.next().await {
            Some(Ok(event)) => self.reading.ready.push_front(Ok(event)),
            Some(Err(error)) => return Err(error),
            None => {}
        }
        Ok(())
    }

    async fn read_chunk(&mut self) {
        match tokio::time::timeout(IDLE_TIMEOUT, self.body.chunk()).await {
            Ok(Ok(Some(chunk))) => self.reading.push(chunk),
            Ok(Ok(None)) => self.reading.finish(),
            Ok(Err(error)) => self.reading.fail(ModelError::Body(error)),
            Err(_) => self.reading.fail(ModelError::Silent(IDLE_TIMEOUT)),
        }
    }
}

/// Decoder state of a response. Pure: no clock, no I/O.
pub(super) struct StreamDecoder {
    parser: SseParser,
    decoder: Box<dyn ResponseDecoder>,
    tools: Arc<EncodedTools>,
    redactor: Arc<Redactor>,
    /// Decoded events of the last chunk.
    ready: VecDeque<Result<ModelEvent, ModelError>>,
    bytes: usize,
    is_over: bool,
}

impl StreamDecoder {
    pub fn new(decoder: Box<dyn ResponseDecoder>, tools: Arc<EncodedTools>, redactor: Arc<Redactor>) -> Self {
        let parser = SseParser::new(MAX_EVENT_BYTES);
        Self { parser, decoder, tools, redactor, ready: VecDeque::new(), bytes: 0, is_over: false }
    }

    fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        self.ready.pop_front()
    }

    fn push(&mut self, chunk: Bytes) {
        self.bytes = self.bytes.saturating_add(chunk.len());
        if self.bytes > MAX_RESPONSE_BYTES {
            return self.fail(ModelError::TooLarge { what: "model response", limit: MAX_RESPONSE_BYTES });
        }
        self.parser.push(chunk);
        while !self.is_over {
            match self.parser.next() {
                None => return,
                Some(Ok(event)) if event.data.is_empty() => {}
                Some(Ok(event)) => match self.decoder.decode_event(&event.data) {
                    Ok(events) => self.push_events(events),
                    Err(trouble) => self.fail(trouble.to_model_error(&self.redactor)),
                },
                Some(Err(error)) => {
                    self.fail(ModelError::TooLarge { what: "model API event", limit: error.limit });
                }
            }
        }
    }

    fn finish(&mut self) {
        let events = self.decoder.finish();
        self.push_events(events);
        if !self.is_over {
            self.fail(ModelError::Incomplete);
        }
    }

    fn push_events(&mut self, events: Vec<ModelEvent>) {
        for event in events {
            self.is_over |= matches!(event, ModelEvent::Done { .. });
            self.ready.push_back(Ok(self.restore_tool_name(event)));
        }
    }

    fn fail(&mut self, error: ModelError) {
        self.is_over = true;
        self.ready.push_back(Err(error));
    }

    /// Replaces the alias of a tool by its name, if the alias is known.
    fn restore_tool_name(&self, mut event: ModelEvent) -> ModelEvent {
        let name = match &mut event {
            ModelEvent::ToolCallBegun { name, .. } => name,
            ModelEvent::BlockDone(TurnBlock::ToolCall { name, .. }) => name,
            _ => return event,
        };
        if let Some(own) = self.tools.name_of_alias(name) {
            *name = own.to_owned();
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use wharf_json::RawJson;

    use super::*;
    use crate::provider::definitions::{ModelToolDefinition, encode_tools, tool_alias};
    use crate::provider::{ApiFormat, StopReason, anthropic};

    fn new_decoder(tools: &[ModelToolDefinition]) -> StreamDecoder {
        let decoder = Box::new(anthropic::AnthropicDecoder::new("a".into()));
        let mut redactor = Redactor::default();
        redactor.add("sk-1234567890");
        StreamDecoder::new(decoder, Arc::new(encode_tools(ApiFormat::Anthropic, tools)), Arc::new(redactor))
    }

    fn drain_events(reading: &mut StreamDecoder) -> Vec<Result<ModelEvent, ModelError>> {
        std::iter::from_fn(|| reading.next()).collect()
    }

    const START: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;

    #[test]
    fn chunk_boundaries_do_not_affect_decoding() {
        let delta = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hü"}}"#;
        let stop = r#"{"type":"message_stop"}"#;
        let text = format!(": hello\n\nevent: x\ndata: {START}\n\ndata: {delta}\r\n\r\ndata: {stop}\n\nid: 7\n\n");
        for size in [1, 2, 7, 64, 10_000] {
            let mut reading = new_decoder(&[]);
            text.as_bytes().chunks(size).for_each(|chunk| {
                if !reading.is_over {
                    reading.push(Bytes::copy_from_slice(chunk));
                }
            });
            let events = drain_events(&mut reading);
            let expected = [
                Ok(ModelEvent::TextDelta("hü".into())),
                Ok(ModelEvent::BlockDone(TurnBlock::Text("hü".into()))),
                Ok(ModelEvent::Usage { input: 0, output: 0, cached: 0 }),
                Ok(ModelEvent::Done { stop: StopReason::EndTurn }),
            ];
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn tool_alias_is_resolved_to_its_name() {
        let schema = RawJson::new_unchecked(r#"{"type":"object"}"#);
        let tool = ModelToolDefinition { name: "größe".into(), description: String::new(), schema };
        let mut reading = new_decoder(&[tool]);
        for (name, expected) in [(tool_alias("größe").into_owned(), "größe"), ("unknown".to_owned(), "unknown")] {
            let block = format!(r#"{{"type":"tool_use","id":"1","name":"{name}"}}"#);
            let start = format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
            let stop = r#"{"type":"content_block_stop","index":0}"#;
            reading.push(format!("data: {start}\n\ndata: {stop}\n\n").into());
            let (index, id) = (0, "1".to_owned());
            let begun = ModelEvent::ToolCallBegun { index, id: id.clone(), name: expected.into() };
            let (arguments, malformed) = (RawJson::empty_object(), None);
            let call = TurnBlock::ToolCall { id, name: expected.into(), arguments, malformed };
            assert_eq!(drain_events(&mut reading), [Ok(begun), Ok(ModelEvent::BlockDone(call))]);
        }
    }

    #[test]
    fn oversized_events_and_responses_are_errors() {
        let mut one = new_decoder(&[]);
        (0..5).for_each(|_| one.push(Bytes::from(vec![b'x'; 1 << 20])));
        let error = ModelError::TooLarge { what: "model API event", limit: MAX_EVENT_BYTES };
        assert_eq!(drain_events(&mut one), [Err(error)]);
        let mut many = new_decoder(&[]);
        while !many.is_over {
            many.push(Bytes::from(format!(": {}\n\n", "x".repeat(1 << 20))));
        }
        let error = ModelError::TooLarge { what: "model response", limit: MAX_RESPONSE_BYTES };
        assert_eq!(drain_events(&mut many), [Err(error)]);
    }

    #[test]
    fn stream_errors_are_redacted_and_truncated() {
        let long = "x".repeat(1 << 20);
        for (event, expected) in [
            (r#"{"type":"error","error":"not sk-1234567890"}"#, "model API failed during the response: not ***"),
            (r#"{"type":"content_block_stop","index":"sk-1234567890"}"#, r#"invalid type: string "***""#),
            (&format!(r#"{{"type":"content_block_stop","index":"{long}"}}"#), "invalid type: string"),
        ] {
            let mut reading = new_decoder(&[]);
            reading.push(format!("data: {START}\n\ndata: {event}\n\n").into());
            let Some(Err(error)) = drain_events(&mut reading).pop() else { panic!("{event:.80}") };
            let text = error.to_string();
            assert!(text.contains(expected) && text.len() < 300 && !text.contains("sk-"), "{text:.300}");
        }
    }

    #[test]
    fn truncated_response_is_incomplete() {
        let mut reading = new_decoder(&[]);
        reading.push(format!("data: {START}\n\n").into());
        reading.finish();
        assert_eq!(drain_events(&mut reading), [Err(ModelError::Incomplete)]);
    }
}
