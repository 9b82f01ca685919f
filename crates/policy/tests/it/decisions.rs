//! The decisions of `decisions.txt` and of the table in `docs/permissions.md`, each in every order of its rules.

use crate::block::{Block, blocks};
use wharf_policy::Policy;

const TABLE: &str = include_str!("decisions.txt");
const GUIDE: &str = include_str!("../../../../docs/permissions.md");

#[test]
fn every_table_row_gets_its_verdict() {
    let blocks = blocks(TABLE);
    let wrong: Vec<String> = blocks.iter().flat_map(check).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let rows: usize = blocks.iter().map(|block| block.rows.len()).sum();
    assert!(rows >= 300, "only {rows} rows");
}

/// Decides every row of a block with the rules as they stand and the other way round; tells what is wrong.
fn check(block: &Block) -> Vec<String> {
    let mut wrong = Vec::new();
    for rules in [block.rules.clone(), block.rules.iter().rev().cloned().collect()] {
        let policy = Policy::compile(rules, &block.servers);
        for row in &block.rows {
            let decision = policy.decide(&row.attempt());
            if decision.verdict != row.expected {
                wrong.push(format!(
                    "{} instead of {} for {}: {}",
                    decision.verdict, row.expected, row.text, decision.reason
                ));
            }
        }
    }
    wrong
}

#[test]
fn guide_examples_are_correct() {
    let mut examples = 0;
    for line in GUIDE.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [rules, call, verdict, ..] = cells[..] else { continue };
        let Some(verdict) = verdict.strip_prefix("**").and_then(|verdict| verdict.strip_suffix("**")) else { continue };
        let rules = rules.trim_matches('`').replace("`, `", "\n");
        let call = call.trim_matches('`');
        let wrong = check(&blocks(&format!("servers git fs\n{rules}\n= {verdict} {call}"))[0]);
        assert_eq!(wrong, Vec::<String>::new(), "{line}");
        examples += 1;
    }
    assert!(examples >= 10, "only {examples} examples");
}
