//! `wharf` as people and programs meet it: a process with arguments, two streams and an exit code.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test panics on errors, and finds installed servers by its environment"
)]

mod acceptance;
mod answers;
mod approvals;
mod arguments;
mod asking;
mod auth;
mod by_name;
mod call;
mod configuration;
mod conversing;
mod definitions;
mod demo;
mod demo_http;
mod failures;
mod fidelity;
mod guards;
mod help;
mod hold;
mod homes;
mod host;
mod import;
mod import_replace;
mod limits;
mod lists;
mod login;
mod logins;
mod logs;
mod masking;
mod memory;
mod next_steps;
mod pages;
mod prompt;
mod protocol;
mod read;
mod reload;
mod reloading;
mod repl;
mod repository;
mod run;
mod run_permissions;
mod scopes;
mod scripted;
mod serve;
mod server_answers;
mod server_logs;
mod services;
mod shell;
mod shell_server;
mod signals;
mod spellings;
mod startup;
mod stats;
mod status;
mod subscribe;
mod support;
mod surrogates;
mod tasks;
mod test_command;
mod unread_output;
mod url;
mod why;
