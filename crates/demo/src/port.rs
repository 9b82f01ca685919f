//! Mutable state of the server: the tide and the list contents.

use std::sync::Mutex;

use super::message::locked;

pub const TIDE_URI: &str = "harbour://tide";
pub const BUOY_URI: &str = "harbour://buoy";
pub const LOG_URI: &str = "harbour://log";

/// State of the port. Every connection has its own.
#[derive(Default)]
pub struct Port {
    view: Mutex<View>,
    /// True after the user has visited the page that an error asked for.
    has_papers: Mutex<bool>,
}

/// Snapshot of the port.
#[derive(Debug, Clone, Copy, Default)]
pub struct View {
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
pub enum Change {
    RaiseTide,
    HireCrane,
    DismissCrane,
    LearnShanty,
    LayBuoy,
}

/// A change to notify clients of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    ToolsChanged,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated(&'static str),
}

impl Port {
    pub fn view(&self) -> View {
        *locked(&self.view)
    }

    /// Applies a change. Returns the text to reply with, and the event if the state changed.
    pub fn apply(&self, change: Change) -> (String, Option<Event>) {
        let mut view = locked(&self.view);
        let (is_new, done, event) = match change {
            Change::RaiseTide => {
                view.tide += 10;
                let done = format!("The tide stands at {} cm.", view.tide);
                return (done, Some(Event::ResourceUpdated(TIDE_URI)));
            }
            Change::HireCrane => {
                (!std::mem::replace(&mut view.has_crane, true), "The crane is here.", Event::ToolsChanged)
            }
            Change::DismissCrane => {
                (std::mem::replace(&mut view.has_crane, false), "The crane is gone.", Event::ToolsChanged)
            }
            Change::LearnShanty => {
                (!std::mem::replace(&mut view.has_shanty, true), "The shanty is known.", Event::PromptsChanged)
            }
            Change::LayBuoy => {
                (!std::mem::replace(&mut view.has_buoy, true), "The buoy is out.", Event::ResourcesChanged)
            }
        };
        (done.to_owned(), is_new.then_some(event))
    }

    /// Records that the user has visited the page.
    pub fn grant_papers(&self) {
        *locked(&self.has_papers) = true;
    }

    /// Consumes the papers. Returns whether there were any.
    pub fn take_papers(&self) -> bool {
        std::mem::take(&mut *locked(&self.has_papers))
    }
}
