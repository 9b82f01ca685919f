//! Which scenario the suite plays, and what is to be done in it.

use url::Url;
use wharf_client::Connection;

use crate::{Outcome, headers, login, schema, skills, tour};

/// Scenarios of servers that want a login. What comes after it is the same in all of them.
const PROTECTED: &str = "auth/";

/// Those of them in which something is wrong that has to be noticed: whoever gets in has failed.
const REFUSED: [&str; 7] = [
    "auth/scope-retry-limit",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// What is to be done in each other scenario. One that is not here fails: it must not pass by accident.
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
    /// Finds out, at the latest with the first call, that the login cannot be trusted or is not enough.
    BeRefused,
}

/// One start of this program.
#[derive(Debug)]
pub struct Scenario {
    pub name: String,
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
        Ok(Self { name, exercise, server, context: std::env::var("MCP_CONFORMANCE_CONTEXT").ok() })
    }
}

impl Scenario {
    /// Whether the server wants a login.
    pub fn is_protected(&self) -> bool {
        self.name.starts_with(PROTECTED)
    }
}

impl Exercise {
    fn of(scenario: &str) -> Outcome<Self> {
        if scenario.starts_with(PROTECTED) {
            return Ok(if REFUSED.contains(&scenario) { Self::BeRefused } else { Self::Tour });
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
            Self::BeRefused => login::be_refused(connection).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_its_exercise() {
        for (name, expected) in [
            ("tools_call", Exercise::Tour),
            ("http-custom-headers", Exercise::GivenCalls),
            ("auth/metadata-default", Exercise::Tour),
            ("auth/iss-normalized", Exercise::BeRefused),
            ("sep-2640-client-verify-size", Exercise::RefuseSkill),
        ] {
            assert_eq!(Exercise::of(name).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_played_says_why() {
        for name in ["tools_call_", ""] {
            let error = Exercise::of(name).unwrap_err();
            assert_eq!(error.to_string(), format!("nobody has looked at the scenario `{name}` yet"));
        }
    }
}
