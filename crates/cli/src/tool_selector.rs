//! Finds the server and the tool in the first words of a call.
//!
//! A word is not split at arbitrary separators: it is compared with the configured names.

use wharf_spec::UntrustedText;

use wharf_terminal::failure::Failure;
use wharf_terminal::servers::{is_address, is_file_entry, printable_word};

/// Separators between server and tool.
const SEPARATORS: [&str; 5] = ["::", "__", ".", "/", ":"];

/// The selected server and tool, and the remaining words.
#[derive(Debug, PartialEq, Eq)]
pub struct SelectedTool<'a> {
    /// Word for the server. `None` if an option gives the server.
    pub server: Option<&'a str>,
    pub tool: &'a str,
    /// True if the tool was given alone: its server is to be found.
    pub is_alone: bool,
    /// Inside of `tool(…)`.
    pub expression: Option<&'a str>,
    pub rest: &'a [String],
}

/// Finds server and tool in the words of a call. `names` are the configured servers. If an option gives the server, the
/// first word is the tool.
///
/// # Errors
///
/// Fails if no tool is given, or if a word can be read in several ways.
pub fn select_tool<'a>(
    words: &'a [String],
    names: &[&'a str],
    server_is_given: bool,
) -> Result<SelectedTool<'a>, Failure> {
    let Some((first, rest)) = words.split_first() else { return Err(no_tool_given(None)) };
    if server_is_given {
        let (tool, expression) = split_call(first);
        return Ok(SelectedTool { server: None, tool, is_alone: false, expression, rest });
    }
    if is_address(first) || is_file_entry(first) || names.contains(&first.as_str()) {
        let Some((tool, rest)) = rest.split_first() else { return Err(no_tool_given(Some(first))) };
        let (tool, expression) = split_call(tool);
        return Ok(SelectedTool { server: Some(first), tool, is_alone: false, expression, rest });
    }
    let (joined, expression) = split_call(first);
    match readings(joined, names).as_slice() {
        [] => match rest.split_first() {
            _ if !names.is_empty() && is_bare_tool(joined) && rest.first().is_none_or(|word| is_argument(word)) => {
                Ok(SelectedTool { server: None, tool: joined, is_alone: true, expression, rest })
            }
            // An unknown server: the lookup reports it.
            Some((tool, rest)) => {
                let (tool, expression) = split_call(tool);
                Ok(SelectedTool { server: Some(first), tool, is_alone: false, expression, rest })
            }
            None => Ok(SelectedTool { server: Some(first), tool: "", is_alone: false, expression, rest }),
        },
        [(server, tool)] => Ok(SelectedTool { server: Some(server), tool, is_alone: false, expression, rest }),
        several => Err(ambiguous(joined, several)),
    }
}

/// Reports whether a word can be a tool without its server: it has no separator.
fn is_bare_tool(word: &str) -> bool {
    !SEPARATORS.iter().any(|separator| word.contains(separator)) && !word.contains('@')
}

/// Reports whether a word is an argument of a tool and not its name.
fn is_argument(word: &str) -> bool {
    word.starts_with('-') || word.contains('=') || word.contains(':')
}

/// Splits `tool(…)` into the tool and the inside of the brackets.
fn split_call(word: &str) -> (&str, Option<&str>) {
    match word.strip_suffix(')').and_then(|open| open.split_once('(')) {
        Some((tool, inside)) => (tool, Some(inside)),
        None => (word, None),
    }
}

/// Returns every way to read a word as server and tool. For each syntax, the longest matching name wins.
fn readings<'a>(word: &'a str, names: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    let after = |word: &'a str, name: &str| -> Option<&'a str> {
        let rest = word.strip_prefix(name)?;
        SEPARATORS.iter().find_map(|separator| rest.strip_prefix(separator)).filter(|tool| !tool.is_empty())
    };
    let longest = |read: &dyn Fn(&'a str) -> Option<&'a str>| {
        let found = names.iter().filter_map(|name| Some((*name, read(name)?)));
        found.max_by_key(|(name, _)| name.len())
    };
    let plain = longest(&|name| after(word, name));
    let prefixed = longest(&|name| word.strip_prefix("mcp__").and_then(|word| after(word, name)));
    // The whole word is the alias of the tool, since the slug is not its name.
    let slug = longest(&|name| word.strip_prefix("mcp_")?.strip_prefix(name)?.strip_prefix('_').map(|_| word));
    let slug = slug.filter(|_| !word.starts_with("mcp__"));
    let at = longest(&|name| word.strip_suffix(name)?.strip_suffix('@').filter(|tool| !tool.is_empty()));
    let mut all: Vec<(&str, &str)> = Vec::new();
    for reading in [plain, prefixed, slug, at].into_iter().flatten() {
        if !all.contains(&reading) {
            all.push(reading);
        }
    }
    all
}

fn no_tool_given(server: Option<&str>) -> Failure {
    match server {
        Some(server) => Failure::usage(format_args!("no tool of `{}` given", printable_word(server)))
            .with_hint(format_args!("`wharf tools {}` lists the tools", printable_word(server))),
        None => Failure::usage("no tool given").with_hint("`wharf tools` lists the tools"),
    }
}

fn ambiguous(word: &str, readings: &[(&str, &str)]) -> Failure {
    let shown: Vec<String> = readings.iter().map(|(server, tool)| format!("`{tool}` of `{server}`")).collect();
    Failure::usage(format_args!("`{}` could be {}", UntrustedText::new(word), shown.join(" or ")))
        .with_hint("write the server and the tool as two words")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["git", "git__hub", "a-b", "x", "X"];

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(line: &str, server: &str, tool: &str) {
        let words = words(line);
        let selected = select_tool(&words, &NAMES, false).unwrap();
        assert_eq!(
            (selected.server, selected.tool, selected.rest),
            (Some(server), tool, &["k=v".to_owned()][..]),
            "{line}"
        );
    }

    #[test]
    fn every_selector_spelling_is_parsed() {
        for line in [
            "git log k=v",
            "git.log k=v",
            "git/log k=v",
            "git:log k=v",
            "git::log k=v",
            "git__log k=v",
            "mcp__git__log k=v",
            "log@git k=v",
        ] {
            check(line, "git", "log");
        }
        check("git__hub__log k=v", "git__hub", "log");
        check("git__hu__log k=v", "git", "hu__log");
        check("a-b.c.d k=v", "a-b", "c.d");
        check("mcp_git_log_0a1b2c3d k=v", "git", "mcp_git_log_0a1b2c3d");
        check("x.y k=v", "x", "y");
        check("X.y k=v", "X", "y");
        check("https://host/mcp echo k=v", "https://host/mcp", "echo");
        check("some.json:git log k=v", "some.json:git", "log");
        check("nobody log k=v", "nobody", "log");
    }

    /// U10.
    #[test]
    fn tool_may_stand_alone() {
        for (line, tool) in [("log", "log"), ("log k=v", "log"), ("log --max 3", "log"), ("log(a:1)", "log")] {
            let words = words(line);
            let selected = select_tool(&words, &NAMES, false).unwrap();
            assert_eq!((selected.server, selected.tool, selected.is_alone), (None, tool, true), "{line}");
        }
        let (bare, joined) = (words("log k=v"), words("nobody.log k=v"));
        assert!(!select_tool(&bare, &[], false).unwrap().is_alone);
        assert!(!select_tool(&joined, &NAMES, false).unwrap().is_alone);
    }

    #[test]
    fn ambiguous_or_incomplete_selector_is_an_error() {
        let failure = select_tool(&words("mcp__x__y k=v"), &["mcp", "x"], false).unwrap_err();
        assert_eq!(failure.error.message, "`mcp__x__y` could be `x__y` of `mcp` or `y` of `x`");
        for line in ["git", "https://host/mcp"] {
            let failure = select_tool(&words(line), &NAMES, false).unwrap_err();
            assert_eq!(failure.error.message, format!("no tool of `{line}` given"));
        }
        assert!(select_tool(&[], &NAMES, false).is_err());
    }

    #[test]
    fn call_expression_in_parentheses_is_parsed() {
        for (line, given, server, tool) in [
            ("git.log(a:1)", false, Some("git"), "log"),
            ("git log(a:1)", false, Some("git"), "log"),
            ("log(a:1)", true, None, "log"),
        ] {
            let words = words(line);
            let expected = SelectedTool { server, tool, is_alone: false, expression: Some("a:1"), rest: &[] };
            assert_eq!(select_tool(&words, &NAMES, given).unwrap(), expected);
        }
        assert_eq!(select_tool(&words("log k=(v)"), &NAMES, true).unwrap().expression, None);
    }
}
