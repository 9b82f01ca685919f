//! The byte-level fault proxy: a port in front of a server, and a [`Script`] of faults.
//!
//! It is independent of HTTP and TLS and works for any protocol over TCP.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};

use super::endpoint::{AcceptedConnection, Endpoint};
use super::relay::{FaultRelay, ForwardedBytes, InjectedFaults};
use super::script::{ByteFault, Direction, FaultScript};

/// Connect timeout to the server. Loopback connects at once; a full backlog never accepts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Listens on `127.0.0.1`, forwards to one address, and injects the faults of its script.
///
/// If the server is unreachable, the client's connection is reset. Dropping the proxy closes every connection and
/// joins every thread.
pub struct FaultProxy {
    endpoint: Endpoint,
    shared: Arc<ProxyShared>,
}

/// Traffic of a [`FaultProxy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyTraffic {
    pub connections: u64,
    /// Forwarded bytes, without bytes injected by the proxy.
    pub to_server: u64,
    pub to_client: u64,
}

struct ProxyShared {
    script: Mutex<FaultScript>,
    passed: ForwardedBytes,
    lines: Mutex<Vec<ConnectionHandle>>,
}

/// A handle to the thread of one connection.
struct ConnectionHandle {
    connection: u64,
    bell: OwnedFd,
    faults: Sender<(Direction, ByteFault)>,
}

impl FaultProxy {
    pub fn start(server: SocketAddr, script: impl Into<FaultScript>) -> io::Result<FaultProxy> {
        let script = Mutex::new(script.into());
        let shared = Arc::new(ProxyShared { script, passed: ForwardedBytes::default(), lines: Mutex::default() });
        let ours = Arc::clone(&shared);
        let endpoint = Endpoint::start(move |guest| {
            ours.relay(guest, server).ok();
        })?;
        Ok(FaultProxy { endpoint, shared })
    }

    pub fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }

    pub fn traffic(&self) -> ProxyTraffic {
        let passed = &self.shared.passed;
        ProxyTraffic {
            connections: self.endpoint.connections(),
            to_server: passed.to_server.load(Ordering::SeqCst),
            to_client: passed.to_client.load(Ordering::SeqCst),
        }
    }

    /// Replaces the script for new connections.
    pub fn set_script(&self, script: impl Into<FaultScript>) {
        *lock_ignoring_poison(&self.shared.script) = script.into();
    }

    /// Injects a fault into every open connection that has carried a byte, independent of its script. Returns before
    /// the fault occurs.
    pub fn inject(&self, direction: Direction, fault: &ByteFault) {
        for line in lock_ignoring_poison(&self.shared.lines).iter() {
            if line.faults.send((direction, fault.clone())).is_ok() {
                rustix::io::write(&line.bell, &[1]).ok();
            }
        }
    }
}

impl ProxyShared {
    fn relay(&self, guest: AcceptedConnection, server: SocketAddr) -> io::Result<()> {
        let number = guest.number();
        let Ok(behind) = TcpStream::connect_timeout(&server, CONNECT_TIMEOUT) else {
            guest.reset();
            return Ok(());
        };
        let (client, ending) = guest.into_parts();
        let script = lock_ignoring_poison(&self.script).clone();
        let relay = FaultRelay::new([client, behind], script.lanes(number), &self.passed, &ending)?;
        relay.with_injected_faults(self.register(number)?).run();
        lock_ignoring_poison(&self.lines).retain(|line| line.connection != number);
        Ok(())
    }

    fn register(&self, connection: u64) -> io::Result<InjectedFaults> {
        let (bell, ringer) = pipe_with(PipeFlags::CLOEXEC)?;
        let (sender, faults) = channel();
        lock_ignoring_poison(&self.lines).push(ConnectionHandle { connection, bell: ringer, faults: sender });
        Ok(InjectedFaults { bell, faults })
    }
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
