//! Names offered by servers, as used for completion.

use wharf::Host;
use wharf::catalog::Section;

/// Completable names, per server.
#[derive(Debug, Default)]
pub struct CompletableNames(pub Vec<ServerNames>);

/// Names offered by one server. Untrusted, except for the server's name.
#[derive(Debug, Default)]
pub struct ServerNames {
    pub name: String,
    /// Tool names as displayed.
    pub tools: Vec<String>,
    /// Tool names as `server.tool`.
    pub joined_tools: Vec<String>,
    pub prompts: Vec<PromptNames>,
    pub resources: Vec<String>,
    pub templates: Vec<String>,
}

#[derive(Debug, Default)]
pub struct PromptNames {
    pub name: String,
    pub arguments: Vec<String>,
}

impl CompletableNames {
    /// Collects the names currently in a host's catalog.
    pub fn from_host(host: &Host) -> Self {
        let catalog = host.catalog();
        let server = |name: String| match catalog.section(&name) {
            // Names denied by rules are not offered, and their server is not asked for argument values.
            Some(section) if host.denial_of(&name).is_some() => ServerNames {
                prompts: Vec::new(),
                resources: Vec::new(),
                templates: Vec::new(),
                ..ServerNames::from_section(section, name)
            },
            Some(section) => ServerNames::from_section(section, name),
            None => ServerNames { name, ..ServerNames::default() },
        };
        Self(host.status().into_iter().map(|status| server(status.name.to_string())).collect())
    }

    pub fn server(&self, name: &str) -> Option<&ServerNames> {
        self.0.iter().find(|server| server.name == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|server| server.name.as_str())
    }

    /// Returns the named server, or all servers without a name.
    pub fn matching_servers<'a>(&'a self, name: Option<&'a str>) -> impl Iterator<Item = &'a ServerNames> {
        self.0.iter().filter(move |server| name.is_none_or(|name| server.name == name))
    }
}

impl ServerNames {
    fn from_section(section: &Section, name: String) -> Self {
        let prompts = section.prompts.iter().map(|prompt| PromptNames {
            name: prompt.name.clone(),
            arguments: prompt.arguments.iter().map(|argument| argument.name.clone()).collect(),
        });
        Self {
            joined_tools: section.tools.iter().map(|tool| format!("{name}.{}", tool.id.tool)).collect(),
            name,
            tools: section.tools.iter().map(|tool| tool.description.shown.to_string()).collect(),
            prompts: prompts.collect(),
            resources: section.resources.iter().map(|resource| resource.uri.clone()).collect(),
            templates: section.templates.iter().map(|template| template.uri_template.clone()).collect(),
        }
    }

    pub fn prompt(&self, name: &str) -> Option<&PromptNames> {
        self.prompts.iter().find(|prompt| prompt.name == name)
    }
}
