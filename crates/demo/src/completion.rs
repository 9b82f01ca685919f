//! Completion of arguments.

use serde_json::{Map, Value, json};

use super::message::RpcError;
use super::port::HarbourView;
use super::revision::DemoRevision;
use super::{prompts, resources};

/// Answers `completion/complete` with the known values that start with the typed text, ignoring case.
///
/// # Errors
///
/// Fails with invalid params for an unknown reference or argument.
pub fn complete(params: &Map<String, Value>, revision: DemoRevision, view: HarbourView) -> Result<Value, RpcError> {
    let part = |holder: &str, name: &str| params.get(holder).and_then(|holder| holder.get(name));
    let text = |holder: &str, name: &str| {
        let complaint = || RpcError::invalid_params(format!("`{holder}.{name}` must be a string"));
        part(holder, name).and_then(Value::as_str).ok_or_else(complaint)
    };
    let (argument, typed) = (text("argument", "name")?, text("argument", "value")?);
    let none = Map::new();
    let context = part("context", "arguments").and_then(Value::as_object);
    let context = context.filter(|_| revision.has_completion_context()).unwrap_or(&none);
    let candidates = match text("ref", "type")? {
        "ref/prompt" => prompts::suggestions(part("ref", "name"), argument, context, view)?,
        "ref/resource" => template_values(text("ref", "uri")?, argument, context)?,
        other => {
            let complaint = format!("unknown reference type `{other}`");
            return Err(RpcError::invalid_params(complaint));
        }
    };
    let begins = |candidate: &&str| candidate.to_lowercase().starts_with(&typed.to_lowercase());
    let values: Vec<_> = candidates.into_iter().filter(begins).collect();
    Ok(json!({"completion": {"total": values.len(), "values": values, "hasMore": false}}))
}

fn template_values(
    template: &str,
    argument: &str,
    context: &Map<String, Value>,
) -> Result<Vec<&'static str>, RpcError> {
    let is_chosen = |side: &str| context.get("side").is_none_or(|chosen| chosen == side);
    let berths = resources::BERTHS.into_iter().map(|(berth, _)| berth);
    let mut values: Vec<_> = match (template, argument) {
        (resources::DOCK_TEMPLATE, "berth") => berths.collect(),
        (resources::QUAY_TEMPLATE, "side") => berths.filter_map(resources::split_berth).map(|(side, _)| side).collect(),
        (resources::QUAY_TEMPLATE, "no") => {
            let split = berths.filter_map(resources::split_berth);
            split.filter(|(side, _)| is_chosen(side)).map(|(_, number)| number).collect()
        }
        (resources::DOCK_TEMPLATE | resources::QUAY_TEMPLATE, _) => {
            let complaint = format!("the template `{template}` has no variable `{argument}`");
            return Err(RpcError::invalid_params(complaint));
        }
        _ => return Err(RpcError::invalid_params(format!("unknown resource template `{template}`"))),
    };
    values.sort_unstable();
    values.dedup();
    Ok(values)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{DemoRevision, HarbourView};

    fn values(reference: &Value, argument: &str, typed: &str, context: Value, revision: DemoRevision) -> String {
        let argument = json!({"name": argument, "value": typed});
        let params = json!({"ref": reference, "argument": argument, "context": {"arguments": context}});
        match super::complete(params.as_object().unwrap(), revision, HarbourView::default()) {
            Ok(result) => result["completion"]["values"].to_string(),
            Err(error) => error.message,
        }
    }

    #[track_caller]
    fn check(reference: Value, argument: &str, typed: &str, expected: &str) {
        assert_eq!(values(&reference, argument, typed, json!({}), DemoRevision::V2024_11_05), expected);
    }

    #[test]
    fn completions_match_the_prefix() {
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

    #[test]
    fn earlier_arguments_narrow_the_completions() {
        let tow = json!({"type": "ref/prompt", "name": "tow"});
        let quay = json!({"type": "ref/resource", "uri": "quay://{side}/{no}"});
        let ferry = json!({"ship": "the ferry Hourly"});
        let table = [
            (&tow, "berth", ferry, r#"["north-2"]"#),
            (&quay, "side", json!({}), r#"["east","north","west"]"#),
            (&quay, "no", json!({}), r#"["1","2","3"]"#),
            (&quay, "no", json!({"side": "east"}), r#"["1","2"]"#),
            (&quay, "no", json!({"side": "moon"}), "[]"),
        ];
        for (reference, argument, context, expected) in table {
            assert_eq!(values(reference, argument, "", context, DemoRevision::V2026_07_28), expected);
        }
        let unaware = values(&quay, "no", "", json!({"side": "east"}), DemoRevision::V2025_03_26);
        assert_eq!(unaware, r#"["1","2","3"]"#);
    }
}
