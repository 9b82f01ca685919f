//! What the engine asks of whatever carries its messages, and what it says of each of them.

/// The way to a server. A link is not a pair of streams: over HTTP each request has one of its own.
pub(crate) trait Link: Send + Sync {
    /// Takes one message. Never waits. Says where in the link's output it stands.
    fn submit(&self, message: Message<'_>) -> Result<Ticket, NotTaken>;

    /// Nobody waits for this call any more. True where that is all the server needs to be told.
    fn abandon(&self, id: u64) -> bool {
        let _ = id;
        false
    }

    /// Whether any byte of the message may have left.
    fn may_have_left(&self, ticket: Ticket) -> bool;

    /// Makes the link's task look at the clock again.
    fn wake(&self);
}

/// One message on its way out, in parts that together end with a line end.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    pub parts: &'a [&'a [u8]],
    /// What it asks for, where it is a request: a notification and a reply get no answer.
    pub request: Option<Label<'a>>,
}

impl Message<'_> {
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
}

/// What a request is about, for links on which that is said beside the message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label<'a> {
    pub id: u64,
    pub effect: Effect,
    pub method: &'a str,
    /// The tool, the prompt, the resource or the task.
    pub name: Option<&'a str>,
    /// Arguments that are repeated beside the message, by the names they have there.
    pub mirrored: &'a [(String, String)],
}

/// Where in a link's output a message begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub u64);

/// Why a link did not take a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// Too much waits already.
    Full,
    /// The server takes no more input.
    Broken,
    /// We are closing.
    Closed,
    /// It comes from within too many calls of the same kind.
    TooDeep(usize),
}

/// Whether carrying a call out may change something, so that doing it twice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    MayWrite,
}

/// Whether a message may have reached the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Perhaps,
    Never,
}
