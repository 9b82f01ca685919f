//! Poison in what servers say of themselves, found by reading: orders to the model, secrecy, hidden text and their kin.
//!
//! A lint and no more: it is deterministic, reads every string of a definition and takes time linear in its length. It
//! hides nothing by itself; whoever keeps the catalog withholds what [`is_quarantined`], until a person releases it. A
//! definition without findings is not thereby harmless.

#![forbid(unsafe_code)]

mod encoded;
mod finding;
mod fold;
mod hidden;
mod lexicon;
mod markup;
mod phrases;
mod spelt;
mod walk;
mod words;

use std::sync::LazyLock;

use wharf_json::Raw;
use wharf_wire::ToolDefinition;

pub use finding::{Finding, FindingRule, Place, Weight};

use finding::Report;
use walk::Spot;

/// Makes the tables that reading goes by, so that the first definition does not wait for them. Takes milliseconds.
pub fn prepare() {
    LazyLock::force(&lexicon::LEXICON);
    LazyLock::force(&spelt::MACHINE);
}

/// Reads a tool's definition, every member of it, and says what looks like poison.
pub fn inspect(tool: &ToolDefinition) -> Vec<Finding> {
    inspect_definition(&tool.raw)
}

/// Reads the definition of anything that has one: a prompt, a resource, a template, the server itself.
///
/// Members that nobody knows are read as well, and of a key that stands twice both values. What cannot be read is a
/// finding.
pub fn inspect_definition(definition: &Raw) -> Vec<Finding> {
    let mut report = Report::default();
    let mut show = |spot: &Spot, text: &str| {
        read(text, spot.is_name(), &mut |rule, weight, excerpt| report.add(spot.place(), rule, weight, excerpt));
    };
    if walk::every_string(definition, &mut show).is_err() {
        report.add(Place::Member(String::new()), FindingRule::Unreadable, Weight::Certain, "");
    }
    report.findings
}

/// Reads one text that stands alone, such as a server's instructions or an error message.
pub fn inspect_text(place: Place, text: &str) -> Vec<Finding> {
    let mut report = Report::default();
    let is_name = place == Place::Name;
    read(text, is_name, &mut |rule, weight, excerpt| report.add(place.clone(), rule, weight, excerpt));
    report.findings
}

/// Whether what was found is enough to withhold the thing: one certain finding, or two suspicions that bear each other
/// out.
pub fn is_quarantined(findings: &[Finding]) -> bool {
    let suspicions: Vec<&Finding> = findings.iter().filter(|finding| finding.weight == Weight::Suspect).collect();
    let is_borne_out = |finding: &&Finding| suspicions.iter().any(|other| finding.bears_out(other));
    findings.iter().any(|finding| finding.weight == Weight::Certain) || suspicions.iter().any(is_borne_out)
}

fn read(text: &str, is_name: bool, add: &mut Add<'_>) {
    hidden::read(text, add);
    markup::read(text, add);
    encoded::read(text, add);
    words::read(text, is_name, add);
}

/// Where a reader puts what it found: the rule, how sure it is, and the part of the text that shows it.
type Add<'a> = dyn FnMut(FindingRule, Weight, &str) + 'a;

#[cfg(test)]
mod tests;
