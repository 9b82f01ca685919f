//! What a host keeps on disk: what servers listed, which definitions were approved or released, large results, the audit.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::watch;
use wharf_policy::Pins;
use wharf_spec::{Fingerprint, ServerName, ServerOrigin, ServerSpec, ToolId};
use wharf_store::{Document, Privacy, SpillDir, SpillLimits};

use crate::catalog::{Listed, identity, keep, recall};
use crate::context::Context;
use crate::events::{Crier, Event};

/// How long what a server lists is kept without being written again.
const FORGOTTEN: Duration = Duration::from_secs(90 * 24 * 3600);
/// The most bytes of approved definitions with their texts; a document has room for little more.
const MOST_PINS: usize = 12 << 20;

/// The form of the file of released definitions.
const SCHEMA: u32 = 3;

/// What a host keeps, in one private directory. Reading and writing happen on threads that may block.
pub(crate) struct Disk {
    path: PathBuf,
    spill: Arc<SpillDir>,
    writes: Arc<Writes>,
    /// The approved definitions are about to be written.
    pins_due: Arc<AtomicBool>,
}

/// What people have said about definitions of tools.
#[derive(Default)]
pub(crate) struct Approved {
    pub pins: Pins,
    pub released: Released,
}

/// The server of a kept list.
pub(crate) struct Listing<'a> {
    pub name: &'a ServerName,
    pub origin: &'a ServerOrigin,
    pub spec: &'a ServerSpec,
}

/// The definitions of tools that people have let out of quarantine.
pub(crate) type Released = HashSet<(ServerOrigin, ToolId, Fingerprint)>;

/// The same as they are written. What schema 1 released, by fingerprint alone and so for every server, has to be
/// released again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ReleasedFile {
    #[serde(deserialize_with = "known_schema")]
    schema: u32,
    #[serde(default)]
    tools: Vec<ReleasedTool>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ReleasedTool {
    server: String,
    /// The file that defines the server; since schema 3.
    #[serde(default, rename = "definedIn", skip_serializing_if = "Option::is_none")]
    defined_in: Option<String>,
    tool: String,
    fingerprint: Fingerprint,
}

impl Disk {
    /// Opens the directory, or makes it, and reads what was approved.
    pub async fn open(path: PathBuf) -> Result<(Self, Approved), String> {
        let opened = tokio::task::spawn_blocking(move || Self::open_now(path)).await;
        opened.unwrap_or_else(|_| Err("it could not be opened".to_owned()))
    }

    fn open_now(path: PathBuf) -> Result<(Self, Approved), String> {
        let spill = SpillDir::open(&path.join("results"), SpillLimits::default()).map_err(|error| error.to_string())?;
        spill.clean().map_err(|error| error.to_string())?;
        forget_old(&path.join("catalogs"), SystemTime::now());
        let pins = load(&path, "approved-tools.json")?.unwrap_or_default();
        let released = load::<ReleasedFile>(&path, "released-tools.json")?.unwrap_or_default().read();
        let (writes, pins_due) = (Arc::default(), Arc::default());
        Ok((Self { path, spill: Arc::new(spill), writes, pins_due }, Approved { pins, released }))
    }

    pub fn spill(&self) -> Arc<SpillDir> {
        Arc::clone(&self.spill)
    }

    pub fn audit_path(&self) -> PathBuf {
        crate::audit::path(&self.path)
    }

    /// Keeps what a server lists, for the next time it is not running.
    pub fn keep_listed(&self, server: &Listing<'_>, listed: &Listed) {
        let (document, identity) = self.catalog_of(server);
        let listed = listed.clone();
        self.writes.push(move || write_listed(&document, &listed, &identity));
    }

    /// Keeps the tools a server lists beside what else it listed before, unless they are the same. Where it listed
    /// nothing before, what it has not been asked for stays marked as that.
    pub fn keep_tools(&self, server: &Listing<'_>, mut listed: Listed) {
        let (document, identity) = self.catalog_of(server);
        self.writes.push(move || {
            let before = document.load().ok().flatten().and_then(|loaded| recall(loaded.bytes, &identity).ok());
            if let Some(before) = before {
                if before.tools.iter().map(|tool| &tool.raw).eq(listed.tools.iter().map(|tool| &tool.raw)) {
                    return;
                }
                let Listed { resources, templates, prompts, unasked, .. } = before;
                listed = Listed { resources, templates, prompts, unasked, ..listed };
            }
            write_listed(&document, &listed, &identity);
        });
    }

    /// What a server listed when it last ran. What is damaged is as good as absent.
    pub async fn listed(&self, server: &Listing<'_>) -> Option<Listed> {
        let (document, identity) = self.catalog_of(server);
        let loaded = tokio::task::spawn_blocking(move || document.load()).await.ok()?;
        let found = match loaded {
            Ok(loaded) => recall(loaded?.bytes, &identity).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        found.inspect_err(|error| tracing::warn!("what a server once listed cannot be read: {error}")).ok()
    }

    /// By the name as well: two accounts at one address have the same identity.
    fn catalog_of(&self, server: &Listing<'_>) -> (Document, String) {
        let identity = identity(server.origin, server.spec);
        let file = self.path.join("catalogs").join(format!("{}-{identity}.json", server.name));
        (Document::at(file, Privacy::Private), identity)
    }

    fn keep_released(&self, released: Released, crier: Arc<Crier>) {
        let document = Document::at(self.path.join("released-tools.json"), Privacy::Private);
        self.writes.push(move || {
            save(&document, &crier, |old: Option<ReleasedFile>| {
                let others = old.unwrap_or_default().read();
                serde_json::to_vec(&ReleasedFile::of(released.union(&others)))
            });
        });
    }

    /// Writes the approved definitions as they are when their turn comes; many changes become one write.
    fn keep_pins(&self, pins: impl FnOnce() -> Option<Pins> + Send + 'static, crier: Arc<Crier>) {
        if self.pins_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let document = Document::at(self.path.join("approved-tools.json"), Privacy::Private);
        let due = Arc::clone(&self.pins_due);
        self.writes.push(move || {
            due.store(false, Ordering::Release);
            let Some(pins) = pins() else { return };
            save(&document, &crier, |old: Option<Pins>| {
                let mut all = pins.clone();
                old.iter().for_each(|others| all.merge(others));
                pins_text(all)
            });
        });
    }

    /// Waits until everything so far is written.
    pub async fn flush(&self) {
        // Fails only without the sender, which is here.
        let _ = self.writes.pending.subscribe().wait_for(|pending| *pending == 0).await;
    }
}

fn write_listed(document: &Document, listed: &Listed, identity: &str) {
    let Ok(text) = keep(listed, identity, SystemTime::now()) else { return };
    if let Err(error) = document.write(text.as_bytes()) {
        tracing::warn!("what a server lists could not be kept: {error}");
    }
}

/// What is to be written, one after the other in the order in which it came.
#[derive(Default)]
struct Writes {
    /// Bounded by what is kept: a list of each server when it changes, and what people say.
    waiting: Mutex<VecDeque<Write>>,
    one_at_a_time: Mutex<()>,
    /// How many wait or are under way.
    pending: watch::Sender<usize>,
}

type Write = Box<dyn FnOnce() + Send>;

impl Writes {
    fn push(self: &Arc<Self>, write: impl FnOnce() + Send + 'static) {
        let underway = Underway::new(Arc::clone(self));
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(Box::new(write));
        tokio::task::spawn_blocking(move || underway.0.write_next());
    }

    /// Writes what has waited longest, which need not be what this thread was started for.
    fn write_next(&self) {
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.into_iter().for_each(|write| write());
    }
}

/// One of those that are pending, until it is dropped, even by a panic.
struct Underway(Arc<Writes>);

impl Underway {
    fn new(writes: Arc<Writes>) -> Self {
        writes.pending.send_modify(|pending| *pending += 1);
        Self(writes)
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.pending.send_modify(|pending| *pending -= 1);
    }
}

impl Context {
    /// Keeps which definitions were approved.
    pub fn keep_pins(&self) {
        if let Some(disk) = &self.disk {
            let rules = Arc::downgrade(&self.rules);
            disk.keep_pins(move || Some(rules.upgrade()?.pins()), Arc::clone(&self.crier));
        }
    }

    /// Whether a person has let just this definition of this tool out of quarantine.
    pub fn is_released(&self, (origin, tool): (ServerOrigin, ToolId), definition: Fingerprint) -> bool {
        self.released.lock().unwrap_or_else(PoisonError::into_inner).contains(&(origin, tool, definition))
    }

    /// Lets a definition of a tool out of quarantine.
    pub fn release(&self, (origin, tool): (ServerOrigin, ToolId), definition: Fingerprint) {
        let all = {
            let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
            released.insert((origin, tool, definition));
            released.clone()
        };
        if let Some(disk) = &self.disk {
            disk.keep_released(all, Arc::clone(&self.crier));
        }
    }
}

/// What a later version wrote is not read as something else, and so not overwritten.
fn known_schema<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let schema = u32::deserialize(from)?;
    if schema > SCHEMA { Err(D::Error::custom(format!("schema {schema} is not {SCHEMA}"))) } else { Ok(schema) }
}

impl ReleasedFile {
    fn of<'a>(released: impl Iterator<Item = &'a (ServerOrigin, ToolId, Fingerprint)>) -> Self {
        // A file whose path is not text is forgotten with the process.
        let entry = |(origin, id, fingerprint): &(ServerOrigin, ToolId, Fingerprint)| {
            let defined_in = origin.file().map(|file| file.to_str().map(str::to_owned).ok_or(())).transpose().ok()?;
            let (server, tool) = (id.server.to_string(), id.tool.to_string());
            Some(ReleasedTool { server, defined_in, tool, fingerprint: *fingerprint })
        };
        let mut tools: Vec<ReleasedTool> = released.filter_map(entry).collect();
        let key =
            |tool: &ReleasedTool| (tool.server.clone(), tool.defined_in.clone(), tool.tool.clone(), tool.fingerprint.0);
        tools.sort_by_cached_key(key);
        Self { schema: SCHEMA, tools }
    }

    fn read(self) -> Released {
        let entry = |tool: ReleasedTool| {
            let server = ServerName::new(&tool.server).ok()?;
            let file = |file: String| ServerOrigin::File(Path::new(&file).into());
            let origin = tool.defined_in.map_or(ServerOrigin::User, file);
            Some((origin, ToolId::new(&server, tool.tool.as_str()), tool.fingerprint))
        };
        self.tools.into_iter().filter_map(entry).collect()
    }
}

/// The text of what was approved, short enough to be read again.
fn pins_text(mut pins: Pins) -> serde_json::Result<Vec<u8>> {
    let text = serde_json::to_vec(&pins)?;
    if text.len() <= MOST_PINS {
        return Ok(text);
    }
    pins.drop_definitions();
    serde_json::to_vec(&pins)
}

/// Removes what was listed by servers that have not run for long, as far as that is possible.
fn forget_old(catalogs: &Path, now: SystemTime) {
    let Ok(entries) = std::fs::read_dir(catalogs) else { return };
    for entry in entries.flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| now.duration_since(modified).ok());
        let named = entry.path().extension().is_some_and(|extension| extension == "json");
        if named && age.is_some_and(|age| age > FORGOTTEN) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn load<T: for<'de> Deserialize<'de>>(folder: &Path, name: &str) -> Result<Option<T>, String> {
    let document = Document::at(folder.join(name), Privacy::Private);
    let Some(loaded) = document.load().map_err(|error| error.to_string())? else { return Ok(None) };
    serde_json::from_slice(&loaded.bytes).map(Some).map_err(|error| format!("`{name}` is damaged: {error}"))
}

/// Writes what people said, together with what is there by then: another process may have written it.
fn save<T: for<'de> Deserialize<'de>>(
    document: &Document,
    crier: &Crier,
    text: impl Fn(Option<T>) -> serde_json::Result<Vec<u8>>,
) {
    let saved = document.update(|old| text(old.map(serde_json::from_slice).transpose()?).map(Some));
    if let Err(error) = saved {
        tracing::error!("what was approved could not be kept: {error}");
        crier.tell(Event::NotKept { text: error.to_string() });
    }
}

#[cfg(test)]
mod tests;
