//! Everything that the commands of `wharf` and its interactive terminal share: one session from its arguments to its exit
//! code, the host it starts, questions to the person, and output.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the command line prints, exits and reads the environment"
)]

pub mod accounts;
pub mod age;
pub mod approval;
pub mod approval_effects;
pub mod call_arguments;
pub mod call_numbers;
pub mod chat;
pub mod clock;
pub mod columns;
pub mod command_words;
pub mod config_context;
pub mod config_scope;
pub mod console;
pub mod content;
pub mod control;
pub mod count_text;
pub mod definition_review;
pub mod deny_rules;
pub mod detail_sheet;
pub mod display_path;
pub mod editor;
pub mod failure;
pub mod gateway_socket;
pub mod listing;
pub mod local_tasks;
pub mod log;
pub mod login_errors;
pub mod managed_host;
pub mod one_shot_host;
mod output;
pub mod probe;
pub mod progress;
pub mod project_directory;
pub mod prompt_text;
pub mod protocol_pipes;
pub mod question;
pub mod rule_sink;
mod runtime_start;
pub mod saving;
pub mod screen;
pub mod search;
pub mod server_log_notices;
pub mod servers;
pub mod services;
pub mod session;
pub mod signals;
pub mod status;
pub mod stdin;
pub mod style;
pub mod suggestions;
pub mod table;
pub mod tap;
