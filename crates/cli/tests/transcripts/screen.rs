//! What is left to see on a terminal.

/// Takes the escapes out and lets what was overwritten go: a carriage return or a wiped line begins the line anew.
pub fn screen(shown: &str) -> String {
    let mut done = String::new();
    let mut line = String::new();
    let mut letters = shown.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' => {
                done.push_str(&line);
                done.push('\n');
                line.clear();
            }
            '\r' if letters.peek() != Some(&'\n') => line.clear(),
            '\r' | '\u{7}' => {}
            '\u{1b}' => skip_escape(&mut letters),
            other => line.push(other),
        }
    }
    done + &line
}

/// A sequence ends with a letter, a title with a bell; nothing else is used.
fn skip_escape(letters: &mut impl Iterator<Item = char>) {
    match letters.next() {
        Some('[') => while letters.next().is_some_and(|letter| !('@'..='~').contains(&letter)) {},
        Some(']') => while letters.next().is_some_and(|letter| letter != '\u{7}') {},
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::screen;

    #[test]
    fn only_what_stays_is_seen() {
        for (shown, expected) in [
            ("plain\r\nlines\r\n", "plain\nlines\n"),
            ("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m no\r\n", "error: no\n"),
            ("starting…\r\u{1b}[2Kdone\r\n", "done\n"),
            ("\u{1b}]0;title\u{7}x", "x"),
        ] {
            assert_eq!(screen(shown), expected, "{shown:?}");
        }
    }
}
