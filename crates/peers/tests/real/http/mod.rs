//! Servers of somebody else's making over HTTP, in each era they speak and each form they have.

mod asking;
mod plain;
mod sessions;
mod watching;
pub mod web;
mod working;
