//! The prompts: a welcome, a code review, a tow, and a shanty after `learn_shanty`.

use serde_json::{Map, Value, json};

use super::content;
use super::message::RpcError;
use super::port::HarbourView;
use super::resources::BERTHS;
use super::revision::DemoRevision;

struct DemoPrompt {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    arguments: &'static [DemoPromptArgument],
}

struct DemoPromptArgument {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    is_required: bool,
    /// Values to offer for completion.
    suggestions: ArgumentSuggestions,
}

enum ArgumentSuggestions {
    Words(&'static [&'static str]),
    /// The ships in the dock.
    Ships,
    /// The berths in the dock. Only the ship's berth once the ship is known.
    Berths,
}

const PROMPTS: [DemoPrompt; 4] = [
    DemoPrompt {
        name: "welcome",
        title: "Welcome",
        description: "Asks the model to welcome somebody aboard.",
        arguments: &[DemoPromptArgument {
            name: "name",
            title: "Name",
            description: "Whom to welcome",
            is_required: true,
            suggestions: ArgumentSuggestions::Words(&["Ada", "Alan", "Barbara", "Edsger", "Grace", "Margaret"]),
        }],
    },
    DemoPrompt {
        name: "review",
        title: "Code review",
        description: "Asks the model to review a piece of code.",
        arguments: &[
            DemoPromptArgument {
                name: "code",
                title: "Code",
                description: "The code to review",
                is_required: true,
                suggestions: ArgumentSuggestions::Words(&[]),
            },
            DemoPromptArgument {
                name: "language",
                title: "Language",
                description: "The language it is written in",
                is_required: false,
                suggestions: ArgumentSuggestions::Words(&[
                    "C",
                    "C++",
                    "Go",
                    "Java",
                    "JavaScript",
                    "Python",
                    "Ruby",
                    "Rust",
                    "TypeScript",
                ]),
            },
        ],
    },
    DemoPrompt {
        name: "tow",
        title: "Tow",
        description: "Asks the model to plan a tow.",
        arguments: &[
            DemoPromptArgument {
                name: "ship",
                title: "Ship",
                description: "Which ship to tow",
                is_required: true,
                suggestions: ArgumentSuggestions::Ships,
            },
            DemoPromptArgument {
                name: "berth",
                title: "Berth",
                description: "Where it lies",
                is_required: true,
                suggestions: ArgumentSuggestions::Berths,
            },
        ],
    },
    DemoPrompt { name: SHANTY, title: "Shanty", description: "Asks the model to sing.", arguments: &[] },
];

/// The prompt that asks before it expands. Other modules expand it.
pub const PILOT: &str = "pilot";

const PILOT_PROMPT: DemoPrompt = DemoPrompt {
    name: PILOT,
    title: "Pilot",
    description: "Asks something before it asks the model to thank the pilot.",
    arguments: &[],
};

/// The prompt that is listed only after `learn_shanty`.
const SHANTY: &str = "shanty";

fn listed_prompts(view: HarbourView) -> impl Iterator<Item = &'static DemoPrompt> {
    PROMPTS.iter().filter(move |prompt| view.has_shanty || prompt.name != SHANTY)
}

pub fn definitions(revision: DemoRevision, view: HarbourView) -> Vec<Value> {
    let asking = revision.is_stateless().then_some(&PILOT_PROMPT);
    listed_prompts(view).chain(asking).map(|prompt| define(prompt, revision)).collect()
}

fn define(prompt: &DemoPrompt, revision: DemoRevision) -> Value {
    let titled = |mut definition: Value, title: &str| {
        if revision.has_titles() {
            definition["title"] = title.into();
        }
        definition
    };
    let arguments = prompt.arguments.iter().map(|argument| {
        let definition = json!({
            "name": argument.name,
            "description": argument.description,
            "required": argument.is_required,
        });
        titled(definition, argument.title)
    });
    let definition = json!({
        "name": prompt.name,
        "description": prompt.description,
        "arguments": arguments.collect::<Vec<_>>(),
    });
    titled(definition, prompt.title)
}

/// Expands the prompt that `params` name.
///
/// # Errors
///
/// Fails with invalid params for an unknown prompt or argument.
pub fn expand(params: &Map<String, Value>, view: HarbourView) -> Result<Value, RpcError> {
    let prompt = find(params.get("name"), view)?;
    let none = Map::new();
    let given = match params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(given)) => given,
        Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
    };
    check_arguments(prompt, given)?;
    let argument = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default();
    let text = match prompt.name {
        "welcome" => {
            let name = argument("name");
            format!("Please welcome {name} aboard, in two friendly sentences with a nautical air.")
        }
        "tow" => format!("Please plan how to tow {} out of berth {}.", argument("ship"), argument("berth")),
        SHANTY => "Please sing a shanty of four lines.".to_owned(),
        _ => review(argument("code"), argument("language")),
    };
    Ok(json!({
        "description": prompt.description,
        "messages": [{"role": "user", "content": content::text(text)}],
    }))
}

fn review(code: &str, language: &str) -> String {
    let fence_label = language.to_lowercase();
    format!(
        "Please review this code. Name the most important problem first, and say what \
         is good about it.\n\n```{fence_label}\n{code}\n```"
    )
}

/// Returns the values to offer for an argument, given the arguments in `context`.
///
/// # Errors
///
/// Fails with invalid params for an unknown prompt or argument.
pub fn suggestions(
    prompt: Option<&Value>,
    argument: &str,
    context: &Map<String, Value>,
    view: HarbourView,
) -> Result<Vec<&'static str>, RpcError> {
    let prompt = find(prompt, view)?;
    let known = prompt.arguments.iter().find(|known| known.name == argument);
    let known = known.ok_or_else(|| unknown_argument(prompt, argument))?;
    let lies_there = |ship: &str| context.get("ship").is_none_or(|chosen| chosen == ship);
    Ok(match known.suggestions {
        ArgumentSuggestions::Words(words) => words.to_vec(),
        ArgumentSuggestions::Ships => BERTHS.map(|(_, ship)| ship).to_vec(),
        ArgumentSuggestions::Berths => {
            BERTHS.into_iter().filter(|(_, ship)| lies_there(ship)).map(|(berth, _)| berth).collect()
        }
    })
}

fn find(name: Option<&Value>, view: HarbourView) -> Result<&'static DemoPrompt, RpcError> {
    let name = name.and_then(Value::as_str).ok_or_else(|| RpcError::invalid_params("`name` must be a string"))?;
    listed_prompts(view)
        .find(|prompt| prompt.name == name)
        .ok_or_else(|| RpcError::invalid_params(format!("unknown prompt `{name}`")))
}

fn check_arguments(prompt: &DemoPrompt, given: &Map<String, Value>) -> Result<(), RpcError> {
    let required = prompt.arguments.iter().filter(|argument| argument.is_required);
    for DemoPromptArgument { name, .. } in required {
        if !given.contains_key(*name) {
            let complaint = format!("the prompt `{}` needs the argument `{name}`", prompt.name);
            return Err(RpcError::invalid_params(complaint));
        }
    }
    for (name, value) in given {
        if !prompt.arguments.iter().any(|known| known.name == name) {
            return Err(unknown_argument(prompt, name));
        }
        if !value.is_string() {
            let complaint = format!("the argument `{name}` must be a string");
            return Err(RpcError::invalid_params(complaint));
        }
    }
    Ok(())
}

fn unknown_argument(prompt: &DemoPrompt, argument: &str) -> RpcError {
    RpcError::invalid_params(format!("the prompt `{}` has no argument `{argument}`", prompt.name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::HarbourView;

    #[track_caller]
    fn check(name: &str, arguments: Value, expected: &str) {
        let params = json!({"name": name, "arguments": arguments});
        let found = match super::expand(params.as_object().unwrap(), HarbourView::default()) {
            Ok(result) => result["messages"][0]["content"]["text"].to_string(),
            Err(error) => error.message,
        };
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn prompt_arguments_are_filled_in_and_validated() {
        check("welcome", json!({"name": "Ada"}), "welcome Ada aboard");
        check("review", json!({"code": "fn", "language": "Rust"}), r"```rust\nfn\n```");
        check("review", json!({"code": "fn"}), r"```\nfn\n```");
        check("welcome", json!({}), "needs the argument `name`");
        check("welcome", json!({"name": 1}), "`name` must be a string");
        check("welcome", json!({"name": "", "x": ""}), "no argument `x`");
        check("tow", json!({"ship": "the tug", "berth": "east-2"}), "tow the tug out of berth east-2");
        check("shanty", json!({}), "unknown prompt `shanty`");
        check("farewell", json!({}), "unknown prompt `farewell`");
    }
}
