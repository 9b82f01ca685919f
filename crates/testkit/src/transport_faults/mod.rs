//! Faults below HTTP: ports, bytes, TLS, HTTP/2 frames and proxies.
//!
//! Every server is a value that runs on threads of this process and stops when dropped. It uses neither a runtime nor an
//! HTTP library; all output is written byte by byte, so that no library corrects it.

mod certificates;
mod connect;
mod endpoint;
mod frames;
mod http1;
mod http2;
mod ports;
mod proxy;
mod relay;
mod reply;
mod script;
mod tls;

pub use certificates::{TestCa, TestIdentity};
pub use connect::{ConnectProxy, ProxyBehaviour, ProxyRequest};
pub use endpoint::{AcceptedConnection, Endpoint};
pub use http1::{HeadFault, Http1Request, read_request, serve as serve_heads};
pub use http2::{Http2Fault, serve as serve_http2};
pub use ports::{
    FullBacklog, NO_SUCH_NAME, Refused, UNREACHABLE_URLS, black_hole, healthy as serve_plain, reset_after_accept,
};
pub use proxy::{FaultProxy, ProxyTraffic};
pub use script::{ByteFault, ConnectionFilter, Direction, FaultPosition, FaultRule, FaultScript};
pub use tls::{TlsFault, serve as serve_tls};

/// Number of connections on which a fault occurs before the server is healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultCount {
    Always,
    First(u64),
}

impl FaultCount {
    /// Reports whether the fault applies to this connection; the first is 1.
    fn applies_to(self, connection: u64) -> bool {
        match self {
            FaultCount::Always => true,
            FaultCount::First(count) => connection <= count,
        }
    }
}
