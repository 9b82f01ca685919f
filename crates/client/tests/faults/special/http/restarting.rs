//! A server that is replaced by a new process at the same address.

use super::*;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use wharf_spec::HttpSpec;

const CALLS: usize = 24;

/// Only what is in flight is hit; while nobody is there calls fail at once and unsent, and afterwards everything works.
pub async fn restarted(cell: &Cell) -> Problems {
    let cell = with_fault(cell, "ok");
    let server = Fixture::start(&cell);
    let door = Door::open(None, address(&server.spec())).await;
    let place = door.address;
    let connection = match connect_http(&at(&server.spec(), place), cell.options()).await {
        Ok(connection) => connection,
        Err(error) => return vec![explain(&error)],
    };
    let mut problems = Vec::new();
    works(&mut problems, &connection).await;
    let calls: Vec<_> = (0..CALLS).map(|_| slow(&connection)).collect();
    written(&cell, "call slow", CALLS).await;
    door.close().await;
    drop(server);
    for call in calls {
        let outcome = call.await.unwrap();
        demand(&mut problems, call_word(&outcome) == "unknown", || format!("in flight: {}", call_word(&outcome)));
    }
    let unsent = note(&connection, "unsent").await;
    demand(&mut problems, call_word(&unsent) == "gone", || format!("nobody there: {}", call_word(&unsent)));
    let server = Fixture::start(&cell);
    let door = Door::open(Some(place), address(&server.spec())).await;
    // Where there was a session, reading finds out that it is forgotten: a call could not be made again.
    let read = connection.read_resource("fault://greeting", RequestOptions::default()).await;
    demand(&mut problems, read.is_ok(), || format!("the first reading: {read:?}"));
    for number in 0..CALLS {
        let outcome = note(&connection, &format!("r-{number}")).await;
        demand(&mut problems, outcome.is_ok(), || format!("afterwards: {}", call_word(&outcome)));
    }
    connection.close().await;
    door.close().await;
    demand(&mut problems, cell.ledger().call_count("unsent") == 0, || "what was not sent has arrived".to_owned());
    demand(&mut problems, begun(&cell, "slow").len() == CALLS, || "I2: a call was made again".to_owned());
    problems
}

async fn note(connection: &Connection, nonce: &str) -> Result<wharf_wire::ToolResult, CallError> {
    connection.call_tool("note", &json(format!(r#"{{"nonce":"{nonce}"}}"#)), RequestOptions::default()).await
}

fn slow(connection: &Connection) -> tokio::task::JoinHandle<Result<wharf_wire::ToolResult, CallError>> {
    let connection = connection.clone();
    let options = RequestOptions::default().timeout(Duration::from_secs(60));
    tokio::spawn(async move { connection.call_tool("slow", &json(r#"{"ms":600000}"#), options).await })
}

fn address(spec: &HttpSpec) -> SocketAddr {
    spec.url.socket_addrs(|| None).unwrap()[0]
}

fn at(spec: &HttpSpec, place: SocketAddr) -> HttpSpec {
    let mut spec = spec.clone();
    spec.url.set_port(Some(place.port())).unwrap();
    spec
}

/// An address that stays the same while the server behind it does not.
struct Door {
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Door {
    async fn open(at: Option<SocketAddr>, server: SocketAddr) -> Self {
        let listener = TcpListener::bind(at.unwrap_or_else(|| "127.0.0.1:0".parse().unwrap())).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            // Dropped with the task, and everything in it.
            let mut visitors = JoinSet::new();
            while let Ok((visitor, _)) = listener.accept().await {
                visitors.spawn(usher(visitor, server));
            }
        });
        Self { address, task }
    }

    /// Nobody listens there any more when this is over.
    async fn close(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

async fn usher(mut visitor: TcpStream, server: SocketAddr) {
    if let Ok(mut inside) = TcpStream::connect(server).await {
        let _ = tokio::io::copy_bidirectional(&mut visitor, &mut inside).await;
    }
}
