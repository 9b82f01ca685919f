//! Supported MCP clients, their names and the locations of their files.

use std::path::{Path, PathBuf};

/// Another MCP client with a list of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExternalClient {
    /// Claude Code: `.mcp.json` and `~/.claude.json`.
    ClaudeCode,
    /// Claude Desktop, for stdio servers only.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// VS Code.
    VsCode,
    /// Codex, in TOML.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// goose, in YAML.
    Goose,
    /// Zed.
    Zed,
    /// Windsurf.
    Windsurf,
}

impl ExternalClient {
    /// All clients, in display order.
    pub const ALL: [Self; 10] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
        Self::Opencode,
        Self::Goose,
        Self::Zed,
        Self::Windsurf,
    ];

    /// Returns the client's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vs-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Goose => "goose",
            Self::Zed => "zed",
            Self::Windsurf => "windsurf",
        }
    }

    /// Returns the client with this name. Accepts `vscode` for `vs-code`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = if name == "vscode" { "vs-code" } else { name };
        Self::ALL.into_iter().find(|client| client.name() == name)
    }

    /// Returns the locations of the client's files, the project's before the user's.
    ///
    /// `os` has the form of `std::env::consts::OS`.
    pub fn files(self, home: &Path, project: &Path, os: &str) -> Vec<PathBuf> {
        let settings = application_settings(home, os);
        let at_home = |path: &str| home.join(path);
        let in_project = |path: &str| project.join(path);
        match self {
            Self::ClaudeCode => vec![in_project(".mcp.json"), at_home(".claude.json")],
            Self::ClaudeDesktop => vec![settings.join("Claude/claude_desktop_config.json")],
            Self::Cursor => vec![in_project(".cursor/mcp.json"), at_home(".cursor/mcp.json")],
            Self::VsCode => vec![
                in_project(".vscode/mcp.json"),
                settings.join("Code/User/mcp.json"),
                at_home(".copilot/mcp-config.json"),
            ],
            Self::Codex => vec![in_project(".codex/config.toml"), at_home(".codex/config.toml")],
            Self::Gemini => vec![in_project(".gemini/settings.json"), at_home(".gemini/settings.json")],
            Self::Opencode => vec![
                in_project("opencode.json"),
                in_project("opencode.jsonc"),
                at_home(".config/opencode/opencode.json"),
                at_home(".config/opencode/opencode.jsonc"),
            ],
            Self::Goose if os == "windows" => vec![settings.join("Block/goose/config/config.yaml")],
            Self::Goose => vec![at_home(".config/goose/config.yaml")],
            Self::Zed if os == "windows" => {
                vec![in_project(".zed/settings.json"), settings.join("Zed/settings.json")]
            }
            Self::Zed => vec![in_project(".zed/settings.json"), at_home(".config/zed/settings.json")],
            Self::Windsurf => vec![at_home(".codeium/windsurf/mcp_config.json")],
        }
    }
}

/// Returns the directory for application settings.
fn application_settings(home: &Path, os: &str) -> PathBuf {
    match os {
        "macos" => home.join("Library/Application Support"),
        "windows" => home.join("AppData/Roaming"),
        _ => home.join(".config"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_names_round_trip() {
        for client in ExternalClient::ALL {
            assert_eq!(ExternalClient::from_name(client.name()), Some(client));
        }
        assert_eq!(ExternalClient::from_name("vscode"), Some(ExternalClient::VsCode));
        assert_eq!(ExternalClient::from_name("Cursor"), None);
    }

    #[test]
    fn config_files_are_located_per_client_and_os() {
        for (client, os, expected) in [
            (ExternalClient::ClaudeCode, "linux", vec!["p/.mcp.json", "h/.claude.json"]),
            (ExternalClient::ClaudeDesktop, "linux", vec!["h/.config/Claude/claude_desktop_config.json"]),
            (
                ExternalClient::ClaudeDesktop,
                "macos",
                vec!["h/Library/Application Support/Claude/claude_desktop_config.json"],
            ),
            (ExternalClient::ClaudeDesktop, "windows", vec!["h/AppData/Roaming/Claude/claude_desktop_config.json"]),
            (ExternalClient::Goose, "windows", vec!["h/AppData/Roaming/Block/goose/config/config.yaml"]),
            (ExternalClient::Goose, "macos", vec!["h/.config/goose/config.yaml"]),
            (ExternalClient::Zed, "linux", vec!["p/.zed/settings.json", "h/.config/zed/settings.json"]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(PathBuf::from).collect();
            assert_eq!(client.files(Path::new("h"), Path::new("p"), os), expected, "{client:?} {os}");
        }
    }
}
