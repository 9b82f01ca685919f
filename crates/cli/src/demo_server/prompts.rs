//! The prompts: a welcome and a code review.

use serde_json::{Map, Value, json};

use super::content;
use super::message::RpcError;
use super::revision::Revision;

struct Prompt {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
}

struct Argument {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    is_required: bool,
    /// What to offer when somebody is typing it.
    suggestions: &'static [&'static str],
}

const PROMPTS: [Prompt; 2] = [
    Prompt {
        name: "welcome",
        title: "Welcome",
        description: "Asks the model to welcome somebody aboard.",
        arguments: &[Argument {
            name: "name",
            title: "Name",
            description: "Whom to welcome",
            is_required: true,
            suggestions: &["Ada", "Alan", "Barbara", "Edsger", "Grace", "Margaret"],
        }],
    },
    Prompt {
        name: "review",
        title: "Code review",
        description: "Asks the model to review a piece of code.",
        arguments: &[
            Argument {
                name: "code",
                title: "Code",
                description: "The code to review",
                is_required: true,
                suggestions: &[],
            },
            Argument {
                name: "language",
                title: "Language",
                description: "The language it is written in",
                is_required: false,
                suggestions: &["C", "C++", "Go", "Java", "JavaScript", "Python", "Ruby", "Rust", "TypeScript"],
            },
        ],
    },
];

pub fn definitions(revision: Revision) -> Vec<Value> {
    PROMPTS.iter().map(|prompt| define(prompt, revision)).collect()
}

fn define(prompt: &Prompt, revision: Revision) -> Value {
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

/// Fills in the prompt that `params` name.
pub fn fill_in(params: &Map<String, Value>) -> Result<Value, RpcError> {
    let prompt = find(params.get("name"))?;
    let none = Map::new();
    let given = match params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(given)) => given,
        Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
    };
    check(prompt, given)?;
    let argument = |name: &str| given.get(name).and_then(Value::as_str);
    let text = match prompt.name {
        "welcome" => {
            let name = argument("name").unwrap_or_default();
            format!("Please welcome {name} aboard, in two friendly sentences with a nautical air.")
        }
        _ => {
            let code = argument("code").unwrap_or_default();
            let language = argument("language").unwrap_or_default();
            let fence_label = language.to_lowercase();
            format!(
                "Please review this code. Name the most important problem first, and say what \
                 is good about it.\n\n```{fence_label}\n{code}\n```"
            )
        }
    };
    Ok(json!({
        "description": prompt.description,
        "messages": [{"role": "user", "content": content::text(text)}],
    }))
}

/// What may be offered for an argument of a prompt.
pub fn suggestions(prompt: Option<&Value>, argument: &str) -> Result<Vec<&'static str>, RpcError> {
    let prompt = find(prompt)?;
    let known = prompt.arguments.iter().find(|known| known.name == argument);
    known.map(|known| known.suggestions.to_vec()).ok_or_else(|| unknown_argument(prompt, argument))
}

fn find(name: Option<&Value>) -> Result<&'static Prompt, RpcError> {
    let name = name.and_then(Value::as_str).ok_or_else(|| RpcError::invalid_params("`name` must be a string"))?;
    PROMPTS
        .iter()
        .find(|prompt| prompt.name == name)
        .ok_or_else(|| RpcError::invalid_params(format!("unknown prompt `{name}`")))
}

fn check(prompt: &Prompt, given: &Map<String, Value>) -> Result<(), RpcError> {
    let required = prompt.arguments.iter().filter(|argument| argument.is_required);
    for Argument { name, .. } in required {
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

fn unknown_argument(prompt: &Prompt, argument: &str) -> RpcError {
    RpcError::invalid_params(format!("the prompt `{}` has no argument `{argument}`", prompt.name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[track_caller]
    fn check(name: &str, arguments: Value, expected: &str) {
        let params = json!({"name": name, "arguments": arguments});
        let found = match super::fill_in(params.as_object().unwrap()) {
            Ok(result) => result["messages"][0]["content"]["text"].to_string(),
            Err(error) => error.message,
        };
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn prompts_are_filled_in() {
        check("welcome", json!({"name": "Ada"}), "welcome Ada aboard");
        check("review", json!({"code": "fn", "language": "Rust"}), r"```rust\nfn\n```");
        check("review", json!({"code": "fn"}), r"```\nfn\n```");
        check("welcome", json!({}), "needs the argument `name`");
        check("welcome", json!({"name": 1}), "`name` must be a string");
        check("welcome", json!({"name": "", "x": ""}), "no argument `x`");
        check("farewell", json!({}), "unknown prompt `farewell`");
    }
}
