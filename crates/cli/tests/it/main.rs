//! `wharf` as people and programs meet it: a process with arguments, two streams and an exit code.

#![allow(clippy::unwrap_used, reason = "in a test, that is how things fail")]

mod answers;
mod approvals;
mod arguments;
mod asking;
mod auth;
mod by_name;
mod call;
mod configuration;
mod demo;
mod demo_http;
mod failures;
mod fidelity;
mod guards;
mod help;
mod hold;
mod homes;
mod house;
mod lists;
mod logins;
mod logs;
mod masking;
mod memory;
mod pages;
mod prompt;
mod read;
mod reload;
mod reloading;
mod repl;
mod run;
mod scopes;
mod scripted;
mod services;
mod shell;
mod signals;
mod stats;
mod status;
mod subscribe;
mod support;
mod tasks;
mod terminal;
mod test_command;
mod url;
mod why;
mod yard;
