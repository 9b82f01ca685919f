//! What a server's entry refers to without saying it: variables and secrets, by name and place.

use crate::configured::{Described, Oauth, Reach, Sited};
use crate::expand::{Part, parts};
use crate::place::Place;

/// Something an entry refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// What.
    pub to: Referred,
    /// Where the value stands that refers to it.
    pub place: Place,
}

/// What an entry can refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Referred {
    /// A variable.
    Variable {
        /// Its name.
        name: String,
        /// Whether there is something to take where it is not set.
        has_default: bool,
    },
    /// A variable that is handed down where it is set.
    HandedDown(String),
    /// A secret, by its name.
    Secret(String),
    /// A file of variables, as it is written.
    File(String),
}

impl Described {
    /// Everything it refers to, in the order of its keys. Each is named once, where it is first referred to.
    pub fn references(&self) -> Vec<Reference> {
        let mut found: Vec<Reference> = Vec::new();
        if self.expands {
            self.texts().into_iter().flat_map(named).for_each(|reference| add(&mut found, reference));
        }
        if let Reach::Stdio(stdio) = &self.reach {
            let handed = stdio.env_vars.iter().map(|name| (Referred::HandedDown(name.value.clone()), &name.place));
            let file = stdio.env_file.iter().map(|file| (Referred::File(file.value.clone()), &file.place));
            handed.chain(file).for_each(|(to, place)| add(&mut found, Reference { to, place: place.clone() }));
        }
        found
    }

    /// Whether it names the project's directory by `${project}`, so that it is approved for each project by itself.
    pub fn names_project(&self) -> bool {
        self.expands && self.texts().iter().any(|text| parts(&text.value).contains(&Part::Project))
    }

    /// Every text of it that is expanded.
    fn texts(&self) -> Vec<&Sited<String>> {
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

fn named(text: &Sited<String>) -> Vec<Reference> {
    let referred = parts(&text.value).into_iter().filter_map(|part| match part {
        Part::Variable { name, default } => {
            Some(Referred::Variable { name: name.to_owned(), has_default: default.is_some() })
        }
        Part::Secret(name) => Some(Referred::Secret(name.to_owned())),
        Part::Text(_) | Part::Project | Part::Foreign(_) | Part::Unclosed => None,
    });
    referred.map(|to| Reference { to, place: text.place.clone() }).collect()
}

fn add(found: &mut Vec<Reference>, reference: Reference) {
    if found.iter().all(|other| other.to != reference.to) {
        found.push(reference);
    }
}
