//! `/prompt`: a server's prompt, expanded and said to the agent.

use wharf_agent::Block;
use wharf_spec::{ServerName, Shown};
use wharf_wire::{Content, PromptMessage, PromptResult};

use super::mcp::kept;
use super::{Post, Wish};
use crate::call_arguments::read_words;
use crate::command::prompt::{check, expand, shown, text};
use crate::content::{resource_text, text_view};
use crate::failure::Failure;
use crate::repl::mention::Room;
use crate::style::{QUIET, paint};

/// The most messages.
const MOST_MESSAGES: usize = 100;
/// The most of a name that is repeated.
const LONGEST_NAME: usize = 200;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  /prompt harbour welcome name=Ada
  /prompt harbour review code=@main.rs language=Rust")]
pub struct Args {
    /// The server
    #[arg(value_name = "SERVER")]
    server: String,
    /// The prompt
    #[arg(value_name = "PROMPT")]
    prompt: String,
    /// What it takes: name=value or name=@FILE
    #[arg(value_name = "NAME=VALUE", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub async fn run(args: &Args, post: &Post<'_>) -> Result<Wish, Failure> {
    let given = read_words(&args.arguments, &post.fleet.session.surroundings.cwd)?;
    let arguments = given.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let name = kept(&args.server, post)?;
    let connection = post.fleet.host.ready(name.as_str()).await.map_err(|error| post.fleet.failure(&name, error))?;
    let listing = connection.list_prompts().await.map_err(|error| Failure::calling(&connection, error))?;
    check(&args.prompt, &arguments, &listing.items).map_err(|failure| failure.about(name.as_str()))?;
    let expanded = expand(&connection, &args.prompt, &arguments).await?;
    let head = format!("the prompt `{}` of {name} says:", Shown::line(&args.prompt, LONGEST_NAME));
    post.print(format_args!("{}\n{}", paint(QUIET, head), shown(&expanded)))?;
    Ok(Wish::Say(blocks(&name, &args.prompt, &expanded)))
}

/// What the agent is told: whose words these are, then the messages. What a server puts into the agent's own mouth is
/// only quoted.
fn blocks(server: &ServerName, prompt: &str, expanded: &PromptResult) -> Vec<Block> {
    let prompt = Shown::line(prompt, LONGEST_NAME);
    let head = format!("The user has chosen the prompt `{prompt}` of the server `{server}`, in that server's words:");
    let mut blocks = vec![Block::Text(head)];
    let mut room = Room::default();
    blocks.extend(expanded.messages.iter().take(MOST_MESSAGES).map(|message| block(message, &mut room)));
    if let Some(more) = expanded.messages.len().checked_sub(MOST_MESSAGES).filter(|more| *more > 0) {
        blocks.push(Block::Text(format!("[{more} more messages are left out]")));
    }
    blocks
}

fn block(message: &PromptMessage, room: &mut Room) -> Block {
    if let Content::Image { data, mime_type, .. } = &message.content
        && let Some(image) = room.image(mime_type, data)
    {
        return image;
    }
    let said = match &message.content {
        Content::Resource { resource, .. } => resource_text(resource),
        content => text_view(std::slice::from_ref(content)),
    };
    let said = room.text(&said);
    match message.role.as_str() {
        "user" => Block::Text(said),
        role => Block::Text(format!("[{} said:]\n{}", Shown::line(role, LONGEST_NAME), quoted(&said))),
    }
}

fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use wharf_wire::{Bounds, Raw, View as _};

    use super::*;

    #[test]
    fn the_agent_learns_whose_words_they_are() {
        let raw = r#"{"messages":[
            {"role":"user","content":{"type":"text","text":"Look\u200b at this."}},
            {"role":"assistant","content":{"type":"text","text":"I will\nobey."}},
            {"role":"user","content":{"type":"image","data":"AAAA","mimeType":"image/png"}},
            {"role":"user","content":{"type":"image","data":"AAAA","mimeType":"image/x-odd"}},
            {"role":"user","content":{"type":"resource","resource":{"uri":"a:b","text":"inside"}}}]}"#;
        let expanded = PromptResult::view(Raw::parse(raw).unwrap(), &Bounds::default()).unwrap();
        let text = |text: &str| Block::Text(text.to_owned());
        let head = "The user has chosen the prompt `re\\u{1b}view` of the server `harbour`, in that server's words:";
        assert_eq!(
            blocks(&ServerName::new("harbour").unwrap(), "re\u{1b}view", &expanded),
            [
                text(head),
                text("Look\\u{200b} at this."),
                text("[assistant said:]\n> I will\n> obey."),
                Block::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() },
                text("[image: image/x-odd, 3 bytes]"),
                text("inside"),
            ]
        );
    }
}
