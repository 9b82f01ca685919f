//! What goes wrong below HTTP: ports, bytes, TLS, HTTP/2 frames and proxies.
//!
//! Every piece is a value that runs on threads of this process and ends when it is dropped. [`run`] puts one of them
//! into a process of its own: `faultd below H30-settings-flood --ca ca.pem`. There is no runtime and no HTTP library
//! here; whatever is said is written byte by byte, so that a library's good manners cannot get in the way.

mod cases;
mod certificates;
mod connect;
mod endpoint;
mod frames;
mod http1;
mod http2;
mod ports;
mod process;
mod proxy;
mod relay;
mod reply;
mod script;
mod tls;

pub use cases::{CASES, Case};
pub use certificates::{Identity, TestCa};
pub use connect::{Asked, ConnectProxy, Manner};
pub use endpoint::{Endpoint, Guest};
pub use http1::{HeadFault, serve as serve_heads};
pub use http2::{Http2Fault, serve as serve_http2};
pub use ports::{
    FullBacklog, NO_SUCH_NAME, Refused, UNREACHABLE_URLS, black_hole, healthy as serve_plain, reset_after_accept,
};
pub use process::run;
pub use proxy::{FaultProxy, Traffic};
pub use script::{Direction, Fault, Moment, Rule, Script, Which};
pub use tls::{TlsFault, serve as serve_tls};

/// On how many connections a fault is committed before the server is healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    Always,
    First(u64),
}

impl Times {
    /// Whether the fault is for this connection; the first is 1.
    fn covers(self, connection: u64) -> bool {
        match self {
            Times::Always => true,
            Times::First(count) => connection <= count,
        }
    }
}
