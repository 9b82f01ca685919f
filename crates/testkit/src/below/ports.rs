//! Ports that go wrong before a byte is exchanged (H02), and names and addresses that cannot be served at all (H01,
//! H41).
//!
//! A fault of the resolver cannot be served on loopback without owning the resolver, so here are only the names for
//! which every resolver has the same answer. Where `localhost` is `::1` as well, a URL with that name already shows what
//! a client does about a family that leads nowhere, because every server here listens on `127.0.0.1` alone.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with};

use super::Times;
use super::endpoint::Endpoint;
use super::http1;

/// A name that never resolves (RFC 6761, 6.4), for H01.
pub const NO_SUCH_NAME: &str = "no-such-server.invalid";

/// URLs that name no reachable address, for H41: a zone that is no interface, a zone on an address that has none, and
/// a path to a socket where a host belongs.
pub const UNREACHABLE_URLS: [&str; 3] =
    ["http://[fe80::1%25no-such-zone]:1/mcp", "http://[::1%251]:1/mcp", "http+unix://%2Fno%2Fsuch.sock/mcp"];

/// A port on which every connection is refused.
///
/// It is bound and does not listen, so that nobody else can get it meanwhile.
pub struct Refused {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl Refused {
    pub fn bind() -> io::Result<Refused> {
        let (socket, address) = bound()?;
        Ok(Refused { address, _socket: socket })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A port that listens with a backlog already full: the system drops what asks to connect, as a firewall would.
pub struct FullBacklog {
    address: SocketAddr,
    _sockets: Vec<OwnedFd>,
}

impl FullBacklog {
    pub fn bind() -> io::Result<FullBacklog> {
        let (listener, address) = bound()?;
        listen(&listener, 0)?;
        let mut sockets = vec![listener];
        // Linux keeps one more than the backlog asked for, and a few whose handshake is not complete.
        for _ in 0..8 {
            sockets.push(knock(address)?);
        }
        Ok(FullBacklog { address, _sockets: sockets })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Accepts and resets at once; once `times` are used up, a healthy server.
pub fn reset_after_accept(times: Times) -> io::Result<Endpoint> {
    Endpoint::start(move |guest| if times.covers(guest.number()) { guest.reset() } else { http1::attend(guest) })
}

/// Accepts, reads nothing and says nothing; once `times` are used up, a healthy server.
pub fn black_hole(times: Times) -> io::Result<Endpoint> {
    Endpoint::start(move |guest| if times.covers(guest.number()) { guest.stand_still() } else { http1::attend(guest) })
}

/// A healthy server over plain HTTP.
pub fn healthy() -> io::Result<Endpoint> {
    Endpoint::start(http1::attend)
}

fn bound() -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = tcp(SocketFlags::CLOEXEC)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let address = SocketAddr::try_from(getsockname(&socket)?)?;
    Ok((socket, address))
}

/// Begins to connect and does not wait for the outcome.
fn knock(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = tcp(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

fn tcp(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?)
}
