use super::*;

/// Returns a tool of the server `hub`.
fn tool<'a>(name: &'a str, text: &'a str) -> SearchableTool<'a> {
    SearchableTool { provider: "hub", name, aliases: &[], title: None, text, arguments: &[("path", "")] }
}

const TOOLS: [(&str, &str); 6] = [
    ("search", "Looks for text in issues and pull requests."),
    ("search_code", "Looks for text in files."),
    ("listIssues", "Shows the issues of a repository."),
    ("create_issue", "Opens something new to be done."),
    ("merge", "Merges a pull request."),
    ("wait", "Does nothing for a while."),
];

fn hit_names<'a>(tools: &[SearchableTool<'a>], query: &str) -> Vec<&'a str> {
    let hits = ToolIndex::build(tools.iter().copied()).search(query, usize::MAX);
    assert!(hits.is_sorted_by(|one, other| one.score >= other.score), "{hits:?}");
    hits.into_iter().map(|hit| tools[hit.at].name).collect()
}

#[test]
fn best_match_is_first_and_unrelated_tools_are_omitted() {
    let tools = TOOLS.map(|(name, text)| tool(name, text));
    for (query, expected) in [
        ("search", &["search", "search_code"][..]),
        ("hub.search", &["search", "search_code"]),
        ("list issues", &["listIssues", "create_issue", "search"]),
        ("open a ticket", &["create_issue", "listIssues", "search"]),
        ("pull request", &["merge", "search"]),
        ("repo", &["listIssues"]),
        ("nothing", &["wait"]),
        ("iss", &["listIssues", "create_issue", "search"]),
        ("zebra", &[]),
        ("what is the", &[]),
        ("", &[]),
    ] {
        assert_eq!(hit_names(&tools, query), expected, "{query}");
    }
}

#[test]
fn name_is_matched_in_every_spelling() {
    let mut tools = TOOLS.map(|(name, text)| tool(name, text));
    tools[3].aliases = &["mcp__hub__create_issue", "make_ticket_9f3c"];
    for (query, expected) in [
        ("create_issue", "create_issue"),
        ("createIssue", "create_issue"),
        ("CREATE-ISSUE", "create_issue"),
        ("createissue", "create_issue"),
        ("hub.create_issue", "create_issue"),
        ("hub::create_issue", "create_issue"),
        ("hub/create_issue", "create_issue"),
        ("create_issue@hub", "create_issue"),
        ("mcp__hub__create_issue", "create_issue"),
        ("mcp__Hub__CreateIssue", "create_issue"),
        ("make_ticket_9f3c", "create_issue"),
        ("search for issues with `list_issues`, please", "listIssues"),
        ("  merge ", "merge"),
    ] {
        assert_eq!(hit_names(&tools, query).first(), Some(&expected), "{query}");
    }
}

#[test]
fn exact_spelling_ranks_first_among_similar_names() {
    let names = ["readfile", "read_file", "readFile", "READ_FILE"];
    let tools = names.map(|name| tool(name, "Reads."));
    for name in names {
        assert_eq!(hit_names(&tools, name)[0], name);
        assert_eq!(hit_names(&tools, name).len(), names.len());
    }
    let strange = ["+", "__", "日本語", "say \"hi\""].map(|name| tool(name, ""));
    for tool in &strange {
        assert_eq!(hit_names(&strange, tool.name).first(), Some(&tool.name));
    }
}

#[test]
fn ranking_weighs_name_title_description_arguments() {
    let blank = SearchableTool { arguments: &[], ..tool("x", "") };
    let tools = [
        SearchableTool { name: "argument", arguments: &[("tide", "")], ..blank },
        SearchableTool { name: "text", text: "tide", ..blank },
        SearchableTool { name: "title", title: Some("tide"), ..blank },
        SearchableTool { name: "tide", ..blank },
    ];
    let query = "tides of today";
    assert_eq!(hit_names(&tools, query), ["tide", "title", "text", "argument"]);
}

#[test]
fn keyword_stuffing_does_not_improve_rank() {
    let stuffed = "search issue list create merge code pull request file text ".repeat(1000);
    let named = "search_list_create_merge_code_pull_request_file_text_issue_".repeat(4);
    let mut tools: Vec<SearchableTool<'_>> = TOOLS.iter().map(|(name, text)| tool(name, text)).collect();
    let arguments = [("a", stuffed.as_str())];
    tools.push(SearchableTool { title: Some(&named), arguments: &arguments, ..tool(&named, &stuffed) });
    for (query, best) in [
        ("search", "search"),
        ("search the code", "search_code"),
        ("list the issues", "listIssues"),
        ("create an issue", "create_issue"),
        ("merge a pull request", "merge"),
    ] {
        assert_eq!(hit_names(&tools, query).first(), Some(&best), "{query}");
    }
}

#[test]
fn long_queries_are_truncated() {
    let tools = TOOLS.map(|(name, text)| tool(name, text));
    let long = "zebra ".repeat(100_000) + "merge";
    assert_eq!(hit_names(&tools, &long), [""; 0]);
    assert_eq!(hit_names(&tools, &"é".repeat(10_000)), [""; 0]);
    assert_eq!(ToolIndex::build([]).search("anything", 5), []);
    assert_eq!(ToolIndex::build(tools).search("search issues", 1).len(), 1);
}
