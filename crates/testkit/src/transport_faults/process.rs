//! One server in a separate process: `faultd below CASE`.
//!
//! It prints `listening 127.0.0.1:PORT`, serves until its stdin closes, and then prints a summary.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::cases::{self, LowLevelFault, ProxyTarget};
use super::script::{ByteFault, ConnectionFilter, Direction, FaultPosition, FaultRule, FaultScript};
use super::{
    ConnectProxy, Endpoint, FaultCount, FaultProxy, FullBacklog, Refused, TestCa, black_hole, reset_after_accept,
    serve_heads, serve_http2, serve_plain, serve_tls,
};

const USAGE: &str = "usage: faultd below CASE [--times N] [--ca FILE] [--client FILE] [--to ADDRESS]
       [--authorization VALUE] [--rule 'connection 2 to-client after 100 cut']...
--times applies the fault to the first N connections only. --ca and --client are output files: the CA to trust, and
a client certificate with its key. --to is the target of a proxy. A rule is [connection N] to-server|to-client
opening|before N|after N, then cut | close | half-close | black-hole | delay MS | trickle BYTES MS | garbage TEXT.";

/// Serves the case named by the arguments, and returns the exit code.
pub fn run(arguments: &[String]) -> i32 {
    match serve(arguments) {
        Ok(()) => 0,
        Err(problem) => {
            eprintln!("faultd below: {problem}\n{USAGE}");
            2
        }
    }
}

fn serve(arguments: &[String]) -> Result<(), String> {
    let options = LowLevelOptions::parse(arguments)?;
    let running = options.start().map_err(|error| error.to_string())?;
    println!("listening {}", running.address());
    io::stdout().flush().ok();
    io::copy(&mut io::stdin().lock(), &mut io::sink()).ok();
    println!("{}", running.summary());
    Ok(())
}

struct LowLevelOptions {
    kind: LowLevelFault,
    times: FaultCount,
    ca: Option<PathBuf>,
    client: Option<PathBuf>,
    to: SocketAddr,
    authorization: String,
    script: FaultScript,
}

impl LowLevelOptions {
    fn parse(arguments: &[String]) -> Result<LowLevelOptions, String> {
        let (name, flags) = arguments.split_first().ok_or("no case given")?;
        let case = cases::find(name).ok_or_else(|| format!("unknown case {name}"))?;
        let mut options = LowLevelOptions {
            kind: case.kind,
            times: FaultCount::Always,
            ca: None,
            client: None,
            to: (Ipv4Addr::LOCALHOST, 1).into(),
            authorization: String::new(),
            script: FaultScript::default(),
        };
        for pair in flags.chunks(2) {
            let [flag, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
            options.set(flag, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        match flag {
            "--times" => self.times = FaultCount::First(parse_value(value)?),
            "--ca" => self.ca = Some(value.into()),
            "--client" => self.client = Some(value.into()),
            "--to" => self.to = parse_value(value)?,
            "--authorization" => value.clone_into(&mut self.authorization),
            "--rule" => self.script.rules.push(value.parse()?),
            _ => return Err(format!("unknown option {flag}")),
        }
        Ok(())
    }

    fn start(self) -> io::Result<RunningServer> {
        let times = self.times;
        Ok(match self.kind {
            LowLevelFault::Plain => RunningServer::Endpoint(serve_plain()?),
            LowLevelFault::Refused => RunningServer::Refused(Refused::bind()?),
            LowLevelFault::FullBacklog => RunningServer::FullBacklog(FullBacklog::bind()?),
            LowLevelFault::Reset => RunningServer::Endpoint(reset_after_accept(times)?),
            LowLevelFault::BlackHole => RunningServer::Endpoint(black_hole(times)?),
            LowLevelFault::Tls(fault) => RunningServer::Endpoint(serve_tls(&self.authority()?, fault, times)?),
            LowLevelFault::Head(fault) => RunningServer::Endpoint(serve_heads(fault, times)?),
            LowLevelFault::Http2(fault) => RunningServer::Endpoint(serve_http2(&self.authority()?, fault, times)?),
            LowLevelFault::Connect(manner) => {
                let target = ProxyTarget { server: self.to, authorization: self.authorization };
                RunningServer::Connect(ConnectProxy::start(manner(target))?)
            }
            LowLevelFault::FaultProxy => RunningServer::FaultProxy(FaultProxy::start(self.to, self.script)?),
        })
    }

    /// Creates an authority for this run, and writes it to the configured files.
    fn authority(&self) -> io::Result<TestCa> {
        let authority = TestCa::new();
        if let Some(path) = &self.ca {
            std::fs::write(path, authority.pem())?;
        }
        if let Some(path) = &self.client {
            std::fs::write(path, authority.client("Test Client").pem())?;
        }
        Ok(authority)
    }
}

enum RunningServer {
    Endpoint(Endpoint),
    Refused(Refused),
    FullBacklog(FullBacklog),
    Connect(ConnectProxy),
    FaultProxy(FaultProxy),
}

impl RunningServer {
    fn address(&self) -> SocketAddr {
        match self {
            RunningServer::Endpoint(endpoint) => endpoint.address(),
            RunningServer::Refused(port) => port.address(),
            RunningServer::FullBacklog(port) => port.address(),
            RunningServer::Connect(proxy) => proxy.address(),
            RunningServer::FaultProxy(proxy) => proxy.address(),
        }
    }

    /// Returns a one-line summary of the traffic.
    fn summary(&self) -> String {
        match self {
            RunningServer::Endpoint(endpoint) => {
                format!("connections {} requests {}", endpoint.connections(), endpoint.requests())
            }
            RunningServer::Connect(proxy) => format!("asked {}", proxy.requests().len()),
            RunningServer::FaultProxy(proxy) => {
                let traffic = proxy.traffic();
                let (to_server, to_client) = (traffic.to_server, traffic.to_client);
                format!("connections {} to-server {to_server} to-client {to_client}", traffic.connections)
            }
            RunningServer::Refused(_) | RunningServer::FullBacklog(_) => "nothing".to_owned(),
        }
    }
}

impl FromStr for FaultRule {
    type Err = String;

    fn from_str(text: &str) -> Result<FaultRule, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (which, words) = match words.as_slice() {
            ["connection", count, rest @ ..] => (ConnectionFilter::Only(parse_value(count)?), rest),
            rest => (ConnectionFilter::Every, rest),
        };
        let (direction, words) = match words {
            ["to-server", rest @ ..] => (Direction::ToServer, rest),
            ["to-client", rest @ ..] => (Direction::ToClient, rest),
            _ => return Err(format!("missing direction in rule: {text}")),
        };
        let (moment, words) = match words {
            ["opening", rest @ ..] => (FaultPosition::Opening, rest),
            ["before", count, rest @ ..] => (FaultPosition::Before(parse_value(count)?), rest),
            ["after", count, rest @ ..] => (FaultPosition::After(parse_value(count)?), rest),
            _ => return Err(format!("missing position in rule: {text}")),
        };
        Ok(FaultRule { which, direction, moment, fault: parse_fault(words)? })
    }
}

fn parse_fault(words: &[&str]) -> Result<ByteFault, String> {
    Ok(match words {
        ["cut"] => ByteFault::Cut,
        ["close"] => ByteFault::Close,
        ["half-close"] => ByteFault::HalfClose,
        ["black-hole"] => ByteFault::BlackHole,
        ["delay", time] => ByteFault::Delay(milliseconds(time)?),
        ["trickle", bytes, time] => ByteFault::Trickle { bytes: parse_value(bytes)?, every: milliseconds(time)? },
        ["garbage", text @ ..] => ByteFault::Garbage(text.join(" ").into_bytes()),
        _ => return Err(format!("unknown fault {}", words.join(" "))),
    })
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    parse_value(text).map(Duration::from_millis)
}

fn parse_value<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("invalid value: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_written() {
        let check = |text: &str, rule: FaultRule| assert_eq!(text.parse(), Ok(rule), "{text}");
        check(
            "to-client after 100 cut",
            FaultRule::new(Direction::ToClient, FaultPosition::After(100), ByteFault::Cut),
        );
        let slow = ByteFault::Trickle { bytes: 3, every: Duration::from_millis(20) };
        check(
            "connection 2 to-server opening trickle 3 20",
            FaultRule::new(Direction::ToServer, FaultPosition::Opening, slow)
                .for_connections(ConnectionFilter::Only(2)),
        );
        check(
            "to-client before 0 garbage a b",
            FaultRule::new(Direction::ToClient, FaultPosition::Before(0), ByteFault::Garbage(b"a b".to_vec())),
        );
        for wrong in
            ["", "to-nobody opening cut", "to-client after x cut", "to-client after 1", "to-client after 1 sulk"]
        {
            assert!(wrong.parse::<FaultRule>().is_err(), "{wrong:?}");
        }
    }
}
