//! How a client sees the servers of its project: its profile and its selection.

use std::time::Duration;

use wharf_config::{Config, GlobalSettings, ProfileSettings};
use wharf_gateway::{NameScheme, Profile, ToolSurface, ViewOptions};
use wharf_spec::{ActivationState, Glob, UntrustedText};
use wharf_terminal::config_context::server_problems_failure;
use wharf_terminal::failure::Failure;
use wharf_terminal::gateway_socket::ViewRequest;
use wharf_terminal::suggestions::suggestion;

/// Maximum time that a call waits for an answer of `wharf answer`.
const MAX_WAIT_FOR_ANSWER: Duration = Duration::from_mins(10);

/// Next step after a call that was refused at once, because its client cannot be asked.
const ASK_LATER_HINT: &str = "the user can add the rule to `permissions` of the configuration, or set \
                              `serve.waitForAnswerMs` there to have time to allow single calls with `wharf questions`";

/// Next step after a call that was not answered in time.
const ANSWER_HINT: &str = "the user can add the rule to `permissions` of the configuration, or allow single calls in time \
                           with `wharf questions`";

/// A view, and the principal it is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ServedView {
    pub request: ViewRequest,
    /// Principal of clients that have authenticated. The gateway decides it, not the client.
    pub principal: Option<String>,
}

impl From<ViewRequest> for ServedView {
    fn from(request: ViewRequest) -> Self {
        Self { request, principal: None }
    }
}

/// Finds a profile of the configuration.
///
/// # Errors
///
/// Fails if it does not exist or is invalid.
pub fn find_profile<'a>(settings: &'a GlobalSettings, name: &str) -> Result<&'a ProfileSettings, Failure> {
    let names = || settings.profiles.iter().map(|(name, _)| name.as_str());
    let Some((_, profile)) = settings.profiles.iter().find(|(known, _)| known == name) else {
        let failure = Failure::usage(format_args!("no profile named `{}`", UntrustedText::new(name)));
        return Err(match names().next() {
            Some(_) => failure.with_hint(suggestion(name, names())),
            None => failure.with_hint("add it to `profiles` in your configuration, for example {\"profiles\": {\"NAME\": {\"servers\": [\"git\"]}}}"),
        });
    };
    profile.as_ref().map_err(|problems| server_problems_failure(name, problems))
}

impl ServedView {
    fn profile<'a>(&self, config: &'a Config) -> Result<Option<&'a ProfileSettings>, Failure> {
        self.request.profile.as_deref().map(|name| find_profile(&config.settings, name)).transpose()
    }

    /// Returns the servers that have to run for this view. Empty means all.
    ///
    /// # Errors
    ///
    /// Fails if the profile does not exist, is invalid, or has no server.
    pub fn needed_servers(&self, config: &Config) -> Result<Vec<String>, Failure> {
        let Some(profile) = self.profile(config)?.filter(|profile| !profile.servers.is_empty()) else {
            return Ok(self.request.servers.clone());
        };
        let globs: Vec<Glob> = profile.servers.iter().map(|glob| Glob::new(glob)).collect();
        let selected = &self.request.servers;
        let is_needed = |name: &str| {
            globs.iter().any(|glob| glob.matches(name))
                && (selected.is_empty() || selected.iter().any(|known| known == name))
        };
        let enabled = config.servers.iter().filter(|server| server.activation() == ActivationState::Enabled);
        let names = enabled.map(|server| server.name.to_string());
        let needed: Vec<String> = names.filter(|name| is_needed(name)).collect();
        match needed.is_empty() {
            true => Err(Failure::usage("the profile has none of the enabled servers")),
            false => Ok(needed),
        }
    }

    /// Returns the view of a gateway.
    ///
    /// # Errors
    ///
    /// Fails if the profile does not exist or is invalid.
    pub fn options(&self, config: &Config) -> Result<ViewOptions, Failure> {
        let profile = self.profile(config)?.cloned().unwrap_or_default();
        let mut options = ViewOptions::default();
        options.names = match self.request.plain_names.or(profile.plain_names) {
            Some(true) => NameScheme::Plain,
            _ => NameScheme::Server,
        };
        options.profile = Profile::default()
            .with_servers(&profile.servers)
            .with_selected_servers(&self.request.servers)
            .with_tools(&profile.tools)
            .without_tools(&profile.exclude_tools);
        options.principal = self.principal.as_deref().map(Into::into);
        options.surface = if profile.searches_tools { ToolSurface::Search } else { ToolSurface::Tools };
        options.rule_set = self.request.profile.as_deref().map(Into::into);
        let wait = profile.wait_for_answer.or(config.settings.wait_for_answer).unwrap_or_default();
        options.unasked.wait = wait.min(MAX_WAIT_FOR_ANSWER);
        options.unasked.hint = Some(if wait.is_zero() { ASK_LATER_HINT } else { ANSWER_HINT }.into());
        Ok(options)
    }
}
