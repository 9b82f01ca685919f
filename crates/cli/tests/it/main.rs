//! `wharf` as people and programs meet it: a process with arguments, two streams and an exit code.

#![allow(clippy::unwrap_used, reason = "in a test, that is how things fail")]

mod answers;
mod asking;
mod call;
mod demo;
mod demo_http;
mod failures;
mod fidelity;
mod hold;
mod lists;
mod pages;
mod prompt;
mod read;
mod scripted;
mod services;
mod shell;
mod signals;
mod subscribe;
mod support;
mod tasks;
mod terminal;
mod url;
