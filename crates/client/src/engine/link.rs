//! The interface between the engine and the link that carries its messages.

/// A link to a server. Not a pair of streams: over HTTP each request has its own stream.
pub(crate) trait Link: Send + Sync {
    /// Accepts one message without waiting, and returns its ticket.
    fn submit(&self, message: OutgoingMessage<'_>) -> Result<Ticket, SubmitError>;

    /// Abandons a call. Returns true if the server needs no further cancellation message.
    fn abandon(&self, id: u64) -> bool {
        let _ = id;
        false
    }

    /// Reports whether any byte of the message may have been sent.
    fn may_have_been_sent(&self, ticket: Ticket) -> bool;

    /// Makes the driver check the deadlines again.
    fn wake(&self);
}

/// One outgoing message, in parts. The last part ends with a line ending.
#[derive(Clone, Copy)]
pub(crate) struct OutgoingMessage<'a> {
    pub parts: &'a [&'a [u8]],
    /// Facts about the request; `None` for a notification or a reply.
    pub request: Option<RequestFacts<'a>>,
}

impl OutgoingMessage<'_> {
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
}

/// The facts about a request that a link needs beside its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFacts<'a> {
    pub id: u64,
    pub effect: CallEffect,
    pub method: &'a str,
    /// The tool, prompt, resource or task.
    pub name: Option<&'a str>,
    /// Arguments repeated in headers, by header name.
    pub header_params: &'a [(String, String)],
}

/// Identifies an accepted message within its link: a position in the output or, over HTTP, the id of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub u64);

/// The reason a link did not accept a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubmitError {
    /// The queue is full.
    Full,
    /// The server accepts no more input.
    Broken,
    /// The connection is closing.
    Closed,
    /// The call is nested too deeply in in-process calls.
    TooDeep(usize),
}

/// The side effects of a call. They decide whether executing it twice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallEffect {
    Reads,
    MayWrite,
}

/// Whether the server may have received a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Maybe,
    No,
}
