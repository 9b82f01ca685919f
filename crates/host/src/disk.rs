//! What a host keeps on disk: what servers listed, which definitions were approved or released, large results, the audit.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use wharf_policy::Pins;
use wharf_spec::{Fingerprint, ServerName, ServerSpec};
use wharf_store::{Document, Privacy, SpillDir, SpillLimits};

use crate::catalog::{Listed, identity, keep, recall};
use crate::context::Context;

/// What a host keeps, in one private directory. Reading and writing happen on threads that may block.
pub(crate) struct Disk {
    path: PathBuf,
    spill: Arc<SpillDir>,
    /// Writes that are under way.
    pending: watch::Sender<usize>,
    /// One write at a time, so that what is older never comes last.
    in_order: Arc<Mutex<()>>,
    /// The approved definitions are about to be written.
    pins_due: Arc<AtomicBool>,
}

/// What people have said about definitions of tools.
#[derive(Default)]
pub(crate) struct Approved {
    pub pins: Pins,
    /// Those let out of quarantine.
    pub released: HashSet<Fingerprint>,
}

/// The definitions a person has let out of quarantine, as they are written.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Released {
    schema: u32,
    fingerprints: Vec<Fingerprint>,
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
        let pins = load(&path, "approved-tools.json")?.unwrap_or_default();
        let released: Released = load(&path, "released-tools.json")?.unwrap_or_default();
        let approved = Approved { pins, released: released.fingerprints.into_iter().collect() };
        let (pending, in_order, pins_due) = (watch::Sender::default(), Arc::default(), Arc::default());
        Ok((Self { path, spill: Arc::new(spill), pending, in_order, pins_due }, approved))
    }

    pub fn spill(&self) -> Arc<SpillDir> {
        Arc::clone(&self.spill)
    }

    pub fn audit_path(&self) -> PathBuf {
        self.path.join("audit.jsonl")
    }

    /// Keeps what a server lists, for the next time it is not running.
    pub fn keep_listed(&self, server: &ServerName, spec: &ServerSpec, listed: &Listed) {
        let identity = identity(spec);
        let document = self.catalog_of(server, &identity);
        let Ok(text) = keep(listed, &identity, SystemTime::now()) else { return };
        self.write(move || {
            if let Err(error) = document.write(text.as_bytes()) {
                tracing::warn!("what a server lists could not be kept: {error}");
            }
        });
    }

    /// What a server listed when it last ran. What is damaged is as good as absent.
    pub async fn listed(&self, server: &ServerName, spec: &ServerSpec) -> Option<Listed> {
        let identity = identity(spec);
        let document = self.catalog_of(server, &identity);
        let loaded = tokio::task::spawn_blocking(move || document.load()).await.ok()?;
        let found = match loaded {
            Ok(loaded) => recall(loaded?.bytes, &identity).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        found.inspect_err(|error| tracing::warn!("what a server once listed cannot be read: {error}")).ok()
    }

    /// By the name as well: two accounts at one address have the same identity.
    fn catalog_of(&self, server: &ServerName, identity: &str) -> Document {
        Document::at(self.path.join("catalogs").join(format!("{server}-{identity}.json")), Privacy::Private)
    }

    fn keep_released(&self, fingerprints: Vec<Fingerprint>) {
        let document = Document::at(self.path.join("released-tools.json"), Privacy::Private);
        self.write(move || save(&document, &Released { schema: 1, fingerprints }));
    }

    /// Writes the approved definitions as they are when their turn comes; many changes become one write.
    fn keep_pins(&self, pins: impl FnOnce() -> Option<Pins> + Send + 'static) {
        if self.pins_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let document = Document::at(self.path.join("approved-tools.json"), Privacy::Private);
        let due = Arc::clone(&self.pins_due);
        self.write(move || {
            due.store(false, Ordering::Release);
            if let Some(pins) = pins() {
                save(&document, &pins);
            }
        });
    }

    fn write(&self, write: impl FnOnce() + Send + 'static) {
        self.pending.send_modify(|pending| *pending += 1);
        let (pending, in_order) = (self.pending.clone(), Arc::clone(&self.in_order));
        tokio::task::spawn_blocking(move || {
            {
                let _in_order = in_order.lock().unwrap_or_else(PoisonError::into_inner);
                write();
            }
            pending.send_modify(|pending| *pending -= 1);
        });
    }

    /// Waits until everything so far is written.
    pub async fn flush(&self) {
        // Fails only without the sender, which is here.
        let _ = self.pending.subscribe().wait_for(|pending| *pending == 0).await;
    }
}

impl Context {
    /// Keeps which definitions were approved.
    pub fn keep_pins(&self) {
        if let Some(disk) = &self.disk {
            let rules = Arc::downgrade(&self.rules);
            disk.keep_pins(move || Some(rules.upgrade()?.pins()));
        }
    }

    pub fn is_released(&self, fingerprint: &Fingerprint) -> bool {
        self.released.lock().unwrap_or_else(PoisonError::into_inner).contains(fingerprint)
    }

    /// Lets a definition out of quarantine.
    pub fn release(&self, fingerprint: Fingerprint) {
        let fingerprints = {
            let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
            released.insert(fingerprint);
            released.iter().copied().collect()
        };
        if let Some(disk) = &self.disk {
            disk.keep_released(fingerprints);
        }
    }
}

fn load<T: for<'de> Deserialize<'de>>(folder: &std::path::Path, name: &str) -> Result<Option<T>, String> {
    let document = Document::at(folder.join(name), Privacy::Private);
    let Some(loaded) = document.load().map_err(|error| error.to_string())? else { return Ok(None) };
    serde_json::from_slice(&loaded.bytes).map(Some).map_err(|error| format!("`{name}` is damaged: {error}"))
}

fn save(document: &Document, value: &impl Serialize) {
    let saved = serde_json::to_vec(value).map_err(|error| error.to_string());
    if let Err(error) = saved.and_then(|text| document.write(&text).map_err(|error| error.to_string())) {
        tracing::error!("what was approved could not be kept: {error}");
    }
}
