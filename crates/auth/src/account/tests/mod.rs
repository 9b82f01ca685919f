//! Accounts against an authorization server that does as it is told, and a vault in a directory of its own.

mod endings;
mod faults;
mod logins;
mod passing;
mod refusals;
mod script;
