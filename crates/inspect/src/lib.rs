//! Detection of prompt injection in servers' definitions: orders to the model, secrecy, hidden text and similar.
//!
//! This is a lint: it is deterministic, reads every string of a definition and takes time linear in its length. It
//! withholds nothing itself; the catalog withholds a definition that [`is_quarantined`] until a person releases it. A
//! definition without findings is not proven harmless.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod encoded;
mod finding;
mod fold;
mod hidden;
mod lexicon;
mod markup;
mod phrases;
mod spelled_phrases;
mod walk;
mod words;

use std::sync::LazyLock;

use wharf_json::RawJson;
use wharf_wire::ToolDefinition;

pub use finding::{Finding, FindingLocation, FindingRule, FindingWeight};

use finding::FindingCollector;
use walk::StringPath;

/// Builds the lookup tables, so that the first inspection does not wait for them. Takes milliseconds.
pub fn prepare() {
    LazyLock::force(&lexicon::LEXICON);
    LazyLock::force(&spelled_phrases::PHRASE_AUTOMATON);
}

/// Inspects all members of a tool's definition.
pub fn inspect(tool: &ToolDefinition) -> Vec<Finding> {
    inspect_definition(&tool.raw)
}

/// Inspects any definition: a prompt, a resource, a template, the server itself.
///
/// Unknown members are inspected as well, and both values of a duplicate key. A definition that cannot be parsed is a
/// finding.
pub fn inspect_definition(definition: &RawJson) -> Vec<Finding> {
    let mut report = FindingCollector::default();
    let mut show = |spot: &StringPath, text: &str| {
        inspect_string(text, spot.is_name(), &mut |rule, weight, excerpt| {
            report.add(spot.location(), rule, weight, excerpt)
        });
    };
    if walk::visit_strings(definition, &mut show).is_err() {
        report.add(FindingLocation::Member(String::new()), FindingRule::Unreadable, FindingWeight::Certain, "");
    }
    report.findings
}

/// Inspects a single text, such as a server's instructions or an error message.
pub fn inspect_text(place: FindingLocation, text: &str) -> Vec<Finding> {
    let mut report = FindingCollector::default();
    let is_name = place == FindingLocation::Name;
    inspect_string(text, is_name, &mut |rule, weight, excerpt| report.add(place.clone(), rule, weight, excerpt));
    report.findings
}

/// Reports whether the findings suffice for quarantine: one certain finding, or two suspicions that confirm each other.
pub fn is_quarantined(findings: &[Finding]) -> bool {
    let suspicions: Vec<&Finding> =
        findings.iter().filter(|finding| finding.weight == FindingWeight::Suspect).collect();
    let is_borne_out = |finding: &&Finding| suspicions.iter().any(|other| finding.confirms(other));
    findings.iter().any(|finding| finding.weight == FindingWeight::Certain) || suspicions.iter().any(is_borne_out)
}

fn inspect_string(text: &str, is_name: bool, add: &mut FindingSink<'_>) {
    hidden::find_hidden(text, add);
    markup::find_markup(text, add);
    encoded::find_encoded(text, add);
    words::find_phrases(text, is_name, add);
}

/// Receives a finding: the rule, its certainty, and the excerpt of the text.
type FindingSink<'a> = dyn FnMut(FindingRule, FindingWeight, &str) + 'a;

#[cfg(test)]
mod tests;
