//! Forwards bytes between two sockets according to a script: one thread, both directions, no blocking calls.
//!
//! [`LaneState`] decides, this module performs. Without a rule the relay is transparent: FIN is forwarded as FIN and RST as
//! RST.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::endpoint::{ShutdownSignal, close_with_reset};
use super::script::{ByteFault, Direction, LaneState, LaneStep};

/// Maximum bytes buffered ahead of forwarding.
const READ_AHEAD: usize = 64 << 10;

/// Forwarded bytes, to the server and to the client.
#[derive(Debug, Default)]
pub(super) struct ForwardedBytes {
    pub to_server: AtomicU64,
    pub to_client: AtomicU64,
}

/// Externally injected faults: the pipe wakes the relay, the channel carries the faults.
pub(super) struct InjectedFaults {
    pub bell: OwnedFd,
    pub faults: Receiver<(Direction, ByteFault)>,
}

/// A connection through the proxy.
pub(super) struct FaultRelay<'a> {
    flows: [RelayFlow; 2],
    passed: &'a ForwardedBytes,
    ending: &'a ShutdownSignal,
    orders: Option<InjectedFaults>,
}

/// One direction: read from `source`, buffered in `arrived`, released to `leaving`, written to the other flow's source.
struct RelayFlow {
    source: TcpStream,
    lane: LaneState,
    arrived: Vec<u8>,
    leaving: Vec<u8>,
    held_until: Option<Instant>,
    state: FlowState,
    source_ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FlowState {
    Flowing,
    /// FIN was sent to the receiver.
    Discarding,
    Stopped,
}

/// The end of a connection before both directions ended.
enum EarlyEnd {
    Cut,
    Close,
}

impl<'a> FaultRelay<'a> {
    pub(super) fn new(
        [client, server]: [TcpStream; 2],
        lanes: [LaneState; 2],
        passed: &'a ForwardedBytes,
        ending: &'a ShutdownSignal,
    ) -> io::Result<FaultRelay<'a>> {
        client.set_nonblocking(true)?;
        server.set_nonblocking(true)?;
        server.set_nodelay(true)?;
        let [to_server, to_client] = lanes;
        let flows = [RelayFlow::new(client, to_server), RelayFlow::new(server, to_client)];
        Ok(FaultRelay { flows, passed, ending, orders: None })
    }

    pub(super) fn with_injected_faults(self, orders: InjectedFaults) -> FaultRelay<'a> {
        FaultRelay { orders: Some(orders), ..self }
    }

    /// Runs until both directions have ended, a fault ends them, or the proxy is dropped.
    pub(super) fn run(mut self) {
        loop {
            match self.advance() {
                Ok(()) => {}
                Err(EarlyEnd::Cut) => return self.flows.into_iter().for_each(|flow| close_with_reset(flow.source)),
                Err(EarlyEnd::Close) => return self.close(),
            }
            if self.flows.iter().all(RelayFlow::is_over) || self.wait().is_err() {
                return;
            }
        }
    }

    /// Makes all progress possible without waiting.
    fn advance(&mut self) -> Result<(), EarlyEnd> {
        for (direction, fault) in self.take_injected_faults() {
            self.apply_fault(direction, fault)?;
        }
        for direction in [Direction::ToServer, Direction::ToClient] {
            self.flow(direction).fill()?;
            while let Some(step) = self.next_step(direction)? {
                match step {
                    LaneStep::Pass(bytes, pause) => {
                        self.counter(direction).fetch_add(bytes as u64, Ordering::SeqCst);
                        self.flow(direction).release(bytes);
                        self.flow(direction).delay(pause);
                    }
                    LaneStep::Strike(fault) => self.apply_fault(direction, fault)?,
                }
            }
        }
        Ok(())
    }

    /// Returns the next step of a direction that is neither delayed nor blocked by its receiver. After the last step,
    /// sends FIN to the receiver.
    fn next_step(&mut self, direction: Direction) -> Result<Option<LaneStep>, EarlyEnd> {
        let [from_client, from_server] = &mut self.flows;
        let (flow, receiver) = match direction {
            Direction::ToServer => (from_client, &from_server.source),
            Direction::ToClient => (from_server, &from_client.source),
        };
        flow.flush(receiver)?;
        if !flow.can_forward() {
            return Ok(None);
        }
        let step = flow.lane.next(flow.arrived.len());
        if step.is_none() && flow.source_ended {
            receiver.shutdown(Shutdown::Write).ok();
            flow.state = FlowState::Discarding;
        }
        Ok(step)
    }

    fn apply_fault(&mut self, direction: Direction, fault: ByteFault) -> Result<(), EarlyEnd> {
        match fault {
            ByteFault::Cut => return Err(EarlyEnd::Cut),
            ByteFault::Close => return Err(EarlyEnd::Close),
            ByteFault::HalfClose => {
                self.receiver(direction).shutdown(Shutdown::Write).ok();
                self.flow(direction).state = FlowState::Discarding;
            }
            ByteFault::Garbage(bytes) => self.flow(direction).leaving.extend(bytes),
            ByteFault::BlackHole => self.flow(direction).state = FlowState::Stopped,
            ByteFault::Trickle { .. } => self.flow(direction).lane.inject_now(fault),
        }
        Ok(())
    }

    fn take_injected_faults(&mut self) -> Vec<(Direction, ByteFault)> {
        let Some(orders) = &self.orders else { return Vec::new() };
        let faults: Vec<_> = orders.faults.try_iter().collect();
        // Each fault writes one byte to the pipe, so one read per fault drains it.
        for _ in &faults {
            rustix::io::read(&orders.bell, &mut [0; 1]).ok();
        }
        faults
    }

    fn wait(&self) -> io::Result<()> {
        let mut sources = Vec::new();
        sources.extend(self.orders.as_ref().map(|orders| PollFd::new(&orders.bell, PollFlags::IN)));
        for (flow, other) in [(0, 1), (1, 0)].map(|(one, other)| (&self.flows[one], &self.flows[other])) {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, flow.wants_input());
            flags.set(PollFlags::OUT, !other.leaving.is_empty() && other.state == FlowState::Flowing);
            // Skip idle sockets: one that hung up would wake the poll repeatedly.
            if !flags.is_empty() {
                sources.push(PollFd::new(&flow.source, flags));
            }
        }
        let due = self.flows.iter().filter_map(|flow| flow.held_until).min();
        self.ending.wait(&mut sources, due)
    }

    /// Drains received bytes, because closing with unread bytes would send RST.
    fn close(mut self) {
        for flow in &mut self.flows {
            flow.source.shutdown(Shutdown::Write).ok();
            while matches!(flow.source.read(&mut [0; 4096]), Ok(1..)) {}
        }
    }

    fn flow(&mut self, direction: Direction) -> &mut RelayFlow {
        &mut self.flows[direction as usize]
    }

    fn receiver(&self, direction: Direction) -> &TcpStream {
        &self.flows[1 - direction as usize].source
    }

    fn counter(&self, direction: Direction) -> &AtomicU64 {
        match direction {
            Direction::ToServer => &self.passed.to_server,
            Direction::ToClient => &self.passed.to_client,
        }
    }
}

impl RelayFlow {
    fn new(source: TcpStream, lane: LaneState) -> RelayFlow {
        let (arrived, leaving) = (Vec::new(), Vec::new());
        RelayFlow { source, lane, arrived, leaving, held_until: None, state: FlowState::Flowing, source_ended: false }
    }

    /// Reads available bytes. If the peer reset its side, the other side is reset too.
    fn fill(&mut self) -> Result<(), EarlyEnd> {
        let mut buffer = [0; 16 << 10];
        while self.wants_input() {
            match self.source.read(&mut buffer) {
                Ok(0) => self.source_ended = true,
                Ok(_) if self.state == FlowState::Discarding => {}
                Ok(count) => self.arrived.extend(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Err(EarlyEnd::Cut),
            }
        }
        Ok(())
    }

    /// Writes as many released bytes as the receiver accepts.
    fn flush(&mut self, mut receiver: &TcpStream) -> Result<(), EarlyEnd> {
        while !self.leaving.is_empty() && self.state == FlowState::Flowing {
            match receiver.write(&self.leaving) {
                Ok(count) => drop(self.leaving.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(EarlyEnd::Cut),
            }
        }
        Ok(())
    }

    fn release(&mut self, count: usize) {
        self.leaving.extend(self.arrived.drain(..count));
    }

    fn delay(&mut self, time: Duration) {
        self.held_until = (!time.is_zero()).then(|| Instant::now() + time);
    }

    fn can_forward(&mut self) -> bool {
        self.held_until = self.held_until.filter(|until| *until > Instant::now());
        self.state == FlowState::Flowing && self.leaving.is_empty() && self.held_until.is_none()
    }

    fn wants_input(&self) -> bool {
        !self.source_ended && self.state != FlowState::Stopped && self.arrived.len() < READ_AHEAD
    }

    fn is_over(&self) -> bool {
        self.source_ended && self.state == FlowState::Discarding
    }
}
