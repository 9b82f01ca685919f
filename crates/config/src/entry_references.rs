//! Variables, secrets and files that a server's entry refers to.

use crate::expand::{TemplatePart, parse_template};
use crate::location::SourceLocation;
use crate::server_definition::{OauthDefinition, ServerDefinition, SourcedValue, TransportDefinition};

/// A reference in an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigReference {
    /// Target of the reference.
    pub to: ReferenceTarget,
    /// Location of the value that contains the reference.
    pub place: SourceLocation,
}

/// Target of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferenceTarget {
    /// A variable.
    Variable {
        /// Name of the variable.
        name: String,
        /// Set if the reference has a default.
        has_default: bool,
    },
    /// A variable that is inherited if it is set.
    HandedDown(String),
    /// A secret, by name.
    Secret(String),
    /// An env file, as written.
    File(String),
}

impl ServerDefinition {
    /// Returns all references in key order. Each target is listed once, at its first occurrence.
    pub fn references(&self) -> Vec<ConfigReference> {
        let mut found: Vec<ConfigReference> = Vec::new();
        if self.expands {
            self.expandable_texts()
                .into_iter()
                .flat_map(text_references)
                .for_each(|reference| add_unique(&mut found, reference));
        }
        if let TransportDefinition::Stdio(stdio) = &self.reach {
            let handed =
                stdio.env_vars.iter().map(|name| (ReferenceTarget::HandedDown(name.value.clone()), &name.place));
            let file = stdio.env_file.iter().map(|file| (ReferenceTarget::File(file.value.clone()), &file.place));
            handed
                .chain(file)
                .for_each(|(to, place)| add_unique(&mut found, ConfigReference { to, place: place.clone() }));
        }
        found
    }

    /// Reports whether the entry contains `${project}`. Such an entry needs an approval for each project.
    pub fn refers_to_project(&self) -> bool {
        self.expands
            && self.expandable_texts().iter().any(|text| parse_template(&text.value).contains(&TemplatePart::Project))
    }

    /// Returns all texts that are expanded.
    fn expandable_texts(&self) -> Vec<&SourcedValue<String>> {
        match &self.reach {
            TransportDefinition::Stdio(stdio) => [&stdio.command]
                .into_iter()
                .chain(&stdio.args)
                .chain(&stdio.cwd)
                .chain(stdio.env.iter().map(|(_, value)| value))
                .chain(&stdio.env_file)
                .collect(),
            TransportDefinition::Http(http) => [&http.url]
                .into_iter()
                .chain(http.headers.iter().map(|(_, value)| value))
                .chain(&http.headers_command)
                .chain(&http.proxy)
                .chain(&http.ca)
                .chain(&http.client_cert)
                .chain(http.oauth.iter().flat_map(OauthDefinition::texts))
                .collect(),
        }
    }
}

fn text_references(text: &SourcedValue<String>) -> Vec<ConfigReference> {
    let referred = parse_template(&text.value).into_iter().filter_map(|part| match part {
        TemplatePart::Variable { name, default } => {
            Some(ReferenceTarget::Variable { name: name.to_owned(), has_default: default.is_some() })
        }
        TemplatePart::Secret(name) => Some(ReferenceTarget::Secret(name.to_owned())),
        TemplatePart::Text(_) | TemplatePart::Project | TemplatePart::Foreign(_) | TemplatePart::Unclosed => None,
    });
    referred.map(|to| ConfigReference { to, place: text.place.clone() }).collect()
}

fn add_unique(found: &mut Vec<ConfigReference>, reference: ConfigReference) {
    if found.iter().all(|other| other.to != reference.to) {
        found.push(reference);
    }
}
