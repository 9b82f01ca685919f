//! `tools --search`: which tools are most like some words.
//!
//! Own scoring of a few lines rather than an index: a person's catalog is thousands of tools at most and is searched
//! once, and what matters is a promise that no statistics make. A tool of exactly that name comes first, more of the
//! words go before fewer, a word in the name goes before one in the description, and what matches nothing is not there.

/// What of a tool is searched.
pub struct Searched<'a> {
    pub server: &'a str,
    pub name: &'a str,
    pub texts: [Option<&'a str>; 2],
    pub arguments: Vec<&'a str>,
}

/// How well a tool fits; more is better, in this order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    exact: bool,
    /// How many of the words are found at all.
    words: usize,
    weight: u32,
}

/// The words of a search.
pub struct Query {
    whole: String,
    words: Vec<String>,
}

impl Query {
    pub fn new(text: &str) -> Self {
        Self { whole: words(text).join(" "), words: words(text) }
    }

    /// How well a tool fits; not at all, where none of the words is found.
    pub fn rank(&self, tool: &Searched<'_>) -> Option<Rank> {
        let name = words(tool.name);
        let server = words(tool.server);
        let described: Vec<String> = tool.texts.iter().flatten().flat_map(|text| words(text)).collect();
        let arguments: Vec<String> = tool.arguments.iter().flat_map(|argument| words(argument)).collect();
        let fields = [(&name, 30), (&described, 8), (&arguments, 4), (&server, 3)];
        let mut rank = Rank { exact: self.is_name(&name, &server), ..Rank::default() };
        for word in &self.words {
            let weight: u32 = fields.iter().map(|(field, weight)| weight * likeness(word, field) / 4).sum();
            rank.words += usize::from(weight > 0);
            rank.weight += weight;
        }
        (rank.exact || rank.words > 0).then_some(rank)
    }

    /// Whether it is the tool's own name, with or without its server's.
    fn is_name(&self, name: &[String], server: &[String]) -> bool {
        let name = name.join(" ");
        self.whole == name || self.whole == format!("{} {name}", server.join(" "))
    }
}

/// 4 where a field has the word, less where it has something like it.
fn likeness(word: &str, field: &[String]) -> u32 {
    let one = |other: &String| {
        let prefixed =
            word.len() >= 3 && (other.starts_with(word) || (other.len() >= 3 && word.starts_with(other.as_str())));
        match (other == word, prefixed, word.len() >= 4 && other.contains(word)) {
            (true, ..) => 4,
            (_, true, _) => 2,
            (.., true) => 1,
            _ => 0,
        }
    };
    field.iter().map(one).max().unwrap_or(0)
}

/// The words of a text in lower case, cut at whatever is no letter or digit and where `camelCase` has a hump.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for letter in text.chars().take(4_000) {
        let is_hump = letter.is_uppercase() && after_small;
        if (!letter.is_alphanumeric() || is_hump) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
        after_small = letter.is_lowercase() || letter.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [(&str, &str); 6] = [
        ("search", "Looks for text in issues and pull requests."),
        ("search_code", "Looks for text in files."),
        ("listIssues", "Shows the issues of a repository."),
        ("create_issue", "Opens something new to be done."),
        ("merge", "Merges a pull request."),
        ("wait", "Does nothing for a while."),
    ];

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let query = Query::new(text);
        let ranked = |(name, about): &(&'static str, &'static str)| {
            let searched = Searched { server: "hub", name, texts: [Some(*about), None], arguments: vec!["path"] };
            Some((query.rank(&searched)?, *name))
        };
        let mut found: Vec<(Rank, &str)> = TOOLS.iter().filter_map(ranked).collect();
        found.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
        assert_eq!(found.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn the_best_comes_first_and_the_rest_stays_away() {
        check("search", &["search", "search_code"]);
        check("hub.search", &["search", "search_code", "create_issue", "listIssues", "merge", "wait"]);
        check("list issues", &["listIssues", "create_issue", "search"]);
        check("pull request", &["merge", "search"]);
        check("nothing", &["wait"]);
        check("zebra", &[]);
        check("", &[]);
    }

    #[test]
    fn words_are_cut_at_humps_and_signs() {
        assert_eq!(words("readFile_v2 - HTTPServer.now!"), ["read", "file", "v2", "httpserver", "now"]);
    }
}
