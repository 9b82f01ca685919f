//! Which servers and tools the clients of a gateway may use.

use wharf::spec::{Glob, ServerName, ToolId};

/// The part of a host that a gateway offers. What it does not offer cannot be used either. The default offers
/// everything.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    servers: Vec<Glob>,
    selected_servers: Vec<String>,
    tools: Vec<Glob>,
    excluded_tools: Vec<Glob>,
}

impl Profile {
    /// Offers only servers that match one of these globs. Without globs, all.
    #[must_use]
    pub fn with_servers(mut self, globs: &[String]) -> Self {
        self.servers = parse(globs);
        self
    }

    /// Offers only these of the servers. Without names, all.
    #[must_use]
    pub fn with_selected_servers(mut self, names: &[String]) -> Self {
        self.selected_servers = names.to_vec();
        self
    }

    /// Offers only tools whose `<server>__<tool>` matches one of these globs. Without globs, all.
    #[must_use]
    pub fn with_tools(mut self, globs: &[String]) -> Self {
        self.tools = parse(globs);
        self
    }

    /// Does not offer tools whose `<server>__<tool>` matches one of these globs.
    #[must_use]
    pub fn without_tools(mut self, globs: &[String]) -> Self {
        self.excluded_tools = parse(globs);
        self
    }

    /// Reports whether clients may use a server: its tools, as far as they are offered, its resources and its prompts.
    pub fn offers_server(&self, server: &ServerName) -> bool {
        let name = server.as_str();
        let is_selected = self.selected_servers.is_empty() || self.selected_servers.iter().any(|known| known == name);
        is_selected && (self.servers.is_empty() || matches_any(&self.servers, name))
    }

    /// Reports whether clients may use a tool.
    pub fn offers_tool(&self, tool: &ToolId) -> bool {
        let name = format!("{}__{}", tool.server, tool.tool);
        self.offers_server(&tool.server)
            && (self.tools.is_empty() || matches_any(&self.tools, &name))
            && !matches_any(&self.excluded_tools, &name)
    }
}

fn parse(globs: &[String]) -> Vec<Glob> {
    globs.iter().map(|glob| Glob::new(glob)).collect()
}

fn matches_any(globs: &[Glob], name: &str) -> bool {
    globs.iter().any(|glob| glob.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_offered_by_server_and_globs() {
        let list = |words: &str| -> Vec<String> { words.split_whitespace().map(str::to_owned).collect() };
        for (profile, offered) in [
            (Profile::default(), "git__log git__push docs__read"),
            (Profile::default().with_servers(&list("g*")), "git__log git__push"),
            (Profile::default().with_selected_servers(&list("docs")), "docs__read"),
            (Profile::default().with_servers(&list("g*")).with_selected_servers(&list("docs")), ""),
            (Profile::default().with_tools(&list("git__l* docs__*")), "git__log docs__read"),
            (Profile::default().with_tools(&list("git__*")).without_tools(&list("*push")), "git__log"),
        ] {
            let tools = [("git", "log"), ("git", "push"), ("docs", "read")];
            let tools =
                tools.map(|(server, tool)| ToolId { server: ServerName::new(server).unwrap(), tool: tool.into() });
            let names = tools.iter().filter(|tool| profile.offers_tool(tool));
            let names: Vec<_> = names.map(|tool| format!("{}__{}", tool.server, tool.tool)).collect();
            assert_eq!(names, list(offered), "{profile:?}");
        }
    }
}
