//! `/model`: shows the current model and the available ones, or switches.

use wharf_spec::UntrustedText;

use super::{CommandContext, ReplAction};
use wharf_terminal::failure::Failure;
use wharf_terminal::style::{GOOD, NAME, QUIET, paint};

pub fn run(model: Option<&str>, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    match model {
        Some(model) => Ok(ReplAction::Model(model.to_owned())),
        None => context.print(render_models(context.facts.model.as_deref(), &context.models().names())),
    }
}

/// Renders the current model and one line per available model.
fn render_models(used: Option<&str>, names: &[String]) -> String {
    let mut text = match used {
        Some(used) => format!("current model: {}\n", paint(NAME, UntrustedText::new(used))),
        None => "no model selected (everything but the conversation works)\n".to_owned(),
    };
    for name in names {
        let mark = if Some(name.as_str()) == used { paint(GOOD, "✓").to_string() } else { " ".to_owned() };
        text.push_str(&format!("  {mark} {}\n", UntrustedText::new(name.as_str())));
    }
    let hint = match names {
        [] => "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or `model` and `providers` in your configuration",
        _ => "/model MODEL switches to another model",
    };
    text.push_str(&format!("{}\n", paint(QUIET, hint)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_model_is_marked() {
        let names = ["anthropic/big".to_owned(), "local/small\u{1b}".to_owned()];
        for (used, names, expected) in [
            (
                Some("anthropic/big"),
                &names[..],
                "current model: anthropic/big\n  ✓ anthropic/big\n    local/small\\u{1b}\n/model MODEL",
            ),
            (None, &[], "no model selected (everything but the conversation works)\nset ANTHROPIC_API_KEY"),
        ] {
            let shown = anstream::adapter::strip_str(&render_models(used, names)).to_string();
            assert!(shown.starts_with(expected), "{shown}");
        }
    }
}
