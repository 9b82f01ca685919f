//! The registry and its gate, as callers and providers see them.

mod concurrent;
mod fixture;
mod gate;
mod registry;
