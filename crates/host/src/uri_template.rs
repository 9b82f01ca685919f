//! Matching of a URI against an RFC 6570 template that a server lists.
//!
//! Levels 1 to 4 are matched by the characters that each kind of expression can produce; values are not decoded. The
//! cost is bounded: a match that takes too many steps counts as a mismatch, so that the person is prompted.

/// Maximum length of a template, and maximum number of steps for one URI over all templates.
const MAX_TEMPLATE: usize = 4 << 10;
const MAX_STEPS: usize = 2_000_000;

/// Reports whether a URI matches one of the templates.
///
/// A template that does not begin with a scheme matches nothing, because it would match any text.
pub(crate) fn matches_any<'a>(uri: &str, templates: impl IntoIterator<Item = &'a str>) -> bool {
    let mut steps = MAX_STEPS;
    templates.into_iter().any(|template| matches_template(uri, template, &mut steps))
}

/// A piece of a template.
enum UriTemplatePiece<'a> {
    Literal(&'a str),
    Expression(UriTemplateExpression<'a>),
}

/// An expression in braces.
struct UriTemplateExpression<'a> {
    /// First character of a nonempty expansion.
    first: Option<char>,
    /// Characters that end the expansion.
    stops: &'static str,
    /// Names allowed before `=` in a query, if they are restricted.
    names: Option<Vec<&'a str>>,
}

fn matches_template(uri: &str, template: &str, steps: &mut usize) -> bool {
    let begins_alike = || uri.starts_with(template.split('{').next().unwrap_or_default());
    if template.len() > MAX_TEMPLATE || !begins_with_scheme(template) || !begins_alike() {
        return false;
    }
    let Some(pieces) = parse_pieces(template) else { return false };
    // Offsets that the pieces so far can reach.
    let mut reached = vec![false; uri.len() + 1];
    reached[0] = true;
    for piece in &pieces {
        let Some(left) = steps.checked_sub(uri.len() / 4) else { return false };
        *steps = left;
        let mut next = vec![false; uri.len() + 1];
        for at in (0..=uri.len()).filter(|at| reached[*at]) {
            let taken = match piece {
                UriTemplatePiece::Literal(text) => {
                    next[at + text.len().min(uri.len() - at)] |= uri[at..].starts_with(text);
                    text.len()
                }
                UriTemplatePiece::Expression(expression) => {
                    expression.match_lengths(&uri[at..], |length| next[at + length] = true)
                }
            };
            let Some(left) = steps.checked_sub(taken + 1) else { return false };
            *steps = left;
        }
        reached = next;
    }
    reached[uri.len()]
}

/// Reports whether a template begins with a literal scheme.
fn begins_with_scheme(template: &str) -> bool {
    let scheme = template.split(['{', ':']).next().unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    template[scheme.len()..].starts_with(':')
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(fits)
}

/// Returns the pieces of a template, or `None` if its braces do not match.
fn parse_pieces(template: &str) -> Option<Vec<UriTemplatePiece<'_>>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        let (inside, behind) = after.split_once('}')?;
        if literal.contains('}') || inside.contains('{') {
            return None;
        }
        pieces.push(UriTemplatePiece::Literal(literal));
        pieces.push(UriTemplatePiece::Expression(UriTemplateExpression::parse(inside)?));
        rest = behind;
    }
    pieces.push(UriTemplatePiece::Literal(rest));
    (!rest.contains('}')).then_some(pieces)
}

impl<'a> UriTemplateExpression<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let operator = text.chars().next().filter(|first| "+#./;?&".contains(*first));
        let variables: Vec<&str> = text[operator.map_or(0, char::len_utf8)..].split(',').collect();
        if variables.iter().any(|variable| variable.is_empty()) {
            return None;
        }
        let is_list = variables.len() > 1 || variables.iter().any(|variable| variable.ends_with('*'));
        let explodes = variables.iter().any(|variable| variable.ends_with('*'));
        let name = |variable: &&'a str| variable.split([':', '*']).next().unwrap_or_default();
        let (first, stops) = match operator {
            None => (None, "/?#"),
            Some('+') => (None, ""),
            Some('#') => (Some('#'), ""),
            Some('/') if is_list => (Some('/'), "?#"),
            Some(first @ ('.' | '/' | ';')) => (Some(first), "/?#"),
            Some(first) => (Some(first), "#"),
        };
        let names = (matches!(operator, Some('?' | '&')) && !explodes).then(|| variables.iter().map(name).collect());
        Some(Self { first, stops, names })
    }

    /// Reports every length that an expansion can have at the beginning of a text. Returns the number of steps taken.
    fn match_lengths(&self, text: &str, mut report: impl FnMut(usize)) -> usize {
        // An undefined variable expands to nothing.
        report(0);
        let mut rest = text;
        if let Some(first) = self.first {
            match text.strip_prefix(first) {
                Some(after) => rest = after,
                None => return 1,
            }
        }
        let skipped = text.len() - rest.len();
        let mut key = 0;
        for (at, letter) in rest.char_indices() {
            if self.stops.contains(letter) {
                return at + 1;
            }
            let end = at + letter.len_utf8();
            match (&self.names, letter) {
                (Some(_), '&') if key == usize::MAX => key = end,
                (Some(_), '&') => return at + 1,
                (Some(names), '=') if key <= at => {
                    if !names.contains(&&rest[key..at]) {
                        return at + 1;
                    }
                    // A value follows, up to the next name.
                    key = usize::MAX;
                    report(skipped + end);
                }
                (Some(_), _) if key != usize::MAX => {}
                _ => report(skipped + end),
            }
        }
        rest.len() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_match_only_expansions_of_their_template() {
        for (template, uri, expected) in [
            ("note://{name}", "note://one", true),
            ("note://{name}", "note://a%20b", true),
            ("note://{name}", "note://one/two", false),
            ("note://{name}", "note://one?q=1", false),
            ("note://{name}", "Note://one", false),
            ("note://{name}/end", "note://one/end", true),
            ("note://{name}/end", "note://one/end2", false),
            ("note://{a}-{b}", "note://x-y-z", true),
            ("note://{a,b}", "note://x,y", true),
            ("file:///{+path}", "file:///etc/passwd", true),
            ("file:///{+path}", "http://x/", false),
            ("file://{/path*}", "file:///a/b", true),
            ("file://{/name}", "file:///a", true),
            ("file://{/name}", "file:///a/b", false),
            ("x:page{#part}", "x:page#top", true),
            ("x:page{#part}", "x:page", true),
            ("x:page{#part}", "x:pagetop", false),
            ("x:file{.kind}", "x:file.txt", true),
            ("x:m{;a,b}", "x:m;a=1;b=2", true),
            ("x:find{?q,limit}", "x:find?q=a&limit=2", true),
            ("x:find{?q,limit}", "x:find", true),
            ("x:find{?q,limit}", "x:find?secret=a", false),
            ("x:find{?q}", "x:find?q=a&secret=b", false),
            ("x:find{?q}", "x:find?secret&q=b", false),
            ("x:find{?q*}", "x:find?any=a", true),
            ("x:find?fixed=1{&q}", "x:find?fixed=1&q=a", true),
            ("x:{name:3}", "x:abc", true),
            ("x:{ü}", "x:ü€", true),
            // A template without a literal scheme would match anything.
            ("{+uri}", "file:///etc/passwd", false),
            ("{scheme}:{+rest}", "file:///etc/passwd", false),
            ("x{+rest}", "x:y", false),
            // Unbalanced braces are not a template.
            ("x:{", "x:{", false),
            ("x:}", "x:}", false),
            ("x:{}", "x:", false),
            ("x:{a{b}}", "x:1", false),
            ("x:plain", "x:plain", true),
            ("x:plain", "x:plain2", false),
        ] {
            assert_eq!(matches_any(uri, [template]), expected, "{template} {uri}");
        }
        assert!(matches_any("b:1", ["a:{x}", "b:{x}"]));
        assert!(!matches_any("b:1", []));
    }

    #[test]
    fn costly_match_is_abandoned() {
        let uri = format!("x:{}", "a?&=".repeat(2 << 10));
        let templates = vec![format!("x:{}!", "{+a}{?b*}".repeat(300)); 200];
        let began = std::time::Instant::now();
        assert!(!matches_any(&uri, templates.iter().map(String::as_str)));
        assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    }
}
