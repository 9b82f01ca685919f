//! Persistent state of a host: cached catalogs, approved and released definitions, large results, the audit log.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::{oneshot, watch};
use wharf_policy::PinSet;
use wharf_spec::{Fingerprint, ServerName, ServerOrigin, ServerSpec, ToolId};
use wharf_store::{Document, DocumentPrivacy, SpillDir, SpillLimits};

use crate::catalog::{ServerLists, cache_file_name, decode_cache, encode_cache, identity};
use crate::context::HostContext;
use crate::events::{Event, EventBus};

/// Age at which a cached catalog is deleted.
const CATALOG_CACHE_EXPIRY: Duration = Duration::from_secs(90 * 24 * 3600);
/// Maximum bytes of approved definitions with their texts, close to the size limit of a document.
const MAX_PINS_BYTES: usize = 12 << 20;

/// Schema version of the file of released definitions.
const RELEASED_SCHEMA_VERSION: u32 = 3;

/// The state directory of a host. Reads and writes run on blocking threads.
pub(crate) struct StateDirectory {
    path: PathBuf,
    spill: Arc<SpillDir>,
    writes: Arc<WriteQueue>,
    /// Set while a write of the approved definitions is queued.
    pins_due: Arc<AtomicBool>,
}

/// Tool definitions that people have approved or released.
#[derive(Default)]
pub(crate) struct ApprovedDefinitions {
    pub pins: PinSet,
    pub released: ReleasedDefinitions,
}

/// The server of a cached catalog.
pub(crate) struct CatalogCacheKey<'a> {
    pub name: &'a ServerName,
    pub origin: &'a ServerOrigin,
    pub spec: &'a ServerSpec,
}

/// Tool definitions that people have released from quarantine.
pub(crate) type ReleasedDefinitions = HashSet<(ServerOrigin, ToolId, Fingerprint)>;

/// Resolves when a decision is on disk, or to the error of writing it.
pub(crate) type SaveResult = oneshot::Receiver<Result<(), String>>;

/// File format of the released definitions. Releases of schema 1 held for every server, by fingerprint alone, and have
/// to be repeated.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ReleasedFile {
    #[serde(deserialize_with = "deserialize_schema")]
    schema: u32,
    #[serde(default)]
    tools: Vec<ReleasedTool>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ReleasedTool {
    server: String,
    /// The file that defines the server. Since schema 3.
    #[serde(default, rename = "definedIn", skip_serializing_if = "Option::is_none")]
    defined_in: Option<String>,
    tool: String,
    fingerprint: Fingerprint,
}

impl StateDirectory {
    /// Opens or creates the directory and reads the approved definitions.
    pub async fn open(path: PathBuf) -> Result<(Self, ApprovedDefinitions), String> {
        let opened = wharf_threads::run_blocking(move || Self::open_blocking(path)).await;
        opened.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn open_blocking(path: PathBuf) -> Result<(Self, ApprovedDefinitions), String> {
        let spill = SpillDir::open(&path.join("results"), SpillLimits::default()).map_err(|error| error.to_string())?;
        spill.remove_expired().map_err(|error| error.to_string())?;
        remove_expired(&path.join("catalogs"), SystemTime::now());
        let pins = load_document(&path, "approved-tools.json")?.unwrap_or_default();
        let released = load_document::<ReleasedFile>(&path, "released-tools.json")?.unwrap_or_default().into_released();
        let (writes, pins_due) = (Arc::default(), Arc::default());
        Ok((Self { path, spill: Arc::new(spill), writes, pins_due }, ApprovedDefinitions { pins, released }))
    }

    pub fn spill(&self) -> Arc<SpillDir> {
        Arc::clone(&self.spill)
    }

    pub fn audit_path(&self) -> PathBuf {
        crate::audit::log_path(&self.path)
    }

    /// Caches a server's lists, for the time when it is not running.
    pub fn cache_lists(&self, server: &CatalogCacheKey<'_>, listed: &ServerLists) {
        let (document, identity) = self.catalog_document(server);
        let listed = listed.clone();
        self.writes.push(move || write_cache(&document, &listed, &identity));
    }

    /// Caches a server's tools along with its other cached lists, unless the tools are unchanged. Without a previous
    /// cache, lists that were not requested stay marked as such.
    pub fn cache_tools(&self, server: &CatalogCacheKey<'_>, mut listed: ServerLists) {
        let (document, identity) = self.catalog_document(server);
        self.writes.push(move || {
            let before = document.load().ok().flatten().and_then(|loaded| decode_cache(loaded.bytes, &identity).ok());
            if let Some(before) = before {
                if before.tools.iter().map(|tool| &tool.raw).eq(listed.tools.iter().map(|tool| &tool.raw)) {
                    return;
                }
                let ServerLists { resources, templates, prompts, unasked, .. } = before;
                listed = ServerLists { resources, templates, prompts, unasked, ..listed };
            }
            write_cache(&document, &listed, &identity);
        });
    }

    /// Returns the cached lists of a server. A damaged cache counts as missing.
    pub async fn cached_lists(&self, server: &CatalogCacheKey<'_>) -> Option<ServerLists> {
        let (document, identity) = self.catalog_document(server);
        let loaded = wharf_threads::run_blocking(move || document.load()).await.ok()?;
        let found = match loaded {
            Ok(loaded) => decode_cache(loaded?.bytes, &identity).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        found.inspect_err(|error| tracing::warn!("reading a cached catalog failed: {error}")).ok()
    }

    fn catalog_document(&self, server: &CatalogCacheKey<'_>) -> (Document, String) {
        let identity = identity(server.origin, server.spec);
        let file = self.path.join("catalogs").join(cache_file_name(server.name, &identity));
        (Document::new(file, DocumentPrivacy::Private), identity)
    }

    fn save_released(&self, released: ReleasedDefinitions, event_bus: Arc<EventBus>) -> SaveResult {
        let document = Document::new(self.path.join("released-tools.json"), DocumentPrivacy::Private);
        let (done, saved) = oneshot::channel();
        self.writes.push(move || {
            let outcome = merge_into_document(&document, &event_bus, |old: Option<ReleasedFile>| {
                let others = old.unwrap_or_default().into_released();
                serde_json::to_vec(&ReleasedFile::from_released(released.union(&others)))
            });
            // The receiver may have stopped waiting.
            let _ = done.send(outcome);
        });
        saved
    }

    /// Writes the approved definitions, even if another write of them is queued.
    fn save_pins_at_once(&self, pins: PinSet, event_bus: Arc<EventBus>) -> SaveResult {
        let document = self.pins_document();
        let (done, saved) = oneshot::channel();
        self.writes.push(move || {
            // The receiver may have stopped waiting.
            let _ = done.send(merge_pins(&document, &event_bus, &pins));
        });
        saved
    }

    fn pins_document(&self) -> Document {
        Document::new(self.path.join("approved-tools.json"), DocumentPrivacy::Private)
    }

    /// Queues a write of the approved definitions. They are read when it runs, so that many changes become one write.
    fn save_pins(&self, pins: impl FnOnce() -> Option<PinSet> + Send + 'static, event_bus: Arc<EventBus>) {
        if self.pins_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let document = self.pins_document();
        let due = Arc::clone(&self.pins_due);
        self.writes.push(move || {
            due.store(false, Ordering::Release);
            if let Some(pins) = pins() {
                // The error has been published.
                let _ = merge_pins(&document, &event_bus, &pins);
            }
        });
    }

    /// Waits until all writes so far are done.
    pub async fn flush(&self) {
        // Fails only if the sender is dropped, and it is alive here.
        let _ = self.writes.pending.subscribe().wait_for(|pending| *pending == 0).await;
    }
}

fn write_cache(document: &Document, listed: &ServerLists, identity: &str) {
    let Ok(text) = encode_cache(listed, identity, SystemTime::now()) else { return };
    if let Err(error) = document.write(text.as_bytes()) {
        tracing::warn!("caching a server's lists failed: {error}");
    }
}

/// Queue of writes, performed one at a time in order.
#[derive(Default)]
struct WriteQueue {
    /// Unbounded, but limited by its producers: one list per server and change, and people's decisions.
    waiting: Mutex<VecDeque<WriteJob>>,
    one_at_a_time: Mutex<()>,
    /// Number of writes queued or in progress.
    pending: watch::Sender<usize>,
}

type WriteJob = Box<dyn FnOnce() + Send>;

impl WriteQueue {
    fn push(self: &Arc<Self>, write: impl FnOnce() + Send + 'static) {
        let underway = PendingWrite::new(Arc::clone(self));
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(Box::new(write));
        wharf_threads::run_in_background(move || underway.0.write_next());
    }

    /// Performs the oldest write, which need not be the one that this thread was started for.
    fn write_next(&self) {
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.into_iter().for_each(|write| write());
    }
}

/// A pending write, counted until it is dropped, even by a panic.
struct PendingWrite(Arc<WriteQueue>);

impl PendingWrite {
    fn new(writes: Arc<WriteQueue>) -> Self {
        writes.pending.send_modify(|pending| *pending += 1);
        Self(writes)
    }
}

impl Drop for PendingWrite {
    fn drop(&mut self) {
        self.0.pending.send_modify(|pending| *pending -= 1);
    }
}

impl HostContext {
    /// Saves the approved definitions.
    pub fn save_pins(&self) {
        if let Some(disk) = &self.disk {
            let rules = Arc::downgrade(&self.rules);
            disk.save_pins(move || Some(rules.upgrade()?.pins()), Arc::clone(&self.event_bus));
        }
    }

    /// Saves the approved definitions without waiting for other changes. Returns `None` without a state directory.
    pub fn save_pins_at_once(&self) -> Option<SaveResult> {
        Some(self.disk.as_ref()?.save_pins_at_once(self.rules.pins(), Arc::clone(&self.event_bus)))
    }

    /// Reports whether a person has released exactly this definition of this tool from quarantine.
    pub fn is_released(&self, origin: ServerOrigin, tool: ToolId, definition: Fingerprint) -> bool {
        self.released.lock().unwrap_or_else(PoisonError::into_inner).contains(&(origin, tool, definition))
    }

    /// Releases a tool definition from quarantine. Returns `None` without a state directory.
    pub fn release(&self, origin: ServerOrigin, tool: ToolId, definition: Fingerprint) -> Option<SaveResult> {
        let all = {
            let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
            released.insert((origin, tool, definition));
            released.clone()
        };
        Some(self.disk.as_ref()?.save_released(all, Arc::clone(&self.event_bus)))
    }
}

/// Rejects files of later versions, so that they are neither misread nor overwritten.
fn deserialize_schema<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let schema = u32::deserialize(from)?;
    if schema > RELEASED_SCHEMA_VERSION {
        Err(D::Error::custom(format!("schema {schema} is not supported (maximum {RELEASED_SCHEMA_VERSION})")))
    } else {
        Ok(schema)
    }
}

impl ReleasedFile {
    fn from_released<'a>(released: impl Iterator<Item = &'a (ServerOrigin, ToolId, Fingerprint)>) -> Self {
        // An origin whose path is not UTF-8 is not saved.
        let entry = |(origin, id, fingerprint): &(ServerOrigin, ToolId, Fingerprint)| {
            let defined_in = origin.file().map(|file| file.to_str().map(str::to_owned).ok_or(())).transpose().ok()?;
            let (server, tool) = (id.server.to_string(), id.tool.to_string());
            Some(ReleasedTool { server, defined_in, tool, fingerprint: *fingerprint })
        };
        let mut tools: Vec<ReleasedTool> = released.filter_map(entry).collect();
        let key =
            |tool: &ReleasedTool| (tool.server.clone(), tool.defined_in.clone(), tool.tool.clone(), tool.fingerprint.0);
        tools.sort_by_cached_key(key);
        Self { schema: RELEASED_SCHEMA_VERSION, tools }
    }

    fn into_released(self) -> ReleasedDefinitions {
        let entry = |tool: ReleasedTool| {
            let server = ServerName::new(&tool.server).ok()?;
            let file = |file: String| ServerOrigin::File(Path::new(&file).into());
            let origin = tool.defined_in.map_or(ServerOrigin::User, file);
            Some((origin, ToolId::new(&server, tool.tool.as_str()), tool.fingerprint))
        };
        self.tools.into_iter().filter_map(entry).collect()
    }
}

/// Serializes the approved definitions, dropping their texts if the result would be too large to read again.
fn serialize_pins(mut pins: PinSet) -> serde_json::Result<Vec<u8>> {
    let text = serde_json::to_vec(&pins)?;
    if text.len() <= MAX_PINS_BYTES {
        return Ok(text);
    }
    pins.drop_definitions();
    serde_json::to_vec(&pins)
}

/// Removes cached catalogs of servers that have not run for a long time. Errors are ignored.
fn remove_expired(catalogs: &Path, now: SystemTime) {
    let Ok(entries) = std::fs::read_dir(catalogs) else { return };
    for entry in entries.flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| now.duration_since(modified).ok());
        let named = entry.path().extension().is_some_and(|extension| extension == "json");
        if named && age.is_some_and(|age| age > CATALOG_CACHE_EXPIRY) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn load_document<T: for<'de> Deserialize<'de>>(folder: &Path, name: &str) -> Result<Option<T>, String> {
    let document = Document::new(folder.join(name), DocumentPrivacy::Private);
    let Some(loaded) = document.load().map_err(|error| error.to_string())? else { return Ok(None) };
    serde_json::from_slice(&loaded.bytes).map(Some).map_err(|error| format!("`{name}` is damaged: {error}"))
}

/// Saves people's decisions merged with the current file, which another process may have written.
fn merge_into_document<T: for<'de> Deserialize<'de>>(
    document: &Document,
    event_bus: &EventBus,
    text: impl Fn(Option<T>) -> serde_json::Result<Vec<u8>>,
) -> Result<(), String> {
    let saved = document.update(|old| text(old.map(serde_json::from_slice).transpose()?).map(Some));
    saved.map(|_| ()).map_err(|error| {
        tracing::error!("saving approved tools failed: {error}");
        event_bus.publish(Event::NotKept { text: error.to_string() });
        error.to_string()
    })
}

fn merge_pins(document: &Document, event_bus: &EventBus, pins: &PinSet) -> Result<(), String> {
    merge_into_document(document, event_bus, |old: Option<PinSet>| {
        let mut all = pins.clone();
        old.iter().for_each(|others| all.merge(others));
        serialize_pins(all)
    })
}

#[cfg(test)]
mod tests;
