//! Routing of incoming messages.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use tokio::time::Instant;
use wharf_spec::UntrustedText;
use wharf_wire::{
    Envelope, Fault, Id, PartialEnvelope, Progress, RawJson, RpcError, ScanError, View, code, scan, split_batch,
};

use super::excerpt::{MAX_MESSAGE, cut, large_error};
use super::{EXCERPT, Engine, NotMcpPeer, NotificationEffect, RawResult, RequestDisposition, RequestRefusal};
use crate::budget::{BudgetExceeded, LARGE_MESSAGE_BYTES};
use crate::counters::CounterKind;
use crate::error::CallError;
use crate::tap::Direction;

/// Results smaller than this are copied out of their message.
const MAX_COPIED_RESULT: usize = 4 << 10;

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
    fn is_whole(self) -> bool {
        matches!(self, Self::Body | Self::Refusal)
    }
}

/// The relation of a message to the call it arrived for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageDelivery {
    /// The response, valid or not.
    Answer,
    Other,
}

impl Engine {
    /// Handles one message, without its line ending. Adds the wakers of ended calls to `wakers`.
    ///
    /// # Errors
    ///
    /// If the peer is not an MCP server.
    pub fn deliver(&self, line: &[u8], wakers: &mut Vec<Waker>) -> Result<(), NotMcpPeer> {
        self.take(line, &|part| self.results.copy(part, &self.budget), wakers)
    }

    /// Like [`Engine::deliver`], for a message in its own buffer, which is charged to the budget if it is large. Its
    /// large parts are shared, not copied.
    pub fn deliver_held(&self, message: &Bytes, wakers: &mut Vec<Waker>) -> Result<(), NotMcpPeer> {
        self.take(message, &|part| self.kept(message, part), wakers)
    }

    /// Like [`Engine::deliver_held`], but a large message is processed on the low-priority thread.
    pub async fn deliver_in_turn(self: &Arc<Self>, message: Bytes) -> Result<(), NotMcpPeer> {
        let engine = Arc::clone(self);
        let delivered = self.budget.work(message.len(), move || {
            let mut wakers = Vec::new();
            let delivered = engine.deliver_held(&message, &mut wakers);
            wakers.into_iter().for_each(Waker::wake);
            delivered
        });
        delivered.await.unwrap_or(Ok(()))
    }

    fn take(&self, line: &[u8], keep: RetainPart<'_>, wakers: &mut Vec<Waker>) -> Result<(), NotMcpPeer> {
        self.onlooker.see(Direction::Received, line);
        match scan(line) {
            Ok(envelope) => return self.sort(line, &envelope, keep, wakers),
            Err(ScanError { fault: Fault::NotAnObject, .. }) => self.noise(line),
            Err(ScanError { fault: Fault::Batch, .. }) => return self.batch(line, wakers),
            Err(broken) => self.broken(line, &broken, wakers),
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
        on: ResponseChannel,
        wakers: &mut Vec<Waker>,
    ) -> Result<MessageDelivery, NotMcpPeer> {
        self.onlooker.see(Direction::Received, message);
        let envelope = match scan(message) {
            Ok(envelope) => envelope,
            Err(ScanError { fault: Fault::Batch, .. }) if self.dialect.accepts_batches() => {
                self.batch(message, wakers)?;
                return Ok(match self.time_left(call) {
                    None => MessageDelivery::Answer,
                    Some(_) if on.is_whole() => self.wrong_for(call, "batch without a response", wakers),
                    Some(_) => MessageDelivery::Other,
                });
            }
            Err(broken) => return Ok(self.broken_for(call, message, &broken, on, wakers)),
        };
        if envelope.method.is_some() {
            if on.is_whole() {
                return Ok(self.wrong_for(call, "request or notification instead of a response", wakers));
            }
            return self
                .sort(message, &envelope, &|part| self.kept(message, part), wakers)
                .map(|()| MessageDelivery::Other);
        }
        let id = envelope.id(message);
        match id.as_ref().and_then(|id| self.call_id(id)) {
            Some(id) if id == call => {
                self.answer(message, &envelope, &|bytes| self.kept(message, bytes), wakers);
                Ok(MessageDelivery::Answer)
            }
            None if on == ResponseChannel::Refusal || matches!(id, None | Some(Id::Null)) => {
                Ok(self.nameless_for(call, message, &envelope, wakers))
            }
            _ if on.is_whole() => Ok(self.wrong_for(call, "response to a different request", wakers)),
            _ if on == ResponseChannel::Shared => {
                self.answer(message, &envelope, &|bytes| self.kept(message, bytes), wakers);
                Ok(MessageDelivery::Other)
            }
            _ => {
                self.tally.count(CounterKind::Unmatched);
                Ok(MessageDelivery::Other)
            }
        }
    }

    /// Returns a part of a message that has its own buffer. Small parts are copied, so that they do not keep the whole
    /// message alive.
    fn kept(&self, message: &Bytes, part: &[u8]) -> Result<Bytes, BudgetExceeded> {
        if part.len() < MAX_COPIED_RESULT { self.results.copy(part, &self.budget) } else { Ok(message.slice_ref(part)) }
    }

    fn nameless_for(&self, call: u64, message: &[u8], envelope: &Envelope, wakers: &mut Vec<Waker>) -> MessageDelivery {
        match envelope.error {
            Some(error) => {
                self.fail(call, self.refusal(error.of(message)), wakers);
                MessageDelivery::Answer
            }
            None => self.wrong_for(call, "response without an id", wakers),
        }
    }

    fn broken_for(
        &self,
        call: u64,
        message: &[u8],
        broken: &ScanError,
        on: ResponseChannel,
        wakers: &mut Vec<Waker>,
    ) -> MessageDelivery {
        self.tally.warn(CounterKind::Broken, "discarded a malformed message");
        if !on.is_whole() && (broken.has_method || broken.fault == Fault::NotAnObject) {
            return MessageDelivery::Other;
        }
        let shown = UntrustedText::from_bytes(&message[..message.len().min(4 * EXCERPT)]);
        self.fail_saying(call, format!("{}: {}", broken.fault, self.excerpt(&shown)), wakers);
        MessageDelivery::Answer
    }

    fn wrong_for(&self, call: u64, what: &str, wakers: &mut Vec<Waker>) -> MessageDelivery {
        self.tally.warn(CounterKind::Broken, "response does not match the request");
        self.fail_saying(call, what.to_owned(), wakers);
        MessageDelivery::Answer
    }

    /// Handles a message that exceeds the size limit.
    pub fn deliver_oversized(&self, glimpse: &PartialEnvelope, wakers: &mut Vec<Waker>) {
        self.tally.warn(CounterKind::Oversized, "discarded a message over the size limit");
        self.budget.pace().spend_large(self.limits.message);
        self.discard(glimpse, CallError::TooLarge { limit: self.limits.message }, wakers);
    }

    /// Handles a message that exceeds the memory budget.
    pub fn deliver_discarded(&self, glimpse: &PartialEnvelope, exceeded: BudgetExceeded, wakers: &mut Vec<Waker>) {
        self.tally.warn(CounterKind::Oversized, "discarded a message: memory budget exceeded");
        self.budget.pace().spend_large(LARGE_MESSAGE_BYTES);
        self.discard(glimpse, CallError::Discarded(exceeded), wakers);
    }

    fn discard(&self, PartialEnvelope { id, has_method }: &PartialEnvelope, error: CallError, wakers: &mut Vec<Waker>) {
        let Some(id) = id.as_deref() else { return };
        if !has_method {
            if let Some(id) = self.call_id(&Id::read(id)) {
                self.fail(id, error, wakers);
            }
        } else {
            self.refuse_large(id);
        }
    }

    /// Rejects an oversized request of the server, so that the server does not wait forever.
    fn refuse_large(&self, id: &[u8]) {
        if id.len() <= MAX_MESSAGE && Id::read(id).is_legal() {
            let refusal = RequestRefusal::new(code::INVALID_REQUEST, "the request is too large");
            self.reply(&String::from_utf8_lossy(id), Err(refusal));
        }
    }

    fn sort(
        &self,
        line: &[u8],
        envelope: &Envelope,
        keep: RetainPart<'_>,
        wakers: &mut Vec<Waker>,
    ) -> Result<(), NotMcpPeer> {
        if envelope.method.is_some() {
            self.budget.pace().spend(line.len());
        }
        match (envelope.method, envelope.id) {
            (None, Some(_)) => self.answer(line, envelope, keep, wakers),
            (None, None) => self.nameless(line, envelope),
            (Some(_), id) => {
                let Some(method) = envelope.method(line) else {
                    self.tally.warn(CounterKind::Broken, "discarded a message whose method is not a string");
                    return Ok(());
                };
                if let Some(id) = id.filter(|_| line.len() > self.limits.request) {
                    self.tally.warn(CounterKind::Oversized, "rejected a request over the size limit");
                    self.refuse_large(id.of(line));
                    return Ok(());
                }
                let params = envelope.params.map(|params| keep(params.of(line)).map(RawJson::known)).transpose();
                match (params, id) {
                    (Ok(params), Some(id)) => return self.request(&method, id.of(line), params),
                    (Ok(params), None) => self.notification(&method, params, wakers),
                    (Err(exceeded), id) => {
                        let id = id.map(|id| id.of(line).to_vec());
                        self.deliver_discarded(&PartialEnvelope { id, has_method: true }, exceeded, wakers);
                    }
                }
            }
        }
        Ok(())
    }

    fn answer(&self, line: &[u8], envelope: &Envelope, keep: RetainPart<'_>, wakers: &mut Vec<Waker>) {
        let Some(id) = envelope.id(line).and_then(|id| self.call_id(&id)) else {
            return self.unmatched(line, envelope);
        };
        let outcome = match (envelope.result, envelope.error) {
            (Some(result), None) => match self.dialect.result_kind(envelope.result_type(line).as_deref()) {
                Some(kind) => match keep(result.of(line)) {
                    Ok(result) => Ok(RawResult { result: RawJson::known(result), kind }),
                    Err(exceeded) => Err(CallError::Discarded(exceeded)),
                },
                None => {
                    let found = envelope.result_type(line).unwrap_or_default();
                    let found = UntrustedText::new(found);
                    Err(CallError::Protocol(format!("unknown resultType `{}`", found.shortened(40))))
                }
            },
            (None, Some(error)) => Err(self.refusal(error.of(line))),
            (Some(_), Some(_)) => Err(CallError::Protocol("both a result and an error".to_owned())),
            (None, None) => Err(CallError::Protocol("neither a result nor an error".to_owned())),
        };
        if !self.table().finish(id, outcome, wakers) {
            self.unmatched(line, envelope);
        }
    }

    /// Decodes an error for the caller. Omits data over the limit and truncates a long message.
    fn refusal(&self, error: &[u8]) -> CallError {
        let read = match error.len() > self.limits.remark {
            true => large_error(error, &self.limits.bounds),
            false => RpcError::view(RawJson::known(Bytes::copy_from_slice(error)), &self.limits.bounds),
        };
        match read {
            Ok(error) => CallError::Refused(RpcError { message: cut(error.message), ..error }),
            Err(problem) => CallError::from(problem),
        }
    }

    /// Handles a response without a pending call. Late responses are normal; an error without an id may belong to any
    /// call.
    fn unmatched(&self, line: &[u8], envelope: &Envelope) {
        if envelope.id(line) == Some(Id::Null) && envelope.error.is_some() {
            return self.nameless(line, envelope);
        }
        self.budget.pace().spend(line.len());
        self.tally.count(CounterKind::Unmatched);
    }

    fn nameless(&self, line: &[u8], envelope: &Envelope) {
        self.budget.pace().spend(line.len());
        let Some(error) = envelope.error else {
            return self
                .tally
                .warn(CounterKind::Broken, "discarded a message that is neither a request nor a response");
        };
        self.tally.warn(CounterKind::StrayError, "server reported an error without a request id");
        if let CallError::Refused(error) = self.refusal(error.of(line)) {
            let message = UntrustedText::new(error.message);
            self.suspect(format!(
                "server reported an error without a request id: {} (code {})",
                self.excerpt(&message),
                error.code
            ));
        }
    }

    fn request(&self, method: &str, id: &[u8], params: Option<RawJson>) -> Result<(), NotMcpPeer> {
        let id = match Id::read(id) {
            read if read.is_legal() => String::from_utf8_lossy(id),
            _ => {
                self.tally.warn(CounterKind::Broken, "discarded a request whose id is neither a string nor a number");
                return Ok(());
            }
        };
        match self.dialect.request(method, params) {
            RequestDisposition::Result(result) => self.reply(&id, Ok(result)),
            RequestDisposition::Refused(refusal) => self.reply(&id, Err(refusal)),
            RequestDisposition::Later(errand) => self.begin(&id, errand),
            RequestDisposition::Unwanted => self
                .tally
                .warn(CounterKind::UnwantedRequest, "ignored a server request, which this revision does not allow"),
            RequestDisposition::Nonsense(nonsense) => return Err(nonsense),
        }
        Ok(())
    }

    fn notification(&self, method: &str, params: Option<RawJson>, wakers: &mut Vec<Waker>) {
        self.tally.count(CounterKind::Notification);
        match self.dialect.notification(method, params) {
            NotificationEffect::None => {}
            NotificationEffect::Progress(progress) => self.progress(progress),
            NotificationEffect::Ended(id) => drop(self.fail(id, CallError::Ended, wakers)),
            NotificationEffect::TakenBack(id) => self.abandon(&id),
            NotificationEffect::Stray => self.tally.count(CounterKind::Stray),
        }
    }

    fn progress(&self, mut progress: Progress) {
        let id = self.call_id(&Id::read(progress.token.as_bytes()));
        match id.and_then(|id| self.table().progress(id, progress.progress, Instant::now())) {
            Some(sink) => {
                let masked = |text: String| self.onlooker.redactor.redact_cut(&text).into_owned();
                progress.message = progress.message.map(cut).map(masked);
                sink(progress);
            }
            None => self.tally.count(CounterKind::StrayProgress),
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

    fn noise(&self, line: &[u8]) {
        self.budget.pace().spend(line.len());
        self.tally.warn(CounterKind::Noise, "server wrote a line to stdout that is not a message");
        let shown = UntrustedText::from_bytes(&line[..line.len().min(4 * EXCERPT)]);
        self.suspect(format!("server wrote a line to stdout that is not a message: {}", self.excerpt(&shown)));
    }

    fn batch(&self, line: &[u8], wakers: &mut Vec<Waker>) -> Result<(), NotMcpPeer> {
        let line = Bytes::copy_from_slice(line);
        let messages = self.limits.bounds.check(&line).ok().and_then(|()| split_batch(&line));
        let Some(messages) = messages.filter(|messages| !messages.is_empty()) else {
            self.noise(&line);
            return Ok(());
        };
        if !self.dialect.accepts_batches() {
            self.tally.warn(CounterKind::Broken, "server sent a batch, which this revision does not allow");
        }
        for message in messages {
            match scan(&message) {
                Ok(envelope) if self.dialect.accepts_batches() => {
                    self.sort(&message, &envelope, &|part| self.results.copy(part, &self.budget), wakers)?;
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
    fn broken(&self, line: &[u8], broken: &ScanError, wakers: &mut Vec<Waker>) {
        self.budget.pace().spend(line.len());
        self.tally.warn(CounterKind::Broken, "discarded a malformed message");
        let shown = UntrustedText::from_bytes(&line[..line.len().min(4 * EXCERPT)]);
        let what = format!("{}: {}", broken.fault, self.excerpt(&shown));
        let id = broken.id.as_deref().filter(|_| !broken.has_method).and_then(|id| self.call_id(&Id::read(id)));
        if !id.is_some_and(|id| self.fail_saying(id, what.clone(), wakers)) {
            self.suspect(format!("server sent a malformed message: {what}"));
        }
    }
}
