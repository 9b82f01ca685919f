//! Layers of files as people have them, from text to servers.

#![allow(clippy::unwrap_used, reason = "in a test, that is how things fail")]

mod entries;
mod hostile;
mod layers;
mod providers;
mod sites;
mod support;
mod watching;
