//! Tests of accounts with a scripted authorization server and a vault in a temporary directory.

mod faults;
mod logins;
mod refusals;
mod script;
mod shutdown;
mod transient;
