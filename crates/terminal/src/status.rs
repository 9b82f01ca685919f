//! States of servers as rows of a table and of a document.

pub mod gathered;
pub mod show;
