//! Formats paths for display.

use std::path::Path;

use wharf_spec::{Environment, UntrustedText};

/// Returns a path relative to the working directory or to the home directory if it is below, escaped.
pub fn display_path(path: &Path, environment: &Environment) -> String {
    let home = environment.var("HOME").map(Path::new).filter(|home| home.is_absolute());
    let text = match (path.strip_prefix(&environment.cwd), home.and_then(|home| path.strip_prefix(home).ok())) {
        (Ok(below), _) if !below.as_os_str().is_empty() => below.display().to_string(),
        (_, Some(below)) => format!("~/{}", below.display()),
        _ => path.display().to_string(),
    };
    UntrustedText::new(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_cwd_or_home() {
        let environment = Environment { env: vec![("HOME".into(), "/home/me".into())], cwd: "/home/me/work".into() };
        for (path, expected) in [
            ("/home/me/work/.mcp.json", ".mcp.json"),
            ("/home/me/.config/wharf/config.json", "~/.config/wharf/config.json"),
            ("/home/meander/x", "/home/meander/x"),
            ("/etc/x\u{1b}", "/etc/x\\u{1b}"),
            ("WHARF_MCP_SERVERS", "WHARF_MCP_SERVERS"),
        ] {
            assert_eq!(display_path(Path::new(path), &environment), expected);
        }
    }
}
