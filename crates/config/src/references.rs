//! Variables, secrets and files that a server's entry refers to.

use crate::configured::{Described, Oauth, Reach, SourcedValue};
use crate::expand::{Part, parts};
use crate::place::Place;

/// A reference in an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Target of the reference.
    pub to: ReferenceTarget,
    /// Location of the value that contains the reference.
    pub place: Place,
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

impl Described {
    /// Returns all references in key order. Each target is listed once, at its first occurrence.
    pub fn references(&self) -> Vec<Reference> {
        let mut found: Vec<Reference> = Vec::new();
        if self.expands {
            self.texts().into_iter().flat_map(named).for_each(|reference| add(&mut found, reference));
        }
        if let Reach::Stdio(stdio) = &self.reach {
            let handed =
                stdio.env_vars.iter().map(|name| (ReferenceTarget::HandedDown(name.value.clone()), &name.place));
            let file = stdio.env_file.iter().map(|file| (ReferenceTarget::File(file.value.clone()), &file.place));
            handed.chain(file).for_each(|(to, place)| add(&mut found, Reference { to, place: place.clone() }));
        }
        found
    }

    /// Reports whether the entry contains `${project}`. Such an entry needs an approval for each project.
    pub fn names_project(&self) -> bool {
        self.expands && self.texts().iter().any(|text| parts(&text.value).contains(&Part::Project))
    }

    /// Returns all texts that are expanded.
    fn texts(&self) -> Vec<&SourcedValue<String>> {
        match &self.reach {
            Reach::Stdio(stdio) => [&stdio.command]
                .into_iter()
                .chain(&stdio.args)
                .chain(&stdio.cwd)
                .chain(stdio.env.iter().map(|(_, value)| value))
                .chain(&stdio.env_file)
                .collect(),
            Reach::Http(http) => [&http.url]
                .into_iter()
                .chain(http.headers.iter().map(|(_, value)| value))
                .chain(&http.proxy)
                .chain(&http.ca)
                .chain(&http.client_cert)
                .chain(http.oauth.iter().flat_map(Oauth::texts))
                .collect(),
        }
    }
}

fn named(text: &SourcedValue<String>) -> Vec<Reference> {
    let referred = parts(&text.value).into_iter().filter_map(|part| match part {
        Part::Variable { name, default } => {
            Some(ReferenceTarget::Variable { name: name.to_owned(), has_default: default.is_some() })
        }
        Part::Secret(name) => Some(ReferenceTarget::Secret(name.to_owned())),
        Part::Text(_) | Part::Project | Part::Foreign(_) | Part::Unclosed => None,
    });
    referred.map(|to| Reference { to, place: text.place.clone() }).collect()
}

fn add(found: &mut Vec<Reference>, reference: Reference) {
    if found.iter().all(|other| other.to != reference.to) {
        found.push(reference);
    }
}
