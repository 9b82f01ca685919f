//! Computes the completion of a line: pure, from the command grammar and the known server names.

use clap::{Arg, Command};

use super::server_names::{CompletableNames, PromptNames, ServerNames};
use super::template::{TemplatePosition, template_position};
use super::{Candidate, LocalNameKind, starting_with};
use wharf_terminal::command_words::{option, positional};

/// A planned completion of the end of a line.
#[derive(Debug)]
pub struct CompletionPlan<'a> {
    /// Byte offset of the text to replace.
    pub start: usize,
    pub query: CandidateQuery<'a>,
}

/// Source of the candidates.
#[derive(Debug)]
pub enum CandidateQuery<'a> {
    /// These candidates.
    Names(Vec<Candidate>),
    Others {
        kind: LocalNameKind,
        word: &'a str,
    },
    Values(ArgumentQuery<'a>),
}

/// A completion request to a server.
#[derive(Debug)]
pub struct ArgumentQuery<'a> {
    pub server: &'a str,
    pub owner: ArgumentOwner<'a>,
    pub argument: &'a str,
    pub value: &'a str,
    pub given: Vec<(String, String)>,
    /// Text around the value.
    head: String,
    tail: &'a str,
}

/// The prompt or template that has the argument.
#[derive(Debug)]
pub enum ArgumentOwner<'a> {
    Prompt(&'a str),
    Template(&'a str),
}

impl ArgumentQuery<'_> {
    pub fn candidate(&self, value: &str) -> Candidate {
        let text = match self.owner {
            ArgumentOwner::Prompt(_) => shlex::try_quote(value).map_or_else(|_| value.to_owned(), Into::into),
            ArgumentOwner::Template(_) => value.to_owned(),
        };
        Candidate { text: format!("{}{text}{}", self.head, self.tail), ..Candidate::plain(value) }
    }
}

/// Plans the completion of the text before the cursor, or returns `None` if there is none.
pub fn plan<'a>(grammar: &Command, known: &'a CompletableNames, typed: &'a str) -> Option<CompletionPlan<'a>> {
    let start =
        typed.rfind(char::is_whitespace).map_or(0, |at| at + typed[at..].chars().next().map_or(0, char::len_utf8));
    let word = &typed[start..];
    let query = match typed.strip_prefix('/') {
        _ if word.starts_with('@') => complete_reference(known, &word[1..])?,
        Some(_) if start == 0 => CandidateQuery::Names(complete_commands(grammar, &word[1..], "/")),
        Some(line) => complete_words(grammar, known, &line[..start - 1], word)?,
        None => complete_tool(known, word)?,
    };
    Some(CompletionPlan { start, query })
}

/// Completes `server.tool` in a message.
fn complete_tool<'a>(known: &'a CompletableNames, word: &'a str) -> Option<CandidateQuery<'a>> {
    let server = known.server(word.split_once('.')?.0)?;
    let names = server.joined_tools.iter().map(String::as_str);
    Some(CandidateQuery::Names(starting_with(word, names).map(Candidate::word).collect()))
}

/// Completes `@server:uri`, which may occur anywhere.
fn complete_reference<'a>(known: &'a CompletableNames, word: &'a str) -> Option<CandidateQuery<'a>> {
    let Some((name, uri)) = word.split_once(':') else {
        let has_any = |server: &&ServerNames| !server.resources.is_empty() || !server.templates.is_empty();
        let servers = known.0.iter().filter(has_any).map(|server| server.name.as_str());
        let prefix = |server: &str| Candidate::plain(&format!("@{server}:"));
        return Some(CandidateQuery::Names(starting_with(word, servers).map(prefix).collect()));
    };
    let server = known.server(name)?;
    let head = format!("@{name}:");
    let resources = server.resources.iter().filter(|resource| resource.starts_with(uri));
    let mut found: Vec<Candidate> = resources
        .filter(|resource| !resource.contains(char::is_whitespace))
        .map(|resource| Candidate { text: format!("{head}{resource} "), ..Candidate::plain(resource) })
        .collect();
    for template in &server.templates {
        match template_position(template, uri) {
            Some(TemplatePosition::Text(more)) if !more.is_empty() => {
                found.push(Candidate { text: format!("{head}{uri}{more}"), ..Candidate::plain(template) });
            }
            Some(TemplatePosition::Value(value)) if found.is_empty() => {
                let (owner, head) = (ArgumentOwner::Template(template), format!("{head}{}", value.before));
                let (server, argument, given) = (server.name.as_str(), value.variable, value.given);
                return Some(CandidateQuery::Values(ArgumentQuery {
                    server,
                    owner,
                    argument,
                    value: value.value,
                    given,
                    head,
                    tail: value.after,
                }));
            }
            _ => {}
        }
    }
    Some(CandidateQuery::Names(found))
}

fn complete_commands(command: &Command, word: &str, before: &str) -> Vec<Candidate> {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    starting_with(word, shown).map(|name| Candidate::word(&format!("{before}{name}"))).collect()
}

/// Arguments parsed before the word being typed.
#[derive(Default)]
struct ParsedWords<'a> {
    server: Option<&'a str>,
    prompt: Option<&'a str>,
    given: Vec<(String, String)>,
    position: usize,
}

/// Parses the words of a command up to the one being typed.
fn complete_words<'a>(
    grammar: &Command,
    known: &'a CompletableNames,
    before: &'a str,
    word: &'a str,
) -> Option<CandidateQuery<'a>> {
    let (mut command, mut parsed) = (grammar, ParsedWords::default());
    let mut rest = before.split_whitespace();
    while let Some(earlier) = rest.next() {
        if let Some(option) = earlier.strip_prefix('-').and_then(|_| option(grammar, command, earlier)) {
            let Some(_value) = rest.next() else { return complete_argument(option, known, &parsed, word) };
        } else if earlier.starts_with('-') {
            // A switch, or an unknown option.
        } else if let Some(inner) = command.find_subcommand(earlier) {
            (command, parsed) = (inner, ParsedWords::default());
        } else {
            record_argument(command, &mut parsed, earlier);
        }
    }
    if let Some(dashed) = word.strip_prefix("--") {
        let names = command.get_arguments().filter(|argument| !argument.is_hide_set()).filter_map(Arg::get_long);
        return Some(CandidateQuery::Names(
            starting_with(dashed, names).map(|name| Candidate::word(&format!("--{name}"))).collect(),
        ));
    }
    let slotted =
        positional(command, parsed.position).and_then(|argument| complete_argument(argument, known, &parsed, word));
    match (slotted, complete_commands(command, word, "")) {
        (Some(CandidateQuery::Names(names)), mut commands) if parsed.position == 0 => {
            commands.extend(names);
            Some(CandidateQuery::Names(commands))
        }
        (None, commands) if parsed.position == 0 => Some(CandidateQuery::Names(commands)),
        (slotted, _) => slotted,
    }
}

/// Records a positional argument.
fn record_argument<'a>(command: &Command, parsed: &mut ParsedWords<'a>, word: &'a str) {
    match positional(command, parsed.position).map(value_name).as_deref() {
        Some("SERVER") => parsed.server = Some(word),
        Some("PROMPT") => parsed.prompt = Some(word),
        _ => parsed.given.extend(word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))),
    }
    parsed.position += 1;
}

/// Returns the candidates of an argument by its value name.
fn complete_argument<'a>(
    argument: &Arg,
    known: &'a CompletableNames,
    parsed: &ParsedWords<'a>,
    word: &'a str,
) -> Option<CandidateQuery<'a>> {
    let servers = || known.matching_servers(parsed.server);
    let names = |names: &mut dyn Iterator<Item = &'a str>| {
        Some(CandidateQuery::Names(starting_with(word, names).map(Candidate::word).collect()))
    };
    match value_name(argument).as_str() {
        "SERVER" | "SERVERS" => names(&mut known.names()),
        "TOOL" => names(&mut servers().flat_map(|server| &server.tools).map(String::as_str)),
        "SERVER.TOOL" => names(&mut servers().flat_map(|server| &server.joined_tools).map(String::as_str)),
        "PROMPT" => names(&mut servers().flat_map(|server| &server.prompts).map(|prompt| prompt.name.as_str())),
        "URI" => names(&mut servers().flat_map(|server| &server.resources).map(String::as_str)),
        "MODEL" => Some(CandidateQuery::Others { kind: LocalNameKind::Models, word }),
        "CONVERSATION" => Some(CandidateQuery::Others { kind: LocalNameKind::Conversations, word }),
        _ => {
            let server = known.server(parsed.server?)?;
            complete_prompt_argument(server, server.prompt(parsed.prompt?)?, parsed, word)
        }
    }
}

/// Completes `name=value` of a prompt.
fn complete_prompt_argument<'a>(
    server: &'a ServerNames,
    prompt: &'a PromptNames,
    parsed: &ParsedWords<'a>,
    word: &'a str,
) -> Option<CandidateQuery<'a>> {
    let Some((name, value)) = word.split_once('=') else {
        let is_new = |name: &&str| parsed.given.iter().all(|(given, _)| given != name);
        let names = prompt.arguments.iter().map(String::as_str).filter(is_new);
        return Some(CandidateQuery::Names(
            starting_with(word, names).map(|name| Candidate::plain(&format!("{name}="))).collect(),
        ));
    };
    let argument = prompt.arguments.iter().find(|argument| *argument == name)?;
    let (owner, given, head) = (ArgumentOwner::Prompt(&prompt.name), parsed.given.clone(), format!("{name}="));
    Some(CandidateQuery::Values(ArgumentQuery { server: &server.name, owner, argument, value, given, head, tail: " " }))
}

fn value_name(argument: &Arg) -> String {
    let given = argument.get_value_names().and_then(|names| names.first()).map(|name| name.to_string());
    given.unwrap_or_else(|| argument.get_id().as_str().to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grammar() -> Command {
        let server = || Arg::new("server").value_name("SERVER");
        let mcp = Command::new("mcp").arg(server()).subcommands([
            Command::new("connect").arg(server()),
            Command::new("reconnect").arg(server()),
            Command::new("secret").hide(true),
        ]);
        let prompt = Command::new("prompt").args([
            server(),
            Arg::new("prompt").value_name("PROMPT"),
            Arg::new("arguments").value_name("NAME=VALUE").num_args(0..),
        ]);
        let tools = Command::new("tools").args([
            Arg::new("tool").value_name("TOOL"),
            Arg::new("from").long("from").value_name("SERVER"),
            Arg::new("all").long("all").action(clap::ArgAction::SetTrue),
        ]);
        let tools = tools.subcommand(Command::new("off").arg(Arg::new("one").value_name("SERVER.TOOL")));
        let model = Command::new("model").arg(Arg::new("model").value_name("MODEL"));
        Command::new("wharf").subcommands([mcp, prompt, tools, model])
    }

    fn known() -> CompletableNames {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        CompletableNames(vec![
            ServerNames {
                name: "demo".to_owned(),
                tools: texts(&["mcp__demo__echo", "mcp__demo__add"]),
                joined_tools: texts(&["demo.echo", "demo.add"]),
                prompts: vec![PromptNames { name: "greet".to_owned(), arguments: texts(&["name", "style"]) }],
                resources: texts(&["demo://one", "demo://two", "demo://with blank"]),
                templates: texts(&["city://{name}/map"]),
            },
            ServerNames { name: "docs".to_owned(), tools: texts(&["mcp__docs__find"]), ..ServerNames::default() },
        ])
    }

    /// Checks the line with each candidate inserted.
    #[track_caller]
    fn check(typed: &str, expected: &[&str]) {
        let (grammar, known) = (grammar(), known());
        let lines: Vec<String> = match plan(&grammar, &known, typed) {
            Some(CompletionPlan { start, query: CandidateQuery::Names(names) }) => {
                names.iter().map(|name| format!("{}{}", &typed[..start], name.text)).collect()
            }
            Some(CompletionPlan { start, query: CandidateQuery::Values(values) }) => {
                let asked = format!("{}.{}?{}{:?}", values.server, values.argument, values.value, values.given);
                vec![asked, format!("{}{}", &typed[..start], values.candidate("x y").text)]
            }
            Some(CompletionPlan { query: CandidateQuery::Others { kind, word }, .. }) => {
                vec![format!("{kind:?} {word}")]
            }
            None => Vec::new(),
        };
        assert_eq!(lines, expected, "{typed}");
    }

    #[test]
    fn commands_and_their_words_are_completed() {
        check("/", &["/mcp ", "/prompt ", "/tools ", "/model "]);
        check("/M", &["/mcp ", "/model "]);
        check("/mcp ", &["/mcp connect ", "/mcp reconnect ", "/mcp demo ", "/mcp docs "]);
        check("/mcp d", &["/mcp demo ", "/mcp docs "]);
        check("/mcp reconnect do", &["/mcp reconnect docs "]);
        check("/mcp reconnect docs ", &[]);
        check("/tools --", &["/tools --from ", "/tools --all "]);
        check("/tools --from d", &["/tools --from demo ", "/tools --from docs "]);
        check("/tools mcp__demo", &["/tools mcp__demo__echo ", "/tools mcp__demo__add "]);
        check("/model gp", &["Models gp"]);
        check("/tools off demo.e", &["/tools off demo.echo "]);
        check("please call demo.a", &["please call demo.add "]);
        check("/nothing x", &[]);
    }

    #[test]
    fn prompts_are_completed_by_name_and_argument() {
        check("/prompt demo ", &["/prompt demo greet "]);
        check("/prompt docs ", &[]);
        check("/prompt demo greet ", &["/prompt demo greet name=", "/prompt demo greet style="]);
        check("/prompt demo greet name=Ada s", &["/prompt demo greet name=Ada style="]);
        check(
            "/prompt demo greet name=Ada style=po",
            &[r#"demo.style?po[("name", "Ada")]"#, "/prompt demo greet name=Ada style='x y' "],
        );
        check("/prompt demo greet other=", &[]);
    }

    #[test]
    fn resources_are_completed_anywhere() {
        check("look at @d", &["look at @demo:"]);
        check("look at @demo:demo", &["look at @demo:demo://one ", "look at @demo:demo://two "]);
        check("@demo:ci", &["@demo:city://"]);
        check("/prompt @demo:city://Pa", &["demo.name?Pa[]", "/prompt @demo:city://x y/map"]);
        check("plain text", &[]);
        check("mail me@demo", &[]);
        check("@other:x", &[]);
    }
}
