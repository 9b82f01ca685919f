//! Protocol between host and guard over their socket pair.
//!
//! The host sends one start request, with the server's three streams attached to its first byte, and then single-byte
//! orders. The guard sends reports of five bytes. Both ends are the same build of the same program, so there is no
//! version.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use super::ProcessExit;

/// Sends SIGTERM to the server's group.
pub(super) const TERMINATE: u8 = b'T';
/// Kills all processes at once with SIGKILL.
pub(super) const KILL: u8 = b'K';

/// Maximum bytes of a start request. The kernel's own limit for arguments and environment is lower.
const MAX_START_REQUEST_BYTES: usize = 16 << 20;

/// A request to start a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRequest {
    /// Program to execute.
    pub program: OsString,
    /// Arguments, without the program.
    pub args: Vec<OsString>,
    /// The complete environment.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory.
    pub cwd: OsString,
    /// Time between SIGTERM and SIGKILL once the host is gone.
    pub grace: Duration,
    /// Value unique to this server, set in its environment as `WHARF_SERVER`.
    pub mark: String,
}

impl StartRequest {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let grace = u32::try_from(self.grace.as_millis()).unwrap_or(u32::MAX);
        body.extend_from_slice(&grace.to_le_bytes());
        put_bytes(&mut body, self.cwd.as_bytes());
        put_bytes(&mut body, self.mark.as_bytes());
        put_bytes(&mut body, self.program.as_bytes());
        put_count(&mut body, self.args.len());
        for argument in &self.args {
            put_bytes(&mut body, argument.as_bytes());
        }
        put_count(&mut body, self.env.len());
        for (name, value) in &self.env {
            put_bytes(&mut body, name.as_bytes());
            put_bytes(&mut body, value.as_bytes());
        }
        let mut letter = Vec::with_capacity(body.len() + 4);
        put_count(&mut letter, body.len());
        letter.extend_from_slice(&body);
        letter
    }

    /// Reads the request that follows a four-byte length.
    pub(super) fn read(length: [u8; 4], mut from: impl Read) -> io::Result<Self> {
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_START_REQUEST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        Self::decode(&body).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn decode(mut body: &[u8]) -> Option<Self> {
        let from = &mut body;
        let grace = Duration::from_millis(take_count(from)? as u64);
        let cwd = take_bytes(from)?;
        let mark = take_bytes(from)?.into_string().ok()?;
        let program = take_bytes(from)?;
        let count = take_count(from)?;
        let args = (0..count).map(|_| take_bytes(from)).collect::<Option<_>>()?;
        let count = take_count(from)?;
        let env = (0..count).map(|_| Some((take_bytes(from)?, take_bytes(from)?))).collect::<Option<_>>()?;
        Some(Self { program, args, env, cwd, grace, mark })
    }
}

fn put_count(body: &mut Vec<u8>, count: usize) {
    body.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_bytes(body: &mut Vec<u8>, bytes: &[u8]) {
    put_count(body, bytes.len());
    body.extend_from_slice(bytes);
}

fn take_count(from: &mut &[u8]) -> Option<usize> {
    let (count, rest) = from.split_first_chunk::<4>()?;
    *from = rest;
    Some(u32::from_le_bytes(*count) as usize)
}

fn take_bytes(from: &mut &[u8]) -> Option<OsString> {
    let length = take_count(from)?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(OsString::from_vec(bytes.to_vec()))
}

/// A report from the guard to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardReport {
    /// The server runs under this process id.
    Started(i32),
    /// The server failed to start; the error number.
    Failed(i32),
    /// The server ended.
    Ended(ProcessExit),
}

/// Bytes of a report.
pub(super) const REPORT_BYTES: usize = 5;

impl GuardReport {
    pub(super) fn encode(self) -> [u8; REPORT_BYTES] {
        let (tag, value) = match self {
            Self::Started(pid) => (b'S', pid),
            Self::Failed(errno) => (b'F', errno),
            Self::Ended(ProcessExit::Code(code)) => (b'C', code),
            Self::Ended(ProcessExit::Signal(signal)) => (b'G', signal),
            Self::Ended(ProcessExit::Unknown) => (b'U', 0),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(super) fn decode([tag, value @ ..]: [u8; REPORT_BYTES]) -> Option<Self> {
        let value = i32::from_le_bytes(value);
        Some(match tag {
            b'S' => Self::Started(value),
            b'F' => Self::Failed(value),
            b'C' => Self::Ended(ProcessExit::Code(value)),
            b'G' => Self::Ended(ProcessExit::Signal(value)),
            b'U' => Self::Ended(ProcessExit::Unknown),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_requests_and_reports_round_trip() {
        let errand = StartRequest {
            program: "/bin/x".into(),
            args: vec!["a b".into(), "".into(), OsString::from_vec(vec![0xff])],
            env: vec![("K".into(), "v=w".into())],
            cwd: "/tmp".into(),
            grace: Duration::from_millis(500),
            mark: "m".into(),
        };
        let letter = errand.encode();
        let (length, body) = letter.split_first_chunk::<4>().unwrap();
        assert_eq!(StartRequest::read(*length, body).unwrap(), errand);
        for cut in 0..body.len() {
            assert!(StartRequest::decode(&body[..cut]).is_none());
        }
        for report in [
            GuardReport::Started(7),
            GuardReport::Failed(2),
            GuardReport::Ended(ProcessExit::Code(-1)),
            GuardReport::Ended(ProcessExit::Signal(9)),
        ] {
            assert_eq!(GuardReport::decode(report.encode()), Some(report));
        }
    }
}
