//! States of servers as rows of a table and of a document.

pub mod show;
pub mod status_rows;
