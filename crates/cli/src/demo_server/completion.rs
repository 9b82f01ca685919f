//! Completion: what to offer while somebody types an argument.

use serde_json::{Map, Value, json};

use super::message::RpcError;
use super::{prompts, resources};

/// Answers `completion/complete`: the known values that begin with what was typed, in any case.
pub fn complete(params: &Map<String, Value>) -> Result<Value, RpcError> {
    let part = |holder: &str, name: &str| params.get(holder).and_then(|holder| holder.get(name));
    let text = |holder: &str, name: &str| {
        let complaint = || RpcError::invalid_params(format!("`{holder}.{name}` must be a string"));
        part(holder, name).and_then(Value::as_str).ok_or_else(complaint)
    };
    let (argument, typed) = (text("argument", "name")?, text("argument", "value")?);
    let candidates = match text("ref", "type")? {
        "ref/prompt" => prompts::suggestions(part("ref", "name"), argument)?,
        "ref/resource" => berths(text("ref", "uri")?, argument)?,
        other => {
            let complaint = format!("unknown reference type `{other}`");
            return Err(RpcError::invalid_params(complaint));
        }
    };
    let begins = |candidate: &&str| candidate.to_lowercase().starts_with(&typed.to_lowercase());
    let values: Vec<_> = candidates.into_iter().filter(begins).collect();
    Ok(json!({"completion": {"total": values.len(), "values": values, "hasMore": false}}))
}

fn berths(template: &str, argument: &str) -> Result<Vec<&'static str>, RpcError> {
    if template != resources::DOCK_TEMPLATE {
        let complaint = format!("unknown resource template `{template}`");
        return Err(RpcError::invalid_params(complaint));
    }
    if argument != "berth" {
        let complaint = format!("the template `{template}` has no variable `{argument}`");
        return Err(RpcError::invalid_params(complaint));
    }
    Ok(resources::BERTHS.map(|(berth, _)| berth).into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[track_caller]
    fn check(reference: Value, argument: &str, typed: &str, expected: &str) {
        let params = json!({"ref": reference, "argument": {"name": argument, "value": typed}});
        let found = match super::complete(params.as_object().unwrap()) {
            Ok(result) => result["completion"]["values"].to_string(),
            Err(error) => error.message,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn values_that_begin_so_are_offered() {
        let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
        let template = |uri: &str| json!({"type": "ref/resource", "uri": uri});
        let dock = || template("demo://dock/{berth}");
        check(prompt("welcome"), "name", "a", r#"["Ada","Alan"]"#);
        check(prompt("review"), "language", "RU", r#"["Ruby","Rust"]"#);
        check(prompt("review"), "code", "", "[]");
        check(dock(), "berth", "west", r#"["west-1","west-2"]"#);
        check(dock(), "ship", "", "the template `demo://dock/{berth}` has no variable `ship`");
        check(template("x:y"), "berth", "", "unknown resource template `x:y`");
        check(prompt("farewell"), "name", "", "unknown prompt `farewell`");
        check(prompt("welcome"), "x", "", "the prompt `welcome` has no argument `x`");
        check(json!({"type": "ref/tool"}), "x", "", "unknown reference type `ref/tool`");
        check(json!({}), "x", "", "`ref.type` must be a string");
    }
}
