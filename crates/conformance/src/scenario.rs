//! Scenarios of the suite and the exercise for each.

use url::Url;
use wharf_client::Connection;

use crate::{ExerciseResult, full_usage, login, prescribed_calls, schema, skills};

/// Name prefix of scenarios whose server requires a login. The exercise after the login is the same in all of them.
const LOGIN_PREFIX: &str = "auth/";

/// Login scenarios with a defect that the client must detect. Logging in successfully fails the scenario.
const REFUSED_LOGINS: [&str; 7] = [
    "auth/scope-retry-limit",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// Exercise for every other scenario. An unlisted scenario fails, so that it cannot pass by accident.
const EXERCISES: [(&str, Exercise); 15] = [
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

/// Operations to perform on a connected server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exercise {
    /// Uses every capability that the server declares.
    Tour,
    /// Makes the calls prescribed by the suite, and no others.
    GivenCalls,
    /// Lists the tools and generates arguments from their schemas, without calling any.
    ReadSchemas,
    /// Sends a tool's schema back unchanged.
    EchoSchema,
    /// Lists the skills without reading any.
    ListSkills,
    /// Loads a skill that does not match its entry, and expects the mismatch to be detected.
    RefuseSkill,
    /// Expects the login to be rejected as untrusted or insufficient, at the latest by the first calls.
    BeRefused,
}

/// The scenario of one run of this program.
#[derive(Debug)]
pub struct Scenario {
    pub name: String,
    pub exercise: Exercise,
    pub server: Url,
    /// Extra input from the suite, as JSON.
    pub context: Option<String>,
}

impl Scenario {
    /// Reads the scenario from the arguments and the environment: the server URL is the last argument, the rest comes
    /// from environment variables.
    #[expect(clippy::disallowed_methods, reason = "this is the edge of the program, where the environment comes in")]
    pub fn from_environment() -> ExerciseResult<Self> {
        let name = std::env::var("MCP_CONFORMANCE_SCENARIO");
        let name = name.map_err(|error| format!("MCP_CONFORMANCE_SCENARIO: {error}"))?;
        let exercise = Exercise::for_scenario(&name)?;
        let server = std::env::args().skip(1).last().ok_or("missing argument: server URL")?;
        let server = Url::parse(&server).map_err(|error| format!("invalid server URL `{server}`: {error}"))?;
        Ok(Self { name, exercise, server, context: std::env::var("MCP_CONFORMANCE_CONTEXT").ok() })
    }
}

impl Scenario {
    /// Reports whether the server requires a login.
    pub fn requires_login(&self) -> bool {
        self.name.starts_with(LOGIN_PREFIX)
    }
}

impl Exercise {
    fn for_scenario(scenario: &str) -> ExerciseResult<Self> {
        if scenario.starts_with(LOGIN_PREFIX) {
            return Ok(if REFUSED_LOGINS.contains(&scenario) { Self::BeRefused } else { Self::Tour });
        }
        let found = EXERCISES.iter().find(|(name, _)| *name == scenario);
        let found = found.map(|(_, exercise)| *exercise);
        found.ok_or_else(|| format!("unknown scenario `{scenario}`").into())
    }

    /// Performs the exercise. Dropping the future cancels the request in flight.
    pub async fn run(self, connection: &Connection, scenario: &Scenario) -> ExerciseResult {
        match self {
            Self::Tour => full_usage::use_everything(connection).await,
            Self::GivenCalls => prescribed_calls::make_prescribed_calls(connection, scenario.context.as_deref()).await,
            Self::ReadSchemas => schema::decode_schemas(connection).await,
            Self::EchoSchema => schema::echo_schema(connection).await,
            Self::ListSkills => skills::list_skills(connection).await,
            Self::RefuseSkill => skills::expect_mismatches(connection).await,
            Self::BeRefused => login::expect_insufficient_login(connection).await,
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
            assert_eq!(Exercise::for_scenario(name).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn unknown_scenario_is_an_error() {
        for name in ["tools_call_", ""] {
            let error = Exercise::for_scenario(name).unwrap_err();
            assert_eq!(error.to_string(), format!("unknown scenario `{name}`"));
        }
    }
}
