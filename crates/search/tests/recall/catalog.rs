//! What real servers offer, as it was recorded.

use std::collections::BTreeSet;

use serde::Deserialize;
use wharf_json::RawJson;
use wharf_search::{SearchableTool, ToolIndex, schema_arguments};

/// The tools of all servers.
pub struct Catalog {
    pub tools: Vec<Tool>,
}

/// One tool of one server.
pub struct Tool {
    pub server: String,
    pub name: String,
    pub title: Option<String>,
    pub text: String,
    pub arguments: Vec<(String, String)>,
}

/// A server's answer to `tools/list`.
#[derive(Deserialize)]
struct Recorded {
    tools: Vec<RecordedTool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedTool {
    name: String,
    title: Option<String>,
    #[serde(default)]
    description: String,
    input_schema: serde_json::Value,
}

impl Catalog {
    /// The servers of npm and PyPI that the tests run.
    pub fn real() -> Self {
        let recorded = [
            ("everything", include_str!("everything.json")),
            ("filesystem", include_str!("filesystem.json")),
            ("git", include_str!("git.json")),
            ("memory", include_str!("memory.json")),
            ("time", include_str!("time.json")),
        ];
        Self { tools: recorded.into_iter().flat_map(|(server, text)| tools(server, text)).collect() }
    }

    pub fn index(&self) -> ToolIndex {
        let arguments: Vec<Vec<(&str, &str)>> = self.tools.iter().map(Tool::arguments).collect();
        ToolIndex::build(self.tools.iter().zip(&arguments).map(|(tool, arguments)| SearchableTool {
            provider: &tool.server,
            name: &tool.name,
            aliases: &[],
            title: tool.title.as_deref(),
            text: &tool.text,
            arguments,
        }))
    }

    /// Every word of every name and description, once.
    pub fn words(&self) -> BTreeSet<String> {
        let texts = self.tools.iter().flat_map(|tool| [tool.name.as_str(), tool.text.as_str()]);
        let words = texts.flat_map(|text| text.split(|letter: char| !letter.is_alphanumeric()));
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    }
}

impl Tool {
    fn arguments(&self) -> Vec<(&str, &str)> {
        self.arguments.iter().map(|(name, said)| (name.as_str(), said.as_str())).collect()
    }
}

fn tools(server: &str, text: &str) -> Vec<Tool> {
    let Recorded { tools } = serde_json::from_str(text).unwrap();
    let tool = |tool: RecordedTool| Tool {
        server: server.to_owned(),
        name: tool.name,
        title: tool.title,
        text: tool.description,
        arguments: schema_arguments(&RawJson::from_value(&tool.input_schema).unwrap()),
    };
    tools.into_iter().map(tool).collect()
}
