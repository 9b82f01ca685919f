//! What a client can be asked.

use serde_json::{Map, Value, json};
use wharf::RawJson;
use wharf::wire::Revision;

use crate::tasks::TASKS_EXTENSION;

/// The questions that a client can answer, as it has declared. Clients of one class can use the same instance of a
/// server one after the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ClientClass {
    /// Shows forms to its user.
    pub forms: bool,
    /// Opens web pages for its user.
    pub pages: bool,
    /// Uses a model for the server.
    pub sampling: SamplingSupport,
    /// Says which directories the server may use.
    pub roots: bool,
}

/// The sampling that a client supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SamplingSupport {
    /// None.
    #[default]
    None,
    /// Messages.
    Messages,
    /// Messages, and tools for the model.
    Tools,
}

/// Whether a server makes tasks of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerTasks {
    Offered,
    None,
}

/// The method of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionMethod {
    Elicit,
    Sample,
    Roots,
}

impl QuestionMethod {
    pub fn parse(method: &str) -> Option<Self> {
        [Self::Elicit, Self::Sample, Self::Roots].into_iter().find(|known| known.as_str() == method)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation/create",
            Self::Sample => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }
}

impl ClientClass {
    /// Reads the capabilities that a client of this revision declares.
    pub fn from_capabilities(capabilities: &Value, revision: Revision) -> Self {
        let has = |path: &str| capabilities.pointer(path).is_some_and(Value::is_object);
        let elicits = revision >= Revision::V2025_06_18 && has("/elicitation");
        let has_modes = revision >= Revision::V2025_11_25;
        let pages = elicits && has_modes && has("/elicitation/url");
        // 2025-11-25 client/elicitation, "Capabilities": an empty object means forms.
        let forms = elicits && (has("/elicitation/form") || !pages);
        let sampling = match (has("/sampling"), has_modes && has("/sampling/tools")) {
            (false, _) => SamplingSupport::None,
            (true, false) => SamplingSupport::Messages,
            (true, true) => SamplingSupport::Tools,
        };
        Self { forms, pages, sampling, roots: has("/roots") }
    }

    /// Reports whether the client can be asked nothing.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Returns the capabilities in the words of 2026-07-28. The gateway follows tasks for every client.
    pub(crate) fn to_capabilities(self, tasks: ServerTasks) -> RawJson {
        let mut all = Map::new();
        if self.forms || self.pages {
            let modes = [(self.forms, "form"), (self.pages, "url")].into_iter().filter(|(has, _)| *has);
            all.insert("elicitation".to_owned(), modes.map(|(_, mode)| (mode.to_owned(), json!({}))).collect());
        }
        match self.sampling {
            SamplingSupport::None => {}
            SamplingSupport::Messages => drop(all.insert("sampling".to_owned(), json!({}))),
            SamplingSupport::Tools => drop(all.insert("sampling".to_owned(), json!({"tools": {}}))),
        }
        if self.roots {
            all.insert("roots".to_owned(), json!({}));
        }
        if tasks == ServerTasks::Offered {
            all.insert("extensions".to_owned(), json!({ TASKS_EXTENSION: {} }));
        }
        RawJson::new_unchecked(Value::Object(all).to_string())
    }

    /// Reports whether the client can answer a question with these parameters.
    pub(crate) fn can_answer(self, method: QuestionMethod, params: &Value) -> bool {
        match method {
            QuestionMethod::Elicit if params["mode"] == "url" => self.pages,
            QuestionMethod::Elicit => self.forms,
            QuestionMethod::Sample if params.get("tools").is_some() || params.get("toolChoice").is_some() => {
                self.sampling == SamplingSupport::Tools
            }
            QuestionMethod::Sample => self.sampling != SamplingSupport::None,
            QuestionMethod::Roots => self.roots,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(capabilities: Value, revision: Revision, expected: Value) {
        let class = ClientClass::from_capabilities(&capabilities, revision);
        assert_eq!(
            serde_json::from_str::<Value>(class.to_capabilities(ServerTasks::None).as_str()).unwrap(),
            expected,
            "{revision}"
        );
        assert_eq!(class.is_none(), expected == json!({}));
    }

    #[test]
    fn class_is_what_the_revision_knows_of_the_declaration() {
        use Revision::*;
        let form = json!({"elicitation": {"form": {}}});
        for (capabilities, revision, expected) in [
            (json!({}), V2025_11_25, json!({})),
            (json!({"elicitation": {}}), V2025_03_26, json!({})),
            (json!({"elicitation": {}}), V2025_06_18, form.clone()),
            (json!({"elicitation": {"url": {}}}), V2025_06_18, form.clone()),
            (json!({"elicitation": {"url": {}}}), V2025_11_25, json!({"elicitation": {"url": {}}})),
            (
                json!({"elicitation": {"form": {}, "url": {}}}),
                V2026_07_28,
                json!({"elicitation": {"form": {}, "url": {}}}),
            ),
            (json!({"sampling": {"tools": {}}}), V2025_06_18, json!({"sampling": {}})),
            (json!({"sampling": {"tools": {}}}), V2026_07_28, json!({"sampling": {"tools": {}}})),
            (
                json!({"sampling": {}, "roots": {"listChanged": true}}),
                V2024_11_05,
                json!({"sampling": {}, "roots": {}}),
            ),
            (json!({"elicitation": true, "sampling": [], "roots": null, "tasks": {}}), V2025_11_25, json!({})),
        ] {
            check(capabilities, revision, expected);
        }
    }

    #[test]
    fn question_needs_the_capability_of_its_mode() {
        let class = |capabilities: Value| ClientClass::from_capabilities(&capabilities, Revision::V2026_07_28);
        let (form, url) = (json!({"message": "m"}), json!({"mode": "url"}));
        let forms = class(json!({"elicitation": {}}));
        assert!(forms.can_answer(QuestionMethod::Elicit, &form) && !forms.can_answer(QuestionMethod::Elicit, &url));
        let messages = class(json!({"sampling": {}}));
        assert!(messages.can_answer(QuestionMethod::Sample, &json!({})));
        assert!(!messages.can_answer(QuestionMethod::Sample, &json!({"toolChoice": {}})));
        assert!(!messages.can_answer(QuestionMethod::Roots, &Value::Null));
    }
}
