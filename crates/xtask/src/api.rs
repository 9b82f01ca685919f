//! `cargo xtask api`, part of `lint`: the public API of the libraries that programs embed, compared with the recorded one.
//!
//! Reads the pages that rustdoc has written: `all.html` lists the items, each item's page has its declaration, its
//! methods and its trait implementations.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::run::{TaskResult, root, say, target};

/// The packages whose API is recorded.
const PACKAGES: [&str; 2] = ["wharf", "wharf-client"];
/// Maximum number of items of one package. More means that the pages were misread.
const MAX_ITEMS: usize = 2000;
/// Maximum number of changed lines to print.
const MAX_SHOWN_CHANGES: usize = 60;
/// Set to any value, it makes this check record the API instead of comparing it.
const REWRITE_VARIABLE: &str = "WHARF_REWRITE";

/// Compares the API of each package with `evidence/api/<package>.txt`, or records it.
pub fn check() -> TaskResult {
    let mut changes = String::new();
    for package in PACKAGES {
        let found = describe(package, &target().join("doc").join(package.replace('-', "_")))?;
        let file = root().join("evidence/api").join(format!("{package}.txt"));
        if std::env::var_os(REWRITE_VARIABLE).is_some() {
            fs::create_dir_all(root().join("evidence/api"))?;
            fs::write(&file, found)?;
            say!("recorded the API of {package} in {}", file.display());
            continue;
        }
        let recorded = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        changes.push_str(&diff(&recorded, &found));
    }
    if changes.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the public API differs from the recorded one (- recorded, + now):\n{changes}\
         next: if the change is intended, run `{REWRITE_VARIABLE}=1 cargo xtask api`, review evidence/api with \
         `git diff`, and commit it with the change"
    )
    .into())
}

/// Returns the API of a package: each item with its declaration, methods and implementations indented below it.
fn describe(package: &str, pages: &Path) -> TaskResult<String> {
    let read = |page: &str| {
        let path = pages.join(page);
        fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let list = read("all.html")?;
    let items: Vec<(&str, String)> = links(&list).collect();
    if items.is_empty() || items.len() > MAX_ITEMS {
        return Err(format!("{} items on the pages of {package}: rustdoc's format has changed", items.len()).into());
    }
    let mut api =
        format!("Public API of {package}, read from rustdoc. Recorded by `WHARF_REWRITE=1 cargo xtask api`.\n");
    let index = read("index.html")?;
    for reexport in sections(&index, "<dl class=\"item-table reexports\">", "</dl>").iter().flatten() {
        let _ = writeln!(api, "\n{reexport}");
    }
    for (page, path) in items {
        let _ = writeln!(api, "\n{package}::{path}");
        for line in item_lines(&read(page)?) {
            let _ = writeln!(api, "    {line}");
        }
    }
    Ok(api)
}

/// Returns the page and the path of each listed item.
fn links(list: &str) -> impl Iterator<Item = (&str, String)> {
    let list = list.split_once("<h1>").map_or("", |(_, list)| list);
    list.split("<li><a href=\"").skip(1).filter_map(|link| {
        let (page, rest) = link.split_once('"')?;
        let (_, rest) = rest.split_once('>')?;
        Some((page, rest.split_once("</a>")?.0.to_owned()))
    })
}

/// Returns the lines of an item: its declaration, then its methods and constants, then its trait implementations.
fn item_lines(page: &str) -> Vec<String> {
    let page = ["id=\"synthetic-implementations\"", "id=\"blanket-implementations\""]
        .iter()
        .fold(page, |page, mark| page.split_once(mark).map_or(page, |(before, _)| before));
    let (own, traits) = page.split_once("id=\"trait-implementations\"").unwrap_or((page, ""));
    let declaration = sections(own, "<pre class=\"rust item-decl\">", "</pre>").into_iter().flatten();
    let methods = ["<section id=\"method.", "<section id=\"associatedconstant."].into_iter();
    let methods = methods.flat_map(|mark| headers(own, mark, "<h4 class=\"code-header\">", "</h4>"));
    let mut impls = headers(traits, "<section id=\"impl-", "<h3 class=\"code-header\">", "</h3>");
    impls.sort();
    declaration.chain(methods).chain(impls).collect()
}

/// Returns the text of the header in each section that begins with the mark, on one line.
fn headers(page: &str, mark: &str, open: &str, close: &str) -> Vec<String> {
    let parts = page.split(mark).skip(1).filter_map(|part| sections(part, open, close).into_iter().next());
    parts.map(|lines| join_lines(&lines)).collect()
}

/// Joins the lines of a signature, which rustdoc breaks by their length.
fn join_lines(lines: &[String]) -> String {
    let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    words.join(" ").replace("( ", "(").replace(", )", ")")
}

/// Returns the lines of text of each part of a page between two marks.
fn sections(page: &str, open: &str, close: &str) -> Vec<Vec<String>> {
    let parts = page.split(open).skip(1).filter_map(|part| part.split_once(close));
    parts.map(|(part, _)| text_lines(part)).collect()
}

/// Returns the text of a piece of HTML, without its tags and without the labels of collapsed parts.
fn text_lines(html: &str) -> Vec<String> {
    let (mut text, mut rest) = (String::new(), html);
    while let Some((before, tagged)) = rest.split_once('<') {
        text.push_str(before);
        let (tag, after) = tagged.split_once('>').unwrap_or((tagged, ""));
        let is_label = tag.starts_with("summary");
        rest = if is_label { after.split_once("</summary>").map_or("", |(_, after)| after) } else { after };
        if matches!(tag, "/div" | "/dt") {
            text.push('\n');
        }
    }
    text.push_str(rest);
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    let text = text.replace("&nbsp;", " ").replace('ⓘ', "").replace("&amp;", "&");
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns the lines that only one of two descriptions has, each with its item. Empty if they are equal.
fn diff(recorded: &str, found: &str) -> String {
    let (recorded, found) = (with_items(recorded), with_items(found));
    let missing = |lines: &[(String, String)], other: &[(String, String)], sign: char| {
        let other: HashSet<_> = other.iter().collect();
        let only = lines.iter().filter(|line| !other.contains(line));
        only.map(|(item, line)| format!("{sign} {item}: {}\n", line.trim_start())).collect::<Vec<_>>()
    };
    let mut changes = missing(&recorded, &found, '-');
    changes.extend(missing(&found, &recorded, '+'));
    if changes.is_empty() && recorded != found {
        changes.push("the order of the items or of their parts\n".to_owned());
    }
    let more = changes.len().saturating_sub(MAX_SHOWN_CHANGES);
    changes.truncate(MAX_SHOWN_CHANGES);
    if more > 0 {
        changes.push(format!("and {more} more lines\n"));
    }
    changes.concat()
}

/// Returns each line of a description with the item above it.
fn with_items(api: &str) -> Vec<(String, String)> {
    let mut item = "";
    let lines = api.lines().filter(|line| !line.is_empty()).map(|line| {
        if !line.starts_with(' ') {
            item = line;
        }
        (item.to_owned(), line.to_owned())
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<pre class=\"rust item-decl\"><code><div class=\"code-attribute\">#[non_exhaustive]</div>\
        pub struct Host {<details><summary>Show 1 field</summary>\n    pub name: <a href=\"x\">Option</a>&lt;u8&gt;,\n}\
        </details></code></pre><section id=\"method.call\" class=\"method\"><h4 class=\"code-header\">pub async fn \
        <a>call</a>(\n    &amp;self,\n    tool: &amp;str,\n) -&gt; u8</h4></section>\
        <h2 id=\"trait-implementations\"><section id=\"impl-Clone-for-Host\"><h3 class=\"code-header\">impl Clone for \
        Host</h3></section><section id=\"method.clone\"><h4 class=\"code-header\">fn clone()</h4></section>\
        <h2 id=\"synthetic-implementations\"><section id=\"impl-Send-for-Host\"><h3 class=\"code-header\">impl Send\
        </h3></section>";

    #[test]
    fn a_page_gives_declaration_methods_and_implementations() {
        let lines = item_lines(PAGE);
        let expected = [
            "#[non_exhaustive]",
            "pub struct Host {",
            "    pub name: Option<u8>,",
            "}",
            "pub async fn call(&self, tool: &str) -> u8",
            "impl Clone for Host",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_list_gives_pages_and_paths() {
        let list = "<li><a href=\"x\">no</a><h1>All</h1><li><a href=\"a/struct.B.html\">a::B</a></li>";
        assert_eq!(links(list).collect::<Vec<_>>(), [("a/struct.B.html", "a::B".to_owned())]);
    }

    #[test]
    fn a_difference_names_the_item() {
        let (before, after) = ("A\n    x\n\nB\n    y\n", "A\n    x\n\nB\n    z\n");
        assert_eq!(diff(before, after), "- B: y\n+ B: z\n");
        assert_eq!(diff(before, before), "");
    }

    #[test]
    fn a_missing_page_is_an_error_with_its_path() {
        let error = describe("wharf", Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/all.html"), "{error}");
    }
}
