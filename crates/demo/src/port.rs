//! Mutable state of the server: the tide and the list contents.

use std::sync::Mutex;

use super::message::lock_unpoisoned;

pub const TIDE_URI: &str = "harbour://tide";
pub const BUOY_URI: &str = "harbour://buoy";
pub const LOG_URI: &str = "harbour://log";

/// State of the port. Every connection has its own.
#[derive(Default)]
pub struct HarbourState {
    view: Mutex<HarbourView>,
    /// True after the user has visited the page that an error asked for.
    has_papers: Mutex<bool>,
}

/// Snapshot of the port.
#[derive(Debug, Clone, Copy, Default)]
pub struct HarbourView {
    /// In centimetres.
    pub tide: u32,
    /// True if the tool `crane` is listed.
    pub has_crane: bool,
    /// True if the prompt `shanty` is listed.
    pub has_shanty: bool,
    /// True if the resource `harbour://buoy` is listed.
    pub has_buoy: bool,
}

/// A change that a tool makes to the port.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HarbourChange {
    RaiseTide,
    HireCrane,
    DismissCrane,
    LearnShanty,
    LayBuoy,
}

/// A change to notify clients of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HarbourEvent {
    ToolsChanged,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated(&'static str),
}

impl HarbourState {
    pub fn view(&self) -> HarbourView {
        *lock_unpoisoned(&self.view)
    }

    /// Applies a change. Returns the text to reply with, and the event if the state changed.
    pub fn apply(&self, change: HarbourChange) -> (String, Option<HarbourEvent>) {
        let mut view = lock_unpoisoned(&self.view);
        let (is_new, done, event) = match change {
            HarbourChange::RaiseTide => {
                view.tide += 10;
                let done = format!("The tide stands at {} cm.", view.tide);
                return (done, Some(HarbourEvent::ResourceUpdated(TIDE_URI)));
            }
            HarbourChange::HireCrane => {
                (!std::mem::replace(&mut view.has_crane, true), "The crane is here.", HarbourEvent::ToolsChanged)
            }
            HarbourChange::DismissCrane => {
                (std::mem::replace(&mut view.has_crane, false), "The crane is gone.", HarbourEvent::ToolsChanged)
            }
            HarbourChange::LearnShanty => {
                (!std::mem::replace(&mut view.has_shanty, true), "The shanty is known.", HarbourEvent::PromptsChanged)
            }
            HarbourChange::LayBuoy => {
                (!std::mem::replace(&mut view.has_buoy, true), "The buoy is out.", HarbourEvent::ResourcesChanged)
            }
        };
        (done.to_owned(), is_new.then_some(event))
    }

    /// Records that the user has visited the page.
    pub fn grant_papers(&self) {
        *lock_unpoisoned(&self.has_papers) = true;
    }

    /// Consumes the papers. Returns whether there were any.
    pub fn take_papers(&self) -> bool {
        std::mem::take(&mut *lock_unpoisoned(&self.has_papers))
    }
}
