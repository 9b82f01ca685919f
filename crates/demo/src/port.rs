//! What tools can change about the server: the tide, and what it lists.

use std::sync::Mutex;

use super::message::locked;

pub const TIDE_URI: &str = "harbour://tide";
pub const BUOY_URI: &str = "harbour://buoy";
pub const LOG_URI: &str = "harbour://log";

/// The state of the port; every connection has its own.
#[derive(Default)]
pub struct Port {
    view: Mutex<View>,
    /// Whether the person has been to the page that an error asked for.
    has_papers: Mutex<bool>,
}

/// What the port looks like at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct View {
    /// In centimetres.
    pub tide: u32,
    /// Whether there is a tool `crane`.
    pub has_crane: bool,
    /// Whether there is a prompt `shanty`.
    pub has_shanty: bool,
    /// Whether there is a resource `harbour://buoy`.
    pub has_buoy: bool,
}

/// Something that a tool does to the port.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    RaiseTide,
    HireCrane,
    DismissCrane,
    LearnShanty,
    LayBuoy,
}

/// Something that clients may want to hear of.
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

    /// Makes a change; gives the sentence to answer with, and the event if anything is different now.
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

    /// Notes that the person has been to the page.
    pub fn grant_papers(&self) {
        *locked(&self.has_papers) = true;
    }

    /// Uses up the papers, if there are any.
    pub fn take_papers(&self) -> bool {
        std::mem::take(&mut *locked(&self.has_papers))
    }
}
