//! Routing of incoming messages.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use tokio::time::Instant;
use wharf_spec::UntrustedText;
use wharf_wire::{
    Envelope, Fault, Id, PartialEnvelope, Progress, RawJson, RpcError, ScanError, View, code, scan, split_batch,
};

use super::excerpt::{decode_large_error, truncate_message};
use super::{
    EXCERPT, Engine, NotMcpPeer, NotificationEffect, RawResult, RequestDisposition, RequestOrigin, RequestRefusal,
};
use crate::budget::{BudgetExceeded, LARGE_MESSAGE_BYTES};
use crate::counters::CounterKind;
use crate::error::{CallError, NOT_A_MESSAGE};
use crate::options::CallTag;
use crate::tap::Direction;

/// Maximum size of the id of an oversized request that is answered.
const MAX_ECHOED_ID_BYTES: usize = 16 << 10;
/// Parts smaller than this are copied out of a message that has its own buffer.
const MIN_SHARED_PART_BYTES: usize = 4 << 10;

/// Copies or shares a part of a message so that it outlives the message.
type RetainPart<'a> = &'a dyn Fn(&[u8]) -> Result<Bytes, BudgetExceeded>;

/// The way a message for one call arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseChannel {
    /// As the only message of the response.
    Body,
    /// As the only message of an HTTP error response. It belongs to this call regardless of its id.
    Refusal,
    /// On a stream for this call alone (2026-07-28).
    Own,
    /// On a stream that may also carry responses to other calls.
    Shared,
}

impl ResponseChannel {
    /// Reports whether the response consists of exactly one message.
    fn is_single_message(self) -> bool {
        matches!(self, Self::Body | Self::Refusal)
    }
}

/// The relation of a message to the call it arrived for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageRelation {
    /// The response, valid or not.
    Answer,
    Other,
}

/// A scanned message.
#[derive(Clone, Copy)]
struct InboundMessage<'a> {
    bytes: &'a [u8],
    envelope: &'a Envelope,
    /// The call on whose stream the message arrived, over HTTP.
    stream_of: Option<u64>,
}

impl Engine {
    /// Handles one message, without its line ending. Adds the wakers of ended calls to `wakers`.
    ///
    /// # Errors
    ///
    /// If the peer is not an MCP server.
    pub fn deliver(&self, line: &[u8], wakers: &mut Vec<Waker>) -> Result<(), NotMcpPeer> {
        self.handle_message(line, &|part| self.result_buffers.copy_bytes(part, &self.budget), wakers)
    }

    /// Like [`Engine::deliver`], for a message in its own buffer, which is charged to the budget if it is large. Its
    /// large parts are shared, not copied.
    pub fn deliver_shared(&self, message: &Bytes, wakers: &mut Vec<Waker>) -> Result<(), NotMcpPeer> {
        self.handle_message(message, &|part| self.retain_part(message, part), wakers)
    }

    /// Like [`Engine::deliver_shared`], but a large message is processed on the low-priority thread.
    pub async fn deliver_by_size(self: &Arc<Self>, message: Bytes) -> Result<(), NotMcpPeer> {
        let engine = Arc::clone(self);
        let delivered = self.budget.offload_if_large(message.len(), move || {
            let mut wakers = Vec::new();
            let delivered = engine.deliver_shared(&message, &mut wakers);
            wakers.into_iter().for_each(Waker::wake);
            delivered
        });
        delivered.await.unwrap_or(Ok(()))
    }

    fn handle_message(&self, line: &[u8], retain: RetainPart<'_>, wakers: &mut Vec<Waker>) -> Result<(), NotMcpPeer> {
        self.observer.observe(Direction::Received, line);
        match scan(line) {
            Ok(envelope) => {
                let message = InboundMessage { bytes: line, envelope: &envelope, stream_of: None };
                return self.route(message, retain, wakers);
            }
            Err(ScanError { fault: Fault::NotAnObject, .. }) => self.on_non_json(line),
            Err(ScanError { fault: Fault::Batch, .. }) => return self.on_batch(line, wakers),
            Err(error) => self.on_malformed(line, &error, wakers),
        }
        Ok(())
    }

    /// Handles one message that arrived in the HTTP response to a call's request. Reports whether the call has ended.
    ///
    /// The request identifies the call: an error needs no id here.
    pub fn deliver_for(
        &self,
        call: u64,
        message: &Bytes,
        channel: ResponseChannel,
        wakers: &mut Vec<Waker>,
    ) -> Result<MessageRelation, NotMcpPeer> {
        self.observer.observe(Direction::Received, message);
        let envelope = match scan(message) {
            Ok(envelope) => envelope,
            Err(ScanError { fault: Fault::Batch, .. }) if self.protocol.accepts_batches() => {
                self.on_batch(message, wakers)?;
                return Ok(match self.time_left(call) {
                    None => MessageRelation::Answer,
                    Some(_) if channel.is_single_message() => {
                        self.fail_unexpected(call, "batch without a response", wakers)
                    }
                    Some(_) => MessageRelation::Other,
                });
            }
            Err(error) => return Ok(self.fail_malformed(call, message, &error, channel, wakers)),
        };
        if envelope.method.is_some() {
            if channel.is_single_message() {
                return Ok(self.fail_unexpected(call, "request or notification instead of a response", wakers));
            }
            let inbound = InboundMessage { bytes: message, envelope: &envelope, stream_of: Some(call) };
            return self
                .route(inbound, &|part| self.retain_part(message, part), wakers)
                .map(|()| MessageRelation::Other);
        }
        let id = envelope.id(message);
        match id.as_ref().and_then(|id| self.call_id(id)) {
            Some(id) if id == call => {
                self.on_response(message, &envelope, &|bytes| self.retain_part(message, bytes), wakers);
                Ok(MessageRelation::Answer)
            }
            None if channel == ResponseChannel::Refusal || matches!(id, None | Some(Id::Null)) => {
                Ok(self.fail_without_id(call, message, &envelope, wakers))
            }
            _ if channel.is_single_message() => {
                Ok(self.fail_unexpected(call, "response to a different request", wakers))
            }
            _ if channel == ResponseChannel::Shared => {
                self.on_response(message, &envelope, &|bytes| self.retain_part(message, bytes), wakers);
                Ok(MessageRelation::Other)
            }
            _ => {
                self.counters.count(CounterKind::Unmatched);
                Ok(MessageRelation::Other)
            }
        }
    }

    /// Returns a part of a message that has its own buffer. Small parts are copied, so that they do not keep the whole
    /// message alive.
    fn retain_part(&self, message: &Bytes, part: &[u8]) -> Result<Bytes, BudgetExceeded> {
        if part.len() < MIN_SHARED_PART_BYTES {
            self.result_buffers.copy_bytes(part, &self.budget)
        } else {
            Ok(message.slice_ref(part))
        }
    }

    fn fail_without_id(
        &self,
        call: u64,
        message: &[u8],
        envelope: &Envelope,
        wakers: &mut Vec<Waker>,
    ) -> MessageRelation {
        match envelope.error {
            Some(error) => {
                self.fail(call, self.decode_error(error.slice(message)), wakers);
                MessageRelation::Answer
            }
            None => self.fail_unexpected(call, "response without an id", wakers),
        }
    }

    fn fail_malformed(
        &self,
        call: u64,
        message: &[u8],
        error: &ScanError,
        channel: ResponseChannel,
        wakers: &mut Vec<Waker>,
    ) -> MessageRelation {
        self.counters.count_and_warn(CounterKind::Broken, "discarded a malformed message");
        if !channel.is_single_message() && (error.has_method || error.fault == Fault::NotAnObject) {
            return MessageRelation::Other;
        }
        let shown = UntrustedText::from_bytes(&message[..message.len().min(4 * EXCERPT)]);
        self.fail_protocol(call, format!("{}: {}", error.fault, self.excerpt(&shown)), wakers);
        MessageRelation::Answer
    }

    fn fail_unexpected(&self, call: u64, what: &str, wakers: &mut Vec<Waker>) -> MessageRelation {
        self.counters.count_and_warn(CounterKind::Broken, "response does not match the request");
        self.fail_protocol(call, what.to_owned(), wakers);
        MessageRelation::Answer
    }

    /// Handles a message that exceeds the size limit.
    pub fn deliver_oversized(&self, partial: &PartialEnvelope, wakers: &mut Vec<Waker>) {
        self.counters.count_and_warn(CounterKind::Oversized, "discarded a message over the size limit");
        self.budget.throttle().record_large(self.limits.max_message);
        self.fail_discarded(partial, CallError::TooLarge { limit: self.limits.max_message }, wakers);
    }

    /// Handles a message that exceeds the memory budget.
    pub fn deliver_discarded(&self, partial: &PartialEnvelope, exceeded: BudgetExceeded, wakers: &mut Vec<Waker>) {
        self.counters.count_and_warn(CounterKind::Oversized, "discarded a message: memory budget exceeded");
        self.budget.throttle().record_large(LARGE_MESSAGE_BYTES);
        self.fail_discarded(partial, CallError::Discarded(exceeded), wakers);
    }

    fn fail_discarded(
        &self,
        PartialEnvelope { id, has_method }: &PartialEnvelope,
        error: CallError,
        wakers: &mut Vec<Waker>,
    ) {
        let Some(id) = id.as_deref() else { return };
        if !has_method {
            if let Some(id) = self.call_id(&Id::parse(id)) {
                self.fail(id, error, wakers);
            }
        } else {
            self.refuse_large(id);
        }
    }

    /// Rejects an oversized request of the server, so that the server does not wait forever.
    fn refuse_large(&self, id: &[u8]) {
        if id.len() <= MAX_ECHOED_ID_BYTES && Id::parse(id).is_legal() {
            let refusal = RequestRefusal::new(code::INVALID_REQUEST, "the request is too large");
            self.send_reply(&String::from_utf8_lossy(id), Err(refusal));
        }
    }

    fn route(
        &self,
        message: InboundMessage<'_>,
        retain: RetainPart<'_>,
        wakers: &mut Vec<Waker>,
    ) -> Result<(), NotMcpPeer> {
        let InboundMessage { bytes: line, envelope, stream_of } = message;
        self.unreadable.record_message();
        if envelope.method.is_some() {
            self.budget.throttle().record(line.len());
        }
        match (envelope.method, envelope.id) {
            (None, Some(_)) => self.on_response(line, envelope, retain, wakers),
            (None, None) => self.on_response_without_id(line, envelope),
            (Some(_), id) => {
                let Some(method) = envelope.method(line) else {
                    self.counters
                        .count_and_warn(CounterKind::Broken, "discarded a message whose method is not a string");
                    return Ok(());
                };
                if let Some(id) = id.filter(|_| line.len() > self.limits.max_server_request) {
                    self.counters.count_and_warn(CounterKind::Oversized, "rejected a request over the size limit");
                    self.refuse_large(id.slice(line));
                    return Ok(());
                }
                let params =
                    envelope.params.map(|params| retain(params.slice(line)).map(RawJson::new_unchecked)).transpose();
                let call = stream_of.and_then(|call| self.table().tag_of(call));
                match (params, id) {
                    (Ok(params), Some(id)) => return self.on_request(&method, id.slice(line), params, call),
                    (Ok(params), None) => self.on_notification(&method, params, call, wakers),
                    (Err(exceeded), id) => {
                        let id = id.map(|id| id.slice(line).to_vec());
                        self.deliver_discarded(&PartialEnvelope { id, has_method: true }, exceeded, wakers);
                    }
                }
            }
        }
        Ok(())
    }

    fn on_response(&self, line: &[u8], envelope: &Envelope, retain: RetainPart<'_>, wakers: &mut Vec<Waker>) {
        let Some(id) = envelope.id(line).and_then(|id| self.call_id(&id)) else {
            return self.on_unmatched(line, envelope);
        };
        let outcome = match (envelope.result, envelope.error) {
            (Some(result), None) => match self.protocol.result_kind(envelope.result_type(line).as_deref()) {
                Some(kind) => match retain(result.slice(line)) {
                    Ok(result) => Ok(RawResult { result: RawJson::new_unchecked(result), kind }),
                    Err(exceeded) => Err(CallError::Discarded(exceeded)),
                },
                None => {
                    let found = envelope.result_type(line).unwrap_or_default();
                    let found = UntrustedText::new(found);
                    Err(CallError::Protocol(format!("unknown resultType `{}`", found.truncate(40))))
                }
            },
            (None, Some(error)) => Err(self.decode_error(error.slice(line))),
            (Some(_), Some(_)) => Err(CallError::Protocol("both a result and an error".to_owned())),
            (None, None) => Err(CallError::Protocol("neither a result nor an error".to_owned())),
        };
        if !self.table().finish(id, outcome, wakers) {
            self.on_unmatched(line, envelope);
        }
    }

    /// Decodes an error for the caller. Omits data over the limit and truncates a long message.
    fn decode_error(&self, error: &[u8]) -> CallError {
        let read = match error.len() > self.limits.max_server_text {
            true => decode_large_error(error, &self.limits.bounds),
            false => RpcError::from_raw(RawJson::new_unchecked(Bytes::copy_from_slice(error)), &self.limits.bounds),
        };
        match read {
            Ok(error) => {
                let error = CallError::ErrorResponse(RpcError { message: truncate_message(error.message), ..error });
                error.without_secrets(&self.observer.redactor)
            }
            Err(problem) => CallError::from(problem),
        }
    }

    /// Handles a response without a pending call. Late responses are normal; an error without an id may belong to any
    /// call.
    fn on_unmatched(&self, line: &[u8], envelope: &Envelope) {
        if envelope.id(line) == Some(Id::Null) && envelope.error.is_some() {
            return self.on_response_without_id(line, envelope);
        }
        self.budget.throttle().record(line.len());
        self.counters.count(CounterKind::Unmatched);
    }

    fn on_response_without_id(&self, line: &[u8], envelope: &Envelope) {
        self.budget.throttle().record(line.len());
        let Some(error) = envelope.error else {
            return self
                .counters
                .count_and_warn(CounterKind::Broken, "discarded a message that is neither a request nor a response");
        };
        self.counters.count_and_warn(CounterKind::StrayError, "server reported an error without a request id");
        if let CallError::ErrorResponse(error) = self.decode_error(error.slice(line)) {
            let message = UntrustedText::new(error.message);
            self.record_anomaly(format!(
                "server reported an error without a request id: {} (code {})",
                self.excerpt(&message),
                error.code
            ));
        }
    }

    fn on_request(
        &self,
        method: &str,
        id: &[u8],
        params: Option<RawJson>,
        call: Option<CallTag>,
    ) -> Result<(), NotMcpPeer> {
        let id = match Id::parse(id) {
            read if read.is_legal() => String::from_utf8_lossy(id),
            _ => {
                self.counters.count_and_warn(
                    CounterKind::Broken,
                    "discarded a request whose id is neither a string nor a number",
                );
                return Ok(());
            }
        };
        match self.protocol.request(method, params, RequestOrigin { call, id: Some(&id) }) {
            RequestDisposition::Result(result) => self.send_reply(&id, Ok(result)),
            RequestDisposition::Reject(refusal) => self.send_reply(&id, Err(refusal)),
            RequestDisposition::Later(pending_reply) => self.begin_reply(&id, pending_reply),
            RequestDisposition::Unwanted => self.counters.count_and_warn(
                CounterKind::UnwantedRequest,
                "ignored a server request, which this revision does not allow",
            ),
            RequestDisposition::NotMcp(peer) => return Err(peer),
        }
        Ok(())
    }

    fn on_notification(&self, method: &str, params: Option<RawJson>, call: Option<CallTag>, wakers: &mut Vec<Waker>) {
        self.counters.count(CounterKind::Notification);
        match self.protocol.notification(method, params, call) {
            NotificationEffect::None => {}
            NotificationEffect::Progress(progress) => self.on_progress(progress),
            NotificationEffect::Ended(id) => drop(self.fail(id, CallError::Ended, wakers)),
            NotificationEffect::RequestCancelled(id) => self.cancel_reply(&id),
            NotificationEffect::Stray => self.counters.count(CounterKind::Stray),
        }
    }

    fn on_progress(&self, mut progress: Progress) {
        let id = self.call_id(&Id::parse(progress.token.as_bytes()));
        match id.and_then(|id| self.table().progress(id, progress.progress, Instant::now())) {
            Some(sink) => {
                let masked = |text: String| self.observer.redactor.redact_truncated(&text).into_owned();
                progress.message = progress.message.map(truncate_message).map(masked);
                sink(progress);
            }
            None => self.counters.count(CounterKind::StrayProgress),
        }
    }

    /// Returns the call number for an id.
    fn call_id(&self, id: &Id<'_>) -> Option<u64> {
        match id {
            Id::Integer(number) => u64::try_from(*number).ok(),
            other if self.limits.lenient_ids => other.lenient_number(),
            _ => None,
        }
    }

    fn on_non_json(&self, line: &[u8]) {
        self.budget.throttle().record(line.len());
        let shown = self.excerpt(&UntrustedText::from_bytes(&line[..line.len().min(4 * EXCERPT)]));
        let what = format!("{NOT_A_MESSAGE}: {shown}");
        self.counters.count_and_warn(CounterKind::Noise, &what);
        self.record_anomaly(what);
        self.unreadable.record(shown);
    }

    fn on_batch(&self, line: &[u8], wakers: &mut Vec<Waker>) -> Result<(), NotMcpPeer> {
        let line = Bytes::copy_from_slice(line);
        let messages = self.limits.bounds.check(&line).ok().and_then(|()| split_batch(&line));
        let Some(messages) = messages.filter(|messages| !messages.is_empty()) else {
            self.on_non_json(&line);
            return Ok(());
        };
        if !self.protocol.accepts_batches() {
            self.counters
                .count_and_warn(CounterKind::Broken, "server sent a batch, which this revision does not allow");
        }
        for message in messages {
            match scan(&message) {
                Ok(envelope) if self.protocol.accepts_batches() => {
                    let inbound = InboundMessage { bytes: &message, envelope: &envelope, stream_of: None };
                    self.route(inbound, &|part| self.result_buffers.copy_bytes(part, &self.budget), wakers)?;
                }
                Ok(envelope) if envelope.method.is_none() => {
                    if let Some(id) = envelope.id(&message).and_then(|id| self.call_id(&id)) {
                        self.fail(id, CallError::Protocol(Fault::Batch.to_string()), wakers);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Handles a malformed message. Fails the call it was for, if known.
    fn on_malformed(&self, line: &[u8], error: &ScanError, wakers: &mut Vec<Waker>) {
        self.budget.throttle().record(line.len());
        self.counters.count_and_warn(CounterKind::Broken, "discarded a malformed message");
        let shown = UntrustedText::from_bytes(&line[..line.len().min(4 * EXCERPT)]);
        let shown = self.excerpt(&shown);
        let what = format!("{}: {shown}", error.fault);
        let id = error.id.as_deref().filter(|_| !error.has_method).and_then(|id| self.call_id(&Id::parse(id)));
        if !id.is_some_and(|id| self.fail_protocol(id, what.clone(), wakers)) {
            self.record_anomaly(format!("server sent a malformed message: {what}"));
            self.unreadable.record(shown);
        }
    }
}
