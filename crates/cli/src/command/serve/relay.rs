//! Relays the messages of a client on stdin and stdout to its gateway. When another gateway replaces it, the relay waits
//! for the responses to the client's requests and goes on there. The client notices nothing.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use wharf_serve::{ClientMessage, LEAVE_LINE, MessageKind};
use wharf_terminal::failure::{Failure, FailureKind};
use wharf_terminal::gateway_socket::{AttachRequest, read_first_line};
use wharf_terminal::protocol_pipes::{self, InputPipe};
use wharf_terminal::session::CommandSession;

use super::attach::{AttachedClient, attach};
use super::relay_lines::{InputLines, InputPiece, OutputFilter};
use super::transcript::{ClientTranscript, ReplayedMessage};

/// Maximum time for the last messages of a gateway after the client has ended its input.
const LAST_MESSAGES_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for opening the session again at the next gateway.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of gateways that are replaced while a client moves to them.
const MAX_MOVES: usize = 10;
/// Maximum bytes that wait for the next gateway. The client's input is not read beyond it.
const MAX_HELD_BYTES: usize = 16 * 1024 * 1024;
/// Size of a read.
const CHUNK_BYTES: usize = 64 * 1024;

/// A client, and what the next gateway has to know about it.
struct Relay<'a> {
    session: &'a CommandSession,
    request: AttachRequest,
    input: ClientInput<InputPipe>,
    output: DuplexStream,
    transcript: Mutex<ClientTranscript>,
}

/// The client's input.
struct ClientInput<R> {
    lines: InputLines<R>,
    /// Requests that wait for the next gateway.
    held: VecDeque<InputPiece>,
    held_bytes: usize,
}

/// The side that ended a relay.
enum RelayEnd {
    Client,
    /// The gateway closed the connection.
    Gateway,
    /// Another gateway has replaced this one, which has answered everything.
    Left,
}

/// Relays messages in both directions until the client ends its input.
///
/// # Errors
///
/// Fails if the gateway ends before the client, or a pipe fails.
pub async fn relay(session: &CommandSession, request: AttachRequest, attached: AttachedClient) -> Result<(), Failure> {
    let lines = InputLines::new(protocol_pipes::input().map_err(Failure::other)?);
    let (output, written) = protocol_pipes::output().map_err(Failure::other)?;
    let input = ClientInput { lines, held: VecDeque::new(), held_bytes: 0 };
    let request = AttachRequest { is_moving: true, ..request };
    let relay = Relay { session, request, input, output, transcript: Mutex::default() };
    let mut written = pin!(written);
    let ended = tokio::select! {
        ended = relay.run(attached) => ended,
        // The client no longer reads.
        _ = &mut written => return Ok(()),
    };
    let _ = timeout(LAST_MESSAGES_TIMEOUT, written).await;
    ended
}

impl Relay<'_> {
    async fn run(mut self, mut attached: AttachedClient) -> Result<(), Failure> {
        loop {
            let pid = attached.pid;
            match self.relay(attached).await {
                RelayEnd::Client => return Ok(()),
                RelayEnd::Gateway => return Err(ended_failure(pid)),
                RelayEnd::Left => attached = self.move_on().await?,
            }
        }
    }

    /// Relays messages until either side ends.
    async fn relay(&mut self, attached: AttachedClient) -> RelayEnd {
        let early = io::Cursor::new(attached.stream.buffer().to_vec());
        let (read, write) = attached.stream.into_inner().into_split();
        let leaving = Notify::new();
        let sending = self.input.send(write, &self.transcript, &leaving);
        let receiving = receive(early.chain(read), &mut self.output, &self.transcript, &leaving);
        let mut receiving = pin!(receiving);
        tokio::select! {
            biased;
            () = sending => {
                let _ = timeout(LAST_MESSAGES_TIMEOUT, receiving).await;
                RelayEnd::Client
            }
            end = &mut receiving => end,
        }
    }

    /// Attaches to the gateway that has replaced the last one.
    async fn move_on(&mut self) -> Result<AttachedClient, Failure> {
        let failed = |reason: String| {
            let message = format!("the gateway was replaced, and the new one cannot go on: {reason}");
            Failure::new(FailureKind::Unreachable, message).with_hint("connect again")
        };
        for _ in 0..MAX_MOVES {
            let mut attached = attach(self.session, self.request.clone()).await.map_err(failed)?;
            let replayed = timeout(REPLAY_TIMEOUT, self.replay(&mut attached.stream)).await;
            match replayed.unwrap_or_else(|_| Err(ReplayError::Refused("it does not reply".to_owned()))) {
                Ok(()) => return Ok(attached),
                // Replaced as well, before it had a request of the client.
                Err(ReplayError::Ended) => {}
                Err(ReplayError::Refused(reason)) => return Err(failed(reason)),
            }
        }
        Err(failed("it ended at once".to_owned()))
    }

    /// Gives a gateway the state of the client's session.
    async fn replay(&mut self, stream: &mut BufReader<UnixStream>) -> Result<(), ReplayError> {
        let (messages, list_changes) = {
            let transcript = lock(&self.transcript);
            (transcript.messages(), transcript.list_changes())
        };
        for message in messages {
            match message {
                ReplayedMessage::Other(text) => send_line(stream, &text).await?,
                ReplayedMessage::Request { id, text } => {
                    send_line(stream, &text).await?;
                    let response = read_response(stream, &id, &mut self.output).await?;
                    if text_method(&text) == "initialize" {
                        let checked = lock(&self.transcript).check_result(&response["result"]);
                        checked.map_err(ReplayError::Refused)?;
                    }
                }
            }
        }
        for notification in list_changes {
            send_line(&mut self.output, &notification).await?;
        }
        Ok(())
    }
}

/// The reason that a session is not at the next gateway.
enum ReplayError {
    /// The gateway has ended.
    Ended,
    Refused(String),
}

impl From<io::Error> for ReplayError {
    fn from(_: io::Error) -> Self {
        Self::Ended
    }
}

fn ended_failure(pid: u32) -> Failure {
    let message = format!("the gateway (process {pid}) has ended; calls in progress may have executed");
    Failure::new(FailureKind::Unreachable, message)
        .with_hint("connect again: the next `wharf serve` starts a new gateway")
}

fn lock(transcript: &Mutex<ClientTranscript>) -> MutexGuard<'_, ClientTranscript> {
    transcript.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text_method(text: &[u8]) -> String {
    let message: Value = serde_json::from_slice(text).unwrap_or_default();
    message["method"].as_str().unwrap_or_default().to_owned()
}

async fn send_line(output: &mut (impl AsyncWrite + Unpin), text: &[u8]) -> io::Result<()> {
    output.write_all(&[text, b"\n"].concat()).await?;
    output.flush().await
}

/// Reads the response to a request. Other messages are the client's.
async fn read_response(
    stream: &mut BufReader<UnixStream>,
    id: &Value,
    output: &mut DuplexStream,
) -> Result<Value, ReplayError> {
    loop {
        let line = read_first_line(stream).await?;
        if line == LEAVE_LINE {
            return Err(ReplayError::Ended);
        }
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        if message.get("method").is_none() && message["id"] == *id {
            return Ok(message);
        }
        send_line(output, &line).await?;
    }
}

impl<R: AsyncBufRead + Unpin> ClientInput<R> {
    /// Sends the client's messages to a gateway, until the input ends. Once the gateway leaves, requests are held. May be
    /// dropped when the gateway has left: no message is lost then.
    async fn send(
        &mut self,
        mut gateway: impl AsyncWrite + Unpin,
        transcript: &Mutex<ClientTranscript>,
        leaving: &Notify,
    ) {
        let ended = async {
            loop {
                if self.send_until_leaving(&mut gateway, transcript, leaving).await? {
                    // The gateway answers what it can still answer, and closes the connection.
                    return gateway.shutdown().await;
                }
                self.hold_requests(&mut gateway, transcript).await?;
            }
        };
        let ended: io::Result<()> = ended.await;
        if ended.is_err() {
            // The gateway reads no more. What it still writes tells the end.
            std::future::pending::<()>().await;
        }
    }

    /// Sends everything. Reports whether the input has ended, and not the gateway.
    async fn send_until_leaving(
        &mut self,
        gateway: &mut (impl AsyncWrite + Unpin),
        transcript: &Mutex<ClientTranscript>,
        leaving: &Notify,
    ) -> io::Result<bool> {
        let mut is_within_line = false;
        loop {
            let piece = match self.take_held() {
                Some(piece) => Some(piece),
                None => tokio::select! {
                    biased;
                    () = leaving.notified(), if !is_within_line => {
                        send_line(gateway, LEAVE_LINE).await?;
                        return Ok(false);
                    }
                    piece = self.lines.next() => piece?,
                },
            };
            let Some(piece) = piece else { return Ok(true) };
            is_within_line = matches!(piece, InputPiece::Part(_));
            if let Some(message) = parse(&piece) {
                lock(transcript).note_input(&message);
            }
            gateway.write_all(piece.bytes()).await?;
        }
    }

    fn take_held(&mut self) -> Option<InputPiece> {
        let piece = self.held.pop_front()?;
        self.held_bytes -= piece.bytes().len();
        Some(piece)
    }

    /// Holds requests, and sends what belongs to those in progress. Never returns unless the gateway fails.
    async fn hold_requests(
        &mut self,
        gateway: &mut (impl AsyncWrite + Unpin),
        transcript: &Mutex<ClientTranscript>,
    ) -> io::Result<()> {
        while self.held_bytes <= MAX_HELD_BYTES {
            let Some(piece) = self.lines.next().await? else { break };
            let message = parse(&piece);
            match &message {
                Some(message) if belongs_to_request(message) => {
                    lock(transcript).note_input(message);
                    gateway.write_all(piece.bytes()).await?;
                }
                _ => {
                    self.held_bytes += piece.bytes().len();
                    self.held.push_back(piece);
                }
            }
        }
        std::future::pending().await
    }
}

fn parse(piece: &InputPiece) -> Option<ClientMessage> {
    let InputPiece::Line(line) = piece else { return None };
    ClientMessage::parse(line.trim_ascii_end().to_vec().into()).ok()
}

/// Reports whether a message belongs to a request in progress, or answers one of the gateway.
fn belongs_to_request(message: &ClientMessage) -> bool {
    match message.kind() {
        MessageKind::Response => true,
        MessageKind::Notification => message.method() == "notifications/cancelled",
        MessageKind::Request | MessageKind::Batch => false,
    }
}

/// Passes the messages of a gateway on to the client, until the gateway ends or has left.
async fn receive(
    mut gateway: impl AsyncRead + Unpin,
    output: &mut DuplexStream,
    transcript: &Mutex<ClientTranscript>,
    leaving: &Notify,
) -> RelayEnd {
    let mut filter = OutputFilter::new();
    let (mut chunk, mut passed) = (vec![0; CHUNK_BYTES], Vec::new());
    loop {
        let count = match gateway.read(&mut chunk).await {
            Ok(0) | Err(_) => return RelayEnd::Gateway,
            Ok(count) => count,
        };
        filter.push(&chunk[..count], &mut lock(transcript), &mut passed);
        if output.write_all(&passed).await.is_err() {
            return RelayEnd::Client;
        }
        passed.clear();
        match filter.leave_lines {
            0 => {}
            1 => leaving.notify_one(),
            _ => return RelayEnd::Left,
        }
    }
}
