//! The commands that read and change the configuration.

mod add;
mod change;
mod secrets;
mod show;
mod validate;
