//! The help of `wharf` itself: its commands in groups, by task.

use anstream::adapter::strip_str;
use clap::Command;

use super::command_groups;
use super::entry::CommandEntry;

/// End of the short help.
pub const SEE_MORE: &str = "\
`wharf` alone starts a conversation. `wharf help COMMAND` explains a command, `wharf help` adds examples and \
exit codes.";

/// End of the long help.
pub const EXAMPLES: &str = "\
`wharf` alone starts a conversation. `wharf help COMMAND` explains a command.

Examples:
  wharf demo
  wharf tools --stdio \"npx -y @example/server\"
  wharf call echo text=ahoy --stdio \"wharf demo-server\"

Exit codes: 0 success, 1 other failure, 2 usage, 3 server unreachable or off-protocol, 4 login needed, 5 denied, \
6 the tool or server returned an error, 7 timed out, 130 interrupted.";

/// Returns the command with a help text that groups its commands.
pub fn with_groups(wharf: &Command) -> Command {
    let (commands, options) = (grouped_commands(wharf), options(wharf));
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}\n\n{options}{{after-help}}");
    wharf.clone().help_template(template)
}

/// Renders the commands in the order of the groups, with a heading above the first command of each group.
fn grouped_commands(wharf: &Command) -> String {
    let groups = command_groups();
    let text = wharf.clone().help_template("{subcommands}").render_help().ansi().to_string();
    let header = wharf.get_styles().get_header();
    let (mut grouped, mut current) = (String::new(), None);
    for line in text.trim_end().lines() {
        let group = group_of_line(&groups, line);
        if let Some(heading) = group.filter(|_| group != current) {
            let gap = if current.is_some() { "\n" } else { "" };
            grouped.push_str(&format!("{gap}{header}{heading}:{header:#}\n"));
            current = group;
        }
        grouped.push_str(line);
        grouped.push('\n');
    }
    grouped.trim_end().to_owned()
}

/// Returns the group of the command that a line of clap's list begins with. `None` for a continuation line.
fn group_of_line(groups: &[(&'static str, Vec<CommandEntry>)], line: &str) -> Option<&'static str> {
    let line = strip_str(line).to_string();
    let name = line.strip_prefix("  ")?.split(' ').next()?;
    let group = groups.iter().find(|(_, commands)| commands.iter().any(|entry| entry.name() == name));
    group.map(|(heading, _)| *heading)
}

/// Renders the options under their headings.
fn options(wharf: &Command) -> String {
    let bare = Command::new("wharf").version(env!("CARGO_PKG_VERSION")).args(wharf.get_arguments().cloned());
    let text = bare.help_template("{all-args}").render_help().ansi().to_string();
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Cli;

    #[test]
    fn the_help_has_every_group_once_and_in_order() {
        for width in [60, 80, 200] {
            let help = with_groups(&Cli::definition().term_width(width)).render_long_help().to_string();
            let lines: Vec<&str> = help.lines().collect();
            let mut groups = Vec::from(command_groups());
            assert_eq!(groups.pop().map(|(heading, _)| heading), Some("Hidden"));
            let found = groups.iter().map(|(heading, commands)| {
                let at: Vec<usize> = (0..lines.len()).filter(|at| lines[*at] == format!("{heading}:")).collect();
                let [at] = at[..] else { panic!("{heading} at {at:?} in {help}") };
                let first = lines[at + 1].split_whitespace().next();
                assert_eq!(first, Some(commands[0].name()), "{help}");
                at
            });
            assert!(found.is_sorted(), "{help}");
            assert!(help.contains("\nExamples:\n  wharf demo\n") && help.contains("\nOutput:\n"), "{help}");
        }
    }
}
