//! Tests of accounts with a scripted authorization server and a vault in a temporary directory.

mod endings;
mod faults;
mod logins;
mod passing;
mod refusals;
mod script;
