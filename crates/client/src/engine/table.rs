//! The calls in flight: a slab whose ids count the uses of their slot, so that a late response never matches another
//! call.
//!
//! No I/O, and no clock except for the far future that stands for "no deadline". Wakers of ended calls are returned, to
//! be woken after the lock is released.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::{CallEffect, CancelPolicy, Delivery, RawResult, Ticket};
use crate::error::{CallError, DisconnectReport, TimeoutKind};
use crate::options::{CallTag, ProgressSink};

/// Bits of an id that select the slot. The others count how often the slot was used.
const SLOT_BITS: u32 = 20;
/// Ids stay below 2^51, so that every JSON implementation represents them exactly.
const MAX_USES: u32 = (1 << 31) - 1;

pub(super) type CallOutcome = Result<RawResult, CallError>;

pub(super) struct InFlightTable {
    slots: Vec<CallSlot>,
    free: Vec<u32>,
    /// Maximum pending calls.
    limit: usize,
    /// No call expires before this time.
    next_deadline: Instant,
    /// Time the driver last armed its timer for.
    armed: Instant,
    /// Number of active pauses of the deadlines, and the start of the pause.
    active_pauses: usize,
    paused_since: Option<Instant>,
    closed: Option<Arc<DisconnectReport>>,
}

struct CallSlot {
    uses: u32,
    state: SlotState,
}

enum SlotState {
    Free,
    Waiting(WaitingCall),
    Done(CallOutcome),
}

/// A pending call.
pub(super) struct WaitingCall {
    pub waker: Option<Waker>,
    pub since: Instant,
    /// Idle timeout, restarted by progress.
    pub idle_timeout: Duration,
    pub idle_deadline: Instant,
    pub total_deadline: Instant,
    pub progress: Option<ProgressSink>,
    /// Value of the last progress report.
    pub last_progress: Option<f64>,
    pub effect: CallEffect,
    pub cancel_policy: CancelPolicy,
    pub ticket: Option<Ticket>,
    /// Remaining time its deadlines may be paused.
    pub pause_left: Duration,
    /// No future waits for its outcome.
    pub detached: bool,
    /// The caller's number for the call.
    pub tag: Option<CallTag>,
}

/// A call that timed out.
pub(super) struct ExpiredCall {
    pub id: u64,
    pub limit: TimeoutKind,
    pub cancel_policy: CancelPolicy,
    detached: bool,
}

impl InFlightTable {
    pub fn new(limit: usize) -> Self {
        let never = far_future();
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            limit: limit.min(1 << SLOT_BITS),
            next_deadline: never,
            armed: never,
            active_pauses: 0,
            paused_since: None,
            closed: None,
        }
    }

    /// Adds a call. Returns its id, and whether its deadline is earlier than the armed timer.
    pub fn insert(&mut self, waiting: WaitingCall) -> Result<(u64, bool), CallError> {
        if let Some(gone) = &self.closed {
            return Err(CallError::RetryableDisconnect(Arc::clone(gone)));
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() < self.limit => {
                self.slots.push(CallSlot { uses: 0, state: SlotState::Free });
                (self.slots.len() - 1) as u32
            }
            None => return Err(CallError::Busy),
        };
        let idle_deadline = waiting.idle_deadline;
        let slot = &mut self.slots[index as usize];
        slot.state = SlotState::Waiting(waiting);
        self.next_deadline = self.next_deadline.min(idle_deadline);
        Ok((encode_id(slot.uses, index), idle_deadline < self.armed))
    }

    /// Records the ticket that identifies the call's message within its link.
    pub fn record_ticket(&mut self, id: u64, ticket: Ticket) {
        if let Some(SlotState::Waiting(waiting)) = self.find(id) {
            waiting.ticket = Some(ticket);
        }
    }

    /// Returns the tag of a pending call.
    pub fn tag_of(&mut self, id: u64) -> Option<CallTag> {
        match self.find(id) {
            Some(SlotState::Waiting(waiting)) => waiting.tag,
            _ => None,
        }
    }

    /// Sets the outcome of a pending call. Returns false if the call is not pending.
    pub fn finish(&mut self, id: u64, outcome: CallOutcome, wakers: &mut Vec<Waker>) -> bool {
        let Some(state @ SlotState::Waiting(_)) = self.find(id) else { return false };
        if let SlotState::Waiting(waiting) = std::mem::replace(state, SlotState::Done(outcome)) {
            wakers.extend(waiting.waker);
            if waiting.detached {
                self.release(id);
            }
        }
        true
    }

    /// Lets a call continue without a waiter.
    pub fn detach(&mut self, id: u64) {
        match self.find(id) {
            Some(SlotState::Waiting(waiting)) => waiting.detached = true,
            _ => drop(self.release(id)),
        }
    }

    /// Pauses all deadlines while the user is prompted.
    pub fn pause_deadlines(&mut self, now: Instant) {
        self.active_pauses += 1;
        self.paused_since.get_or_insert(now);
    }

    /// Ends one pause. The last one extends all deadlines by the length of the pause and returns that length.
    pub fn resume_deadlines(&mut self, now: Instant) -> Duration {
        self.active_pauses -= 1;
        if self.active_pauses > 0 {
            return Duration::ZERO;
        }
        let Some(since) = self.paused_since.take() else { return Duration::ZERO };
        for slot in &mut self.slots {
            let SlotState::Waiting(waiting) = &mut slot.state else { continue };
            let paused = now.saturating_duration_since(since.max(waiting.since)).min(waiting.pause_left);
            waiting.idle_deadline += paused;
            waiting.total_deadline += paused;
            waiting.pause_left -= paused;
        }
        // Recalculated when the timer fires.
        self.next_deadline = now;
        now.saturating_duration_since(since)
    }

    /// Takes a call's outcome, or registers a waker.
    pub fn poll(&mut self, id: u64, waker: &Waker) -> Poll<CallOutcome> {
        match self.find(id) {
            Some(SlotState::Waiting(waiting)) => {
                match &mut waiting.waker {
                    Some(known) => known.clone_from(waker),
                    none => *none = Some(waker.clone()),
                }
                Poll::Pending
            }
            Some(SlotState::Done(_)) => match self.release(id) {
                Some(SlotState::Done(outcome)) => Poll::Ready(outcome),
                _ => Poll::Pending,
            },
            // Polled after completion; any result is allowed.
            _ => Poll::Pending,
        }
    }

    /// Removes a call. Returns the action for its server if it was pending.
    pub fn remove(&mut self, id: u64) -> Option<CancelPolicy> {
        match self.release(id)? {
            SlotState::Waiting(waiting) => Some(waiting.cancel_policy),
            _ => None,
        }
    }

    /// Restarts a call's idle timeout and returns its progress sink. Returns `None` if the call is not pending, has no
    /// sink, or if the value has decreased.
    pub fn progress(&mut self, id: u64, value: f64, now: Instant) -> Option<ProgressSink> {
        let Some(SlotState::Waiting(waiting)) = self.find(id) else { return None };
        let sink = waiting.progress.clone()?;
        if waiting.last_progress.is_some_and(|before| value < before) {
            return None;
        }
        waiting.last_progress = Some(value);
        waiting.idle_deadline = (now + waiting.idle_timeout).min(waiting.total_deadline);
        Some(sink)
    }

    /// Returns the time of the next deadline and records it as armed.
    pub fn arm_timer(&mut self) -> Instant {
        self.armed = self.next_deadline;
        self.next_deadline
    }

    /// Ends expired calls and determines the next deadline.
    pub fn expire(&mut self, now: Instant, hint: Option<&str>, wakers: &mut Vec<Waker>) -> Vec<ExpiredCall> {
        let mut expired = Vec::new();
        self.next_deadline = far_future();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let SlotState::Waiting(waiting) = &mut slot.state else { continue };
            // During a pause a call's deadline is extended by all of its remaining pause time.
            let grace = if self.paused_since.is_some() { waiting.pause_left } else { Duration::ZERO };
            if now < waiting.idle_deadline + grace {
                self.next_deadline = self.next_deadline.min(waiting.idle_deadline + grace);
                continue;
            }
            let limit = if now >= waiting.total_deadline + grace { TimeoutKind::Total } else { TimeoutKind::Idle };
            let cancel_policy = waiting.cancel_policy;
            let after = match limit {
                TimeoutKind::Idle => waiting.idle_timeout,
                TimeoutKind::Total => waiting.total_deadline - waiting.since,
            };
            wakers.extend(waiting.waker.take());
            let detached = waiting.detached;
            slot.state = SlotState::Done(Err(CallError::TimedOut { after, limit, hint: hint.map(str::to_owned) }));
            expired.push(ExpiredCall { id: encode_id(slot.uses, index as u32), limit, cancel_policy, detached });
        }
        for call in expired.iter().filter(|call| call.detached) {
            self.release(call.id);
        }
        expired
    }

    /// Returns the calls to cancel when the connection closes.
    pub fn cancellable_ids(&self) -> Vec<u64> {
        let waiting = self.slots.iter().enumerate().filter_map(|(index, slot)| match &slot.state {
            SlotState::Waiting(waiting) if waiting.cancel_policy == CancelPolicy::Withdraw => {
                Some(encode_id(slot.uses, index as u32))
            }
            _ => None,
        });
        waiting.collect()
    }

    /// Ends all calls and refuses new ones. A call that may have been sent and may have side effects has an unknown
    /// outcome; any other can be retried.
    pub fn close(
        &mut self,
        gone: Arc<DisconnectReport>,
        may_have_been_sent: impl Fn(Ticket) -> bool,
        wakers: &mut Vec<Waker>,
    ) {
        self.lose_all(&gone, may_have_been_sent, wakers);
        self.closed.get_or_insert(gone);
    }

    /// Ends all calls and continues to accept new ones.
    pub fn lose_all(
        &mut self,
        gone: &Arc<DisconnectReport>,
        may_have_been_sent: impl Fn(Ticket) -> bool,
        wakers: &mut Vec<Waker>,
    ) {
        let mut unattended = Vec::new();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let SlotState::Waiting(waiting) = &mut slot.state else { continue };
            let delivery = if waiting.ticket.is_none_or(&may_have_been_sent) { Delivery::Maybe } else { Delivery::No };
            let error = loss_error(waiting.effect, delivery, gone);
            wakers.extend(waiting.waker.take());
            if waiting.detached {
                unattended.push(encode_id(slot.uses, index as u32));
            }
            slot.state = SlotState::Done(Err(error));
        }
        for id in unattended {
            self.release(id);
        }
    }

    /// Ends one pending call.
    pub fn lose_call(&mut self, id: u64, gone: &Arc<DisconnectReport>, delivery: Delivery, wakers: &mut Vec<Waker>) {
        let Some(SlotState::Waiting(waiting)) = self.find(id) else { return };
        let error = loss_error(waiting.effect, delivery, gone);
        self.finish(id, Err(error), wakers);
    }

    /// Returns the time until a call's idle deadline.
    pub fn time_left(&mut self, id: u64, now: Instant) -> Option<Duration> {
        match self.find(id) {
            Some(SlotState::Waiting(waiting)) => Some(waiting.idle_deadline.saturating_duration_since(now)),
            _ => None,
        }
    }

    /// Returns the error for a new call, if the connection is closed.
    pub fn closed_error(&self) -> Option<CallError> {
        self.closed.as_ref().map(|gone| CallError::RetryableDisconnect(Arc::clone(gone)))
    }

    fn find(&mut self, id: u64) -> Option<&mut SlotState> {
        let slot = self.slots.get_mut((id & ((1 << SLOT_BITS) - 1)) as usize)?;
        (u64::from(slot.uses) == id >> SLOT_BITS).then_some(&mut slot.state)
    }

    fn release(&mut self, id: u64) -> Option<SlotState> {
        let index = (id & ((1 << SLOT_BITS) - 1)) as u32;
        let state = std::mem::replace(self.find(id)?, SlotState::Free);
        if matches!(state, SlotState::Free) {
            return None;
        }
        let slot = &mut self.slots[index as usize];
        slot.uses = (slot.uses + 1) & MAX_USES;
        self.free.push(index);
        Some(state)
    }
}

fn loss_error(effect: CallEffect, delivery: Delivery, gone: &Arc<DisconnectReport>) -> CallError {
    match (effect, delivery) {
        (CallEffect::MayWrite, Delivery::Maybe) => CallError::OutcomeUnknown(Arc::clone(gone)),
        _ => CallError::RetryableDisconnect(Arc::clone(gone)),
    }
}

fn encode_id(uses: u32, index: u32) -> u64 {
    u64::from(uses) << SLOT_BITS | u64::from(index)
}

/// Returns the time that stands for "no deadline". A timer set for it may fire early.
fn far_future() -> Instant {
    Instant::now() + Duration::from_secs(86_400 * 365)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ResultKind;
    use crate::error::DisconnectCause;
    use wharf_wire::RawJson;

    fn waiting(effect: CallEffect, seconds: u64) -> WaitingCall {
        let now = Instant::now();
        WaitingCall {
            waker: None,
            since: now,
            idle_timeout: Duration::from_secs(seconds),
            idle_deadline: now + Duration::from_secs(seconds),
            total_deadline: now + Duration::from_secs(300),
            progress: None,
            last_progress: None,
            effect,
            cancel_policy: CancelPolicy::Withdraw,
            ticket: None,
            pause_left: Duration::from_secs(600),
            detached: false,
            tag: None,
        }
    }

    fn answer() -> CallOutcome {
        Ok(RawResult { result: RawJson::empty_object(), kind: ResultKind::Complete })
    }

    fn gone() -> Arc<DisconnectReport> {
        Arc::new(DisconnectReport { cause: DisconnectCause::Exited, exit: None, stderr: Vec::new(), hint: None })
    }

    #[test]
    fn call_ids_are_never_reused() {
        let mut table = InFlightTable::new(4);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let (id, _) = table.insert(waiting(CallEffect::Reads, 1)).unwrap();
            assert!(seen.insert(id));
            assert!(table.finish(id, answer(), &mut Vec::new()));
            assert!(!table.finish(id, answer(), &mut Vec::new()), "a second answer has no request");
            assert!(matches!(table.poll(id, Waker::noop()), Poll::Ready(Ok(_))));
            assert!(!table.finish(id, answer(), &mut Vec::new()), "a late answer has no request");
        }
        assert_eq!(table.slots.len(), 1);
    }

    #[test]
    fn full_table_rejects_new_calls() {
        let mut table = InFlightTable::new(2);
        let (first, _) = table.insert(waiting(CallEffect::Reads, 1)).unwrap();
        table.insert(waiting(CallEffect::Reads, 1)).unwrap();
        assert!(matches!(table.insert(waiting(CallEffect::Reads, 1)), Err(CallError::Busy)));
        assert_eq!(table.remove(first), Some(CancelPolicy::Withdraw));
        assert!(table.insert(waiting(CallEffect::Reads, 1)).is_ok());
    }

    #[test]
    fn timer_is_rearmed_for_earlier_deadlines_only() {
        let mut table = InFlightTable::new(4);
        assert!(table.insert(waiting(CallEffect::Reads, 30)).unwrap().1);
        table.arm_timer();
        assert!(!table.insert(waiting(CallEffect::Reads, 31)).unwrap().1);
        assert!(table.insert(waiting(CallEffect::Reads, 1)).unwrap().1);
        let now = Instant::now() + Duration::from_secs(2);
        assert_eq!(table.expire(now, None, &mut Vec::new()).len(), 1);
        assert!(table.arm_timer() > now);
    }

    #[test]
    fn deadlines_pause_during_prompts_up_to_a_maximum() {
        let mut table = InFlightTable::new(4);
        let now = Instant::now();
        let at = |seconds: u64| now + Duration::from_secs(seconds);
        let (id, _) = table.insert(waiting(CallEffect::Reads, 30)).unwrap();
        table.pause_deadlines(at(10));
        table.pause_deadlines(at(20));
        assert!(table.expire(at(500), None, &mut Vec::new()).is_empty());
        table.resume_deadlines(at(510));
        assert!(table.expire(at(511), None, &mut Vec::new()).is_empty(), "somebody still asks");
        table.resume_deadlines(at(550));
        // Paused for 540 seconds, so 20 of the 30 are left.
        assert!(table.expire(at(569), None, &mut Vec::new()).is_empty());
        table.pause_deadlines(at(569));
        // 60 of the 600 seconds of pause time are left.
        assert!(table.expire(at(629), None, &mut Vec::new()).is_empty());
        assert_eq!(table.expire(at(631), None, &mut Vec::new()).len(), 1);
        assert!(matches!(table.poll(id, Waker::noop()), Poll::Ready(Err(CallError::TimedOut { .. }))));
    }

    #[test]
    fn detached_call_frees_its_slot_when_it_ends() {
        let mut table = InFlightTable::new(1);
        for end in 0..2 {
            let (id, _) = table.insert(waiting(CallEffect::Reads, 30)).unwrap();
            table.detach(id);
            match end {
                0 => assert!(table.finish(id, answer(), &mut Vec::new())),
                _ => drop(table.expire(Instant::now() + Duration::from_secs(31), None, &mut Vec::new())),
            }
        }
        assert!(table.insert(waiting(CallEffect::Reads, 1)).is_ok(), "the only slot is free again");
    }

    #[test]
    fn possibly_sent_writes_have_unknown_outcome_on_disconnect() {
        for (effect, ticket, unknown) in [
            (CallEffect::MayWrite, Some(Ticket(0)), true),
            (CallEffect::MayWrite, None, true),
            (CallEffect::MayWrite, Some(Ticket(9)), false),
            (CallEffect::Reads, Some(Ticket(0)), false),
        ] {
            let mut table = InFlightTable::new(4);
            let (id, _) = table.insert(waiting(effect, 1)).unwrap();
            if let Some(ticket) = ticket {
                table.record_ticket(id, ticket);
            }
            table.close(gone(), |ticket| ticket.0 < 5, &mut Vec::new());
            let Poll::Ready(Err(error)) = table.poll(id, Waker::noop()) else { panic!("not ended") };
            assert_eq!(matches!(error, CallError::OutcomeUnknown(_)), unknown, "{effect:?} {ticket:?}");
            assert!(table.insert(waiting(effect, 1)).is_err());
        }
    }
}
