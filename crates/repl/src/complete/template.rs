//! Matching of a partially typed URI against a resource template.

/// Position of the typed text in a template.
#[derive(Debug, PartialEq, Eq)]
pub enum TemplatePosition<'a> {
    /// Inside literal text; holds the rest of the literal.
    Text(&'a str),
    /// Inside the value of a variable.
    Value(TemplateValue<'a>),
}

#[derive(Debug, PartialEq, Eq)]
pub struct TemplateValue<'a> {
    pub variable: &'a str,
    /// Text typed before the value.
    pub before: &'a str,
    /// The part of the value typed so far.
    pub value: &'a str,
    /// Literal text that follows the variable.
    pub after: &'a str,
    /// Values of the preceding variables.
    pub given: Vec<(String, String)>,
}

/// Returns the position of a typed text in a template, or `None` if it does not match.
pub fn template_position<'a>(template: &'a str, typed: &'a str) -> Option<TemplatePosition<'a>> {
    let (mut rest, mut text_end, mut given) = (typed, 0, Vec::new());
    loop {
        let text = &template[text_end..];
        let text = &text[..text.find('{').unwrap_or(text.len())];
        if text.starts_with(rest) && rest.len() < text.len() || text_end + text.len() == template.len() {
            return text.starts_with(rest).then(|| TemplatePosition::Text(&text[rest.len()..]));
        }
        rest = rest.strip_prefix(text)?;
        let open = text_end + text.len() + 1;
        let close = open + template[open..].find('}')?;
        let variable = variable_name(&template[open..close])?;
        let after = &template[close + 1..];
        let after = &after[..after.find('{').unwrap_or(after.len())];
        let Some(length) = rest.find(after).filter(|_| !after.is_empty()) else {
            let before = &typed[..typed.len() - rest.len()];
            return Some(TemplatePosition::Value(TemplateValue { variable, before, value: rest, after, given }));
        };
        given.push((variable.to_owned(), rest[..length].to_owned()));
        (rest, text_end) = (&rest[length..], close + 1);
    }
}

/// Returns the variable of an expression that is a single simple or reserved expansion (RFC 6570, levels 1 and 2).
fn variable_name(expression: &str) -> Option<&str> {
    let name = expression.strip_prefix('+').unwrap_or(expression);
    let plain = |letter: char| letter.is_alphanumeric() || "_.%".contains(letter);
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text(typed: &str, expected: Option<&str>) {
        let found = template_position("note://{city}/{+street}/end", typed);
        assert_eq!(found, expected.map(TemplatePosition::Text), "{typed}");
    }

    #[track_caller]
    fn check_value(typed: &str, variable: &str, value: &str, after: &str, given: &[(&str, &str)]) {
        let Some(TemplatePosition::Value(found)) = template_position("note://{city}/{+street}/end", typed) else {
            panic!("{typed}")
        };
        assert_eq!((found.variable, found.value, found.after), (variable, value, after), "{typed}");
        assert_eq!(format!("{}{}", found.before, found.value), typed);
        let given: Vec<(String, String)> =
            given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        assert_eq!(found.given, given);
    }

    #[test]
    fn typed_text_is_matched_against_a_template() {
        check_text("", Some("note://"));
        check_text("not", Some("e://"));
        check_text("other", None);
        check_value("note://", "city", "", "/", &[]);
        check_value("note://Par", "city", "Par", "/", &[]);
        check_value("note://Paris/", "street", "", "/end", &[("city", "Paris")]);
        check_value("note://Paris/Rue", "street", "Rue", "/end", &[("city", "Paris")]);
        check_text("note://Paris/Rue/end", Some(""));
    }

    #[test]
    fn unsupported_expressions_do_not_match() {
        assert_eq!(template_position("a://{?query}", "a://"), None);
        assert_eq!(template_position("a://{open", "a://"), None);
        assert_eq!(template_position("a://{a,b}", "a://"), None);
        assert_eq!(template_position("plain", "plain"), Some(TemplatePosition::Text("")));
        assert_eq!(template_position("plain", "plainer"), None);
    }
}
