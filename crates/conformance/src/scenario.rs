//! Which scenario the suite plays, and what is to be done in it.

use std::error::Error;
use std::fmt;

use url::Url;
use wharf_client::Connection;

use crate::{Outcome, headers, schema, skills, tour};

/// What is to be done in each scenario. One that is not here fails: it must not pass by accident.
const TABLE: [(&str, Exercise); 15] = [
    ("initialize", Exercise::Tour),
    ("tools_call", Exercise::Tour),
    ("elicitation-sep1034-client-defaults", Exercise::Tour),
    ("sse-retry", Exercise::Tour),
    ("request-metadata", Exercise::Tour),
    ("sep-2322-client-request-state", Exercise::Tour),
    ("http-standard-headers", Exercise::Tour),
    ("http-invalid-tool-headers", Exercise::Tour),
    ("http-custom-headers", Exercise::GivenCalls),
    ("json-schema-ref-no-deref", Exercise::ReadSchemas),
    ("json-schema-2020-12-preservation", Exercise::EchoSchema),
    ("sep-2640-client-no-prefetch", Exercise::ListSkills),
    ("sep-2640-client-verify-digest", Exercise::RefuseSkill),
    ("sep-2640-client-verify-size", Exercise::RefuseSkill),
    ("sep-2640-client-verify-frontmatter", Exercise::RefuseSkill),
];

/// Something to do with a server that is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exercise {
    /// Uses everything the server offers.
    Tour,
    /// Makes the calls that the suite wants, and no others.
    GivenCalls,
    /// Lists the tools and makes something of their schemas, without calling any.
    ReadSchemas,
    /// Sends a tool's schema back as it came.
    EchoSchema,
    /// Lists the skills and reads none.
    ListSkills,
    /// Loads a skill that is not what its entry says.
    RefuseSkill,
}

/// One start of this program.
#[derive(Debug)]
pub struct Scenario {
    pub exercise: Exercise,
    pub server: Url,
    /// What the suite gives along, as JSON.
    pub context: Option<String>,
}

impl Scenario {
    /// Reads what the suite says: the server is the last argument, the rest is in variables.
    #[expect(clippy::disallowed_methods, reason = "this is the edge of the program, where the environment comes in")]
    pub fn from_environment() -> Outcome<Self> {
        let name = std::env::var("MCP_CONFORMANCE_SCENARIO");
        let name = name.map_err(|error| format!("MCP_CONFORMANCE_SCENARIO: {error}"))?;
        let exercise = Exercise::of(&name)?;
        let server = std::env::args().skip(1).last().ok_or("the server's URL is missing")?;
        let server = Url::parse(&server).map_err(|error| format!("`{server}` is no URL: {error}"))?;
        Ok(Self { exercise, server, context: std::env::var("MCP_CONFORMANCE_CONTEXT").ok() })
    }
}

impl Exercise {
    fn of(scenario: &str) -> Outcome<Self> {
        if scenario.starts_with("auth/") {
            return Err(NotBuilt.into());
        }
        let found = TABLE.iter().find(|(name, _)| *name == scenario);
        let found = found.map(|(_, exercise)| *exercise);
        found.ok_or_else(|| format!("nobody has looked at the scenario `{scenario}` yet").into())
    }

    /// Does it. Dropped while it waits, the call in flight is withdrawn.
    pub async fn perform(self, connection: &Connection, scenario: &Scenario) -> Outcome {
        match self {
            Self::Tour => tour::everything(connection).await,
            Self::GivenCalls => headers::given_calls(connection, scenario.context.as_deref()).await,
            Self::ReadSchemas => schema::read_all(connection).await,
            Self::EchoSchema => schema::echo(connection).await,
            Self::ListSkills => skills::list(connection).await,
            Self::RefuseSkill => skills::refuse(connection).await,
        }
    }
}

/// What a scenario of `auth/` is answered with.
#[derive(Debug)]
pub struct NotBuilt;

impl fmt::Display for NotBuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("login is not built yet")
    }
}

impl Error for NotBuilt {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_its_exercise() {
        for (name, expected) in [
            ("tools_call", Exercise::Tour),
            ("http-custom-headers", Exercise::GivenCalls),
            ("sep-2640-client-verify-size", Exercise::RefuseSkill),
        ] {
            assert_eq!(Exercise::of(name).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_played_says_why() {
        assert!(Exercise::of("auth/metadata-default").unwrap_err().is::<NotBuilt>());
        for name in ["tools_call_", ""] {
            let error = Exercise::of(name).unwrap_err();
            assert_eq!(error.to_string(), format!("nobody has looked at the scenario `{name}` yet"));
        }
    }
}
