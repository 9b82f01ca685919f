//! `wharf tools`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wharf_client::{CallError, Connection, Listing};
use wharf_wire::{Raw, ServerCapabilities, ToolDefinition};

use super::list::{Listed, list};
use crate::failure::Outcome;
use crate::servers::ManyServers;
use crate::session::{Common, Session};
use crate::table::Row;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tools --stdio \"wharf demo-server\"
  wharf tools --stdio \"uvx mcp-server-git\" --stdio \"npx -y @modelcontextprotocol/server-everything\"
  wharf tools --json --stdio \"wharf demo-server\" | jq '.items[].name'")]
pub struct Args {
    #[command(flatten)]
    servers: ManyServers,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    list::<ToolDefinition>(session, &args.servers).await
}

/// A tool as programs see it; schemas and annotations byte for byte.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    server: &'a str,
    name: &'a str,
    alias: String,
    title: Option<&'a str>,
    description: Option<&'a str>,
    input_schema: Option<&'a Raw>,
    output_schema: Option<&'a Raw>,
    annotations: Option<&'a RawValue>,
}

/// What the view of a tool decodes but a document wants as it came.
#[derive(Deserialize, Default)]
#[serde(default)]
struct AsItCame<'a> {
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

impl Listed for ToolDefinition {
    const NOUNS: (&'static str, &'static str) = ("tool", "tools");

    fn is_offered(offer: &ServerCapabilities) -> bool {
        offer.tools
    }

    async fn list(connection: &Connection) -> Result<Listing<Self>, CallError> {
        connection.list_tools().await
    }

    fn row(&self) -> Row {
        let title = (self.display_name() != self.name).then(|| self.display_name());
        Row::new(&self.name, self.description.as_deref().or(title))
    }

    fn item<'a>(&'a self, server: &'a str) -> impl Serialize + 'a {
        let AsItCame { annotations } = serde_json::from_str(self.raw.get()).unwrap_or_default();
        Item {
            server,
            name: &self.name,
            alias: format!("mcp__{server}__{}", self.name),
            title: self.title.as_deref(),
            description: self.description.as_deref(),
            input_schema: self.input_schema.as_ref(),
            output_schema: self.output_schema.as_ref(),
            annotations,
        }
    }
}
