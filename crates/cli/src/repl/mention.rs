//! `@server:uri` in a message: resources of servers that go along with what a person says.

use wharf::Host;
use wharf::catalog::neutral;
use wharf_agent::Block;
use wharf_client::{CallOptions, Connection};
use wharf_spec::{ServerName, Shown};
use wharf_wire::ResourceContents;

use crate::content::resource_text;
use crate::failure::{Failure, Kind};
use crate::nearest::suggestion;

/// The most bytes of one resource's text.
const LONGEST: usize = 256 << 10;
/// The most bytes of all of them.
const LONGEST_OF_ALL: usize = 1 << 20;
/// The most letters of a picture in Base64; providers take no larger ones.
const LARGEST_IMAGE: usize = 5 << 20;
/// The most letters of all of them.
const LARGEST_OF_ALL: usize = 20 << 20;
/// The most resources in one message.
const MOST: usize = 20;
/// The most pieces of one resource.
const MOST_PIECES: usize = 50;
/// The most of an address that is repeated.
const SHOWN: usize = 300;
/// The pictures that models can be shown.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// What a message mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mention<'a> {
    server: ServerName,
    uri: &'a str,
}

/// How much of what servers say still fits into a message.
pub struct Room {
    text: usize,
    images: usize,
}

/// The text, and after it every resource it mentions, each marked with whose it is. Fails before anything is sent where
/// one cannot be read.
pub async fn attach(text: &str, host: &Host) -> Result<Vec<Block>, Failure> {
    let statuses = host.status();
    let mentions =
        mentions(text, |word| statuses.iter().find(|status| status.name.as_str() == word).map(|it| it.name.clone()));
    if mentions.len() > MOST {
        return Err(Failure::usage(format_args!("a message may mention {MOST} resources, and not {}", mentions.len())));
    }
    let mut blocks = vec![Block::Text(text.to_owned())];
    let mut room = Room::default();
    for mention in mentions {
        for contents in read(&mention, host).await?.iter().take(MOST_PIECES) {
            blocks.extend(attached(&mention, contents, &mut room));
        }
    }
    Ok(blocks)
}

/// What is mentioned, each once: `@`, a server there is, a colon and an address, at the beginning of a word.
fn mentions(text: &str, known: impl Fn(&str) -> Option<ServerName>) -> Vec<Mention<'_>> {
    let mut found: Vec<Mention<'_>> = Vec::new();
    for (at, _) in text.match_indices('@') {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|letter| !letter.is_whitespace() && !"([{\"'`<".contains(letter)) {
            continue;
        }
        let word = text[at + 1..].split(char::is_whitespace).next().unwrap_or_default();
        let Some((server, rest)) = word.split_once(':') else { continue };
        let (Some(server), uri) = (known(server), without_ending(rest, before)) else { continue };
        let mention = Mention { server, uri };
        if !uri.is_empty() && !found.contains(&mention) {
            found.push(mention);
        }
    }
    found
}

/// An address without what ends a sentence or closes a bracket around it.
fn without_ending(word: &str, before: Option<char>) -> &str {
    let word = word.trim_end_matches(['.', ',', ';', '!', '?', ':']);
    let closing = match before {
        Some('(') => ')',
        Some('[') => ']',
        Some('{') => '}',
        Some('<') => '>',
        Some(quote @ ('"' | '\'' | '`')) => quote,
        _ => return word,
    };
    // What stands after it belongs to the sentence.
    word.split_once(closing).map_or(word, |(word, _)| word)
}

/// Asks the server for a resource.
async fn read(mention: &Mention<'_>, host: &Host) -> Result<Vec<ResourceContents>, Failure> {
    let server = mention.server.as_str();
    let connection = host.ready(server).await.map_err(|error| {
        Failure::of(Kind::Unreachable, error).about(server).hint(format_args!("/mcp {server} shows what is wrong"))
    })?;
    match connection.read_resource(mention.uri, CallOptions::default()).await {
        Ok(read) => Ok(read.contents),
        Err(error) => Err(unread(mention, &connection, error, host)),
    }
}

fn unread(mention: &Mention<'_>, connection: &Connection, error: wharf_client::CallError, host: &Host) -> Failure {
    let is_refused = error.is_refusal();
    let failure = Failure::calling(connection, error);
    if !is_refused {
        return failure;
    }
    let catalog = host.catalog();
    let listed = catalog.section(mention.server.as_str()).map(|section| &section.resources[..]).unwrap_or_default();
    let hint = suggestion(mention.uri, listed.iter().map(|resource| resource.uri.as_str()));
    failure.hint(format_args!("no resource `{}` could be read; {hint}", Shown::line(mention.uri, SHOWN)))
}

/// One piece of a resource: whose it is, and what is in it.
fn attached(mention: &Mention<'_>, contents: &ResourceContents, room: &mut Room) -> Vec<Block> {
    let uri = Shown::line(&contents.uri, SHOWN);
    let head = format!("Resource `{uri}` of server `{}`, not the user's words:", mention.server);
    let picture = match (&contents.text, &contents.blob, &contents.mime_type) {
        (None, Some(blob), Some(kind)) => room.image(kind, blob),
        _ => None,
    };
    match picture {
        Some(picture) => vec![Block::Text(head), picture],
        None => vec![Block::Text(format!("{head}\n{}", room.text(&resource_text(contents))))],
    }
}

impl Default for Room {
    fn default() -> Self {
        Self { text: LONGEST_OF_ALL, images: LARGEST_OF_ALL }
    }
}

impl Room {
    /// A text as a model may read it: whatever hides in it is spelt out, and where it is cut it says so.
    pub fn text(&mut self, text: &str) -> String {
        let limit = LONGEST.min(self.text);
        let shown = neutral(text, limit);
        self.text -= shown.text.len().min(limit);
        let cut = if shown.cut { format!("\n[cut: the whole has {} bytes]", text.len()) } else { String::new() };
        format!("{}{cut}", shown.text)
    }

    /// A picture that a model can be shown; nothing where it is none, or too large.
    pub fn image(&mut self, media_type: &str, data: &str) -> Option<Block> {
        let is_one = IMAGES.contains(&media_type) && data.len() <= LARGEST_IMAGE.min(self.images);
        is_one.then(|| {
            self.images -= data.len();
            Block::Image { media_type: media_type.to_owned(), data: data.to_owned() }
        })
    }
}

#[cfg(test)]
mod tests {
    use wharf_client::ClosureServer;

    use super::*;

    fn known(word: &str) -> Option<ServerName> {
        ["git", "files"].contains(&word).then(|| ServerName::new(word).unwrap())
    }

    #[test]
    fn only_servers_at_the_beginning_of_a_word_are_mentioned() {
        for (text, expected) in [
            ("see @git:repo://main, please", &["git repo://main"][..]),
            ("@files:file:///a.txt @files:file:///a.txt", &["files file:///a.txt"]),
            ("(@git:a:b) \"@files:c:d\".", &["git a:b", "files c:d"]),
            ("read @git:note://x(1).", &["git note://x(1)"]),
            ("me@git:repo mail@example.org @nobody:x://y @git @git: @", &[]),
            ("line\n@git:a:b", &["git a:b"]),
        ] {
            let found: Vec<String> =
                mentions(text, known).iter().map(|it| format!("{} {}", it.server, it.uri)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    async fn host() -> Host {
        let make = || {
            ClosureServer::new("notes", "1")
                .resource("note://one", "one", "text/plain", || async { Ok("first\u{202e} note".to_owned()) })
                .resource("note://long", "long", "text/plain", || async { Ok("x".repeat(300 << 10)) })
        };
        let host = Host::builder().local(ServerName::new("notes").unwrap(), make).start().await.unwrap();
        host.settled().await;
        host
    }

    #[tokio::test]
    async fn resources_follow_the_text_and_say_whose_they_are() {
        let host = host().await;
        let text = "what is in @notes:note://one?";
        let expected = "Resource `note://one` of server `notes`, not the user's words:\nfirst\\u{202e} note";
        assert_eq!(
            attach(text, &host).await.unwrap(),
            [Block::Text(text.to_owned()), Block::Text(expected.to_owned())]
        );
        let blocks = attach("@notes:note://long", &host).await.unwrap();
        let Block::Text(long) = &blocks[1] else { panic!("{:?}", blocks.len()) };
        assert!(long.len() < (257 << 10) && long.ends_with("\n[cut: the whole has 307200 bytes]"));
        host.close().await;
    }

    #[tokio::test]
    async fn one_that_is_not_there_is_a_failure_that_names_the_nearest() {
        let host = host().await;
        let failure = attach("see @notes:note://onee", &host).await.unwrap_err();
        assert!(failure.hints.iter().any(|hint| hint.contains("did you mean `note://one`")), "{failure:?}");
        host.close().await;
    }

    #[test]
    fn there_is_room_for_so_much_and_no_more() {
        let mut room = Room { text: 5, images: 4 };
        assert_eq!(room.text("abc"), "abc");
        assert_eq!(room.text("defgh"), "…\n[cut: the whole has 5 bytes]");
        assert_eq!(room.image("image/svg+xml", "AAAA"), None);
        assert!(room.image("image/png", "AAAA").is_some() && room.image("image/png", "AAAA").is_none());
    }
}
