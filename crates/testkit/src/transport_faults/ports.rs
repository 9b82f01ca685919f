//! Ports that fail before any byte is exchanged (H02), and names and addresses that cannot be served (H01, H41).
//!
//! A resolver fault cannot be served on loopback without owning the resolver, so this module only has names with the
//! same result on every resolver. On systems with `localhost` at `::1` too, a URL with that name exercises the client's
//! address fallback, because every server here listens on `127.0.0.1` only.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with};

use super::FaultCount;
use super::endpoint::Endpoint;
use super::http1;

/// A name that never resolves (RFC 6761, 6.4), for H01.
pub const NO_SUCH_NAME: &str = "no-such-server.invalid";

/// URLs without a reachable address, for H41: an unknown zone, a zone on an address without scope, and a socket path in
/// place of a host.
pub const UNREACHABLE_URLS: [&str; 3] =
    ["http://[fe80::1%25no-such-zone]:1/mcp", "http://[::1%251]:1/mcp", "http+unix://%2Fno%2Fsuch.sock/mcp"];

/// A port that refuses every connection.
///
/// It is bound but not listening, so that no other process can take it.
pub struct Refused {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl Refused {
    pub fn bind() -> io::Result<Refused> {
        let (socket, address) = bind_loopback()?;
        Ok(Refused { address, _socket: socket })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A listening port with a full backlog: the kernel drops connection attempts, like a firewall.
pub struct FullBacklog {
    address: SocketAddr,
    _sockets: Vec<OwnedFd>,
}

impl FullBacklog {
    pub fn bind() -> io::Result<FullBacklog> {
        let (listener, address) = bind_loopback()?;
        listen(&listener, 0)?;
        let mut sockets = vec![listener];
        // Linux accepts one more than the requested backlog, and a few incomplete handshakes.
        for _ in 0..8 {
            sockets.push(start_connecting(address)?);
        }
        Ok(FullBacklog { address, _sockets: sockets })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Accepts and resets immediately; healthy after `times` connections.
pub fn reset_after_accept(times: FaultCount) -> io::Result<Endpoint> {
    Endpoint::start(
        move |guest| if times.applies_to(guest.number()) { guest.reset() } else { http1::serve_healthy(guest) },
    )
}

/// Accepts, but neither reads nor writes; healthy after `times` connections.
pub fn black_hole(times: FaultCount) -> io::Result<Endpoint> {
    Endpoint::start(move |guest| {
        if times.applies_to(guest.number()) { guest.wait_for_disconnect() } else { http1::serve_healthy(guest) }
    })
}

/// Serves plain HTTP without faults.
pub fn healthy() -> io::Result<Endpoint> {
    Endpoint::start(http1::serve_healthy)
}

fn bind_loopback() -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = tcp_socket(SocketFlags::CLOEXEC)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let address = SocketAddr::try_from(getsockname(&socket)?)?;
    Ok((socket, address))
}

/// Starts to connect without waiting for the outcome.
fn start_connecting(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = tcp_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

fn tcp_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?)
}
