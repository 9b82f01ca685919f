//! Skills of a server (`io.modelcontextprotocol/skills`, SEP-2640): listed, and loaded on request.
//!
//! Files are read on demand: listing reads none, loading reads only `SKILL.md`, and every other file is read when
//! requested. Content is returned only if it matches the entry that the user could approve. A match proves that content
//! and entry agree, not that either can be trusted.

mod content;
mod error;
mod front_matter;
mod label;

use std::sync::atomic::{AtomicU64, Ordering};

use wharf_spec::UntrustedText;
use wharf_wire::{RawJson, Skill, SkillFile, SkillFiles, View, object_members};

pub use content::SkillContent;
pub use error::{SkillError, SkillMismatch};
pub use label::skill_labels;

use crate::connection::Connection;
use crate::engine::RawResult;
use crate::error::CallError;
use crate::flow::{ListKind, Listing, list_all};
use crate::options::RequestOptions;

/// Maximum files of one skill (SEP-2640, limits).
const MAX_FILES: usize = 512;
/// Maximum bytes of all files of one skill (SEP-2640, limits).
const MAX_SKILL_BYTES: u64 = 16 << 20;

const SKILLS: ListKind = ListKind { method: "skills/list", key: "skills", what: "skills" };

/// A skill whose `SKILL.md` matches its entry. Only files listed in that entry are read.
#[derive(Debug)]
pub struct LoadedSkill {
    /// Configured name of the server. Together with the URI it identifies the skill.
    pub server: String,
    /// The entry the skill was loaded from.
    pub entry: Skill,
    /// The content of `SKILL.md`: untrusted instructions. Its `allowed-tools` grants nothing.
    pub text: String,
    /// Bytes read so far of a skill without listed sizes.
    read: AtomicU64,
}

impl LoadedSkill {
    /// Reports whether the files are verified by digests. A dynamic skill has none.
    pub fn is_verified(&self) -> bool {
        matches!(self.entry.files, SkillFiles::Listed(_))
    }
}

impl Connection {
    /// Lists the skills without reading their files. A server may have skills that are not listed.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn list_skills(&self) -> Result<Listing<Skill>, CallError> {
        self.check_capability("skills/list")?;
        list_all(self, SKILLS).await
    }

    /// Returns the current entry of one skill by the URI of its `SKILL.md`, listed or not.
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// [`Connection::list_skills`] is called in the same way. See [`Connection`](Connection#example) for an example.
    pub async fn get_skill(&self, uri: &str) -> Result<Skill, CallError> {
        self.check_capability("skills/list")?;
        let params = RawJson::from_value(&serde_json::json!({ "uri": uri }));
        let params = params.map_err(|error| CallError::Invalid(error.to_string()))?;
        let answer = self.request("skills/get", Some(&params), RequestOptions::default()).await?;
        let skill = self.decode_entry(answer)?;
        if skill.uri != uri {
            return Err(CallError::Protocol("result describes a different skill".to_owned()));
        }
        Ok(skill)
    }

    /// Loads a skill: reads its `SKILL.md` and verifies size, digest and front matter against the entry. For a dynamic
    /// skill only the front matter can be verified.
    ///
    /// # Errors
    ///
    /// Returns a [`SkillError`] if the file cannot be read, exceeds a limit or does not match the entry.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// [`Connection::list_skills`] returns the entries. See [`Connection`](Connection#example) for an example.
    pub async fn load_skill(&self, skill: &Skill) -> Result<LoadedSkill, SkillError> {
        self.check_capability("skills/list")?;
        let mut loaded = LoadedSkill {
            server: self.facts().name.clone(),
            entry: skill.clone(),
            text: String::new(),
            read: AtomicU64::new(0),
        };
        check_limits(skill)?;
        let SkillContent { bytes, .. } = self.read_skill_file(&loaded, "SKILL.md").await?;
        let text = String::from_utf8(bytes).map_err(|_| SkillError::content(&skill.uri, "not valid UTF-8"))?;
        front_matter::verify_front_matter(skill, &text, &self.limits().bounds)?;
        loaded.text = text;
        Ok(loaded)
    }

    /// Reads one file of a loaded skill by its path below the skill's directory, and verifies size and digest against
    /// the entry the skill was loaded from. A file that is not listed there is not requested.
    ///
    /// # Errors
    ///
    /// Returns a [`SkillError`] if the skill belongs to another server, the path is not listed, the file cannot be
    /// read, or its content does not match the entry.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends a cancellation for the pending request. The request only reads, so it can be repeated.
    ///
    /// # Example
    ///
    /// [`Connection::load_skill`] returns the skill. See [`Connection`](Connection#example) for an example.
    pub async fn read_skill_file(&self, skill: &LoadedSkill, path: &str) -> Result<SkillContent, SkillError> {
        if skill.server != self.facts().name {
            return Err(SkillError::OtherServer { expected: skill.server.clone(), found: self.facts().name.clone() });
        }
        let file = resolve(&skill.entry, path).ok_or_else(|| SkillError::unlisted(path))?;
        let (uri, promise) = match &file {
            ResolvedFile::Listed(file) => (file.uri.as_str(), Some(*file)),
            ResolvedFile::Dynamic(uri) => (uri.as_str(), None),
        };
        let room = promise.map_or_else(
            || MAX_SKILL_BYTES - skill.read.load(Ordering::Relaxed).min(MAX_SKILL_BYTES),
            |file| file.size,
        );
        let answer = self.read_resource(uri, RequestOptions::default()).await?;
        let found = content::verify_single_content(uri, answer, promise, room)?;
        if promise.is_none() {
            let read = skill.read.fetch_add(found.bytes.len() as u64, Ordering::Relaxed);
            if read.saturating_add(found.bytes.len() as u64) > MAX_SKILL_BYTES {
                return Err(SkillError::TooLarge { limit: MAX_SKILL_BYTES });
            }
        }
        Ok(found)
    }

    fn decode_entry(&self, answer: RawResult) -> Result<Skill, CallError> {
        let bounds = &self.limits().bounds;
        let result = self.expect_complete(answer)?;
        let entry = object_members(&result, bounds)?.into_iter().find(|(key, _)| key == "skill");
        let (_, entry) = entry.ok_or_else(|| CallError::Protocol("result has no `skill`".to_owned()))?;
        Ok(Skill::from_raw(entry, bounds)?)
    }
}

/// The file for a path.
enum ResolvedFile<'a> {
    Listed(&'a SkillFile),
    /// A URI without a listed size or digest.
    Dynamic(String),
}

fn resolve<'a>(skill: &'a Skill, path: &str) -> Option<ResolvedFile<'a>> {
    match &skill.files {
        SkillFiles::Listed(files) => files.iter().find(|file| file.path == path).map(ResolvedFile::Listed),
        SkillFiles::Dynamic => {
            let uri = format!("{}{path}", skill.directory());
            skill.path_of(&uri).map(|_| ResolvedFile::Dynamic(uri))
        }
    }
}

/// Checks both limits using only the entry.
fn check_limits(skill: &Skill) -> Result<(), SkillError> {
    let SkillFiles::Listed(files) = &skill.files else { return Ok(()) };
    if files.len() > MAX_FILES {
        return Err(SkillError::TooManyFiles { count: files.len(), limit: MAX_FILES });
    }
    let total = files.iter().fold(0, |total: u64, file| total.saturating_add(file.size));
    if total > MAX_SKILL_BYTES { Err(SkillError::TooLarge { limit: MAX_SKILL_BYTES }) } else { Ok(()) }
}

/// Escapes and shortens text from the server for an error.
fn escape_short(text: &str) -> String {
    UntrustedText::new(text).truncate(120).to_string()
}
