//! Pretty-printing of JSON that preserves every token.

/// Maximum indentation depth.
const MAX_INDENT_DEPTH: usize = 24;

/// Puts each member of a JSON text on its own line. Nothing is decoded, so numbers, escapes, order and duplicate
/// members stay visible. A string continues on a new line after each `\
/// ` escape.
pub fn indent_json(json: &str) -> String {
    let mut setting = JsonIndenter { text: String::with_capacity(json.len() * 2), depth: 0 };
    let (mut in_string, mut is_escaped) = (false, false);
    for letter in json.chars() {
        if in_string {
            setting.push_in_string(letter, is_escaped);
            in_string = is_escaped || letter != '"';
            is_escaped = !is_escaped && letter == '\\';
        } else {
            setting.push_outside_string(letter);
            in_string = letter == '"';
        }
    }
    setting.text
}

struct JsonIndenter {
    text: String,
    depth: usize,
}

impl JsonIndenter {
    fn push_in_string(&mut self, letter: char, is_escaped: bool) {
        self.text.push(letter);
        if is_escaped && letter == 'n' {
            self.new_line(1);
        }
    }

    fn push_outside_string(&mut self, letter: char) {
        match letter {
            '{' | '[' => {
                self.text.push(letter);
                self.depth += 1;
                self.new_line(0);
            }
            '}' | ']' => self.close(letter),
            ',' => {
                self.text.push(letter);
                self.new_line(0);
            }
            ':' => self.text.push_str(": "),
            ' ' | '\t' | '\n' | '\r' => {}
            _ => self.text.push(letter),
        }
    }

    /// Closes an object or array. An empty one stays on one line.
    fn close(&mut self, letter: char) {
        self.depth = self.depth.saturating_sub(1);
        self.text.truncate(self.text.trim_end().len());
        if !self.text.ends_with(['{', '[']) {
            self.new_line(0);
        }
        self.text.push(letter);
    }

    fn new_line(&mut self, deeper: usize) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth.min(MAX_INDENT_DEPTH) + deeper));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_preserved() {
        for (json, expected) in [
            ("{}", "{}"),
            (r#" { } "#, "{}"),
            ("7", "7"),
            (r#"{"a":1,"a":1.50}"#, "{\n  \"a\": 1,\n  \"a\": 1.50\n}"),
            (
                r#"{"a":[],"b":[1,{"c":"x, {y}: [z]"}]}"#,
                "{\n  \"a\": [],\n  \"b\": [\n    1,\n    {\n      \"c\": \"x, {y}: [z]\"\n    }\n  ]\n}",
            ),
            (r#"{"a":"one\ntwo \"q\" \\n\u0022"}"#, "{\n  \"a\": \"one\\n\n    two \\\"q\\\" \\\\n\\u0022\"\n}"),
        ] {
            assert_eq!(indent_json(json), expected);
        }
    }

    #[test]
    fn indent_depth_is_bounded() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(indent_json(&deep).len() < 20_000 * 60);
    }
}
