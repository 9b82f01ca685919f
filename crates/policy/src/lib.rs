//! Allow, ask or deny an attempt: pure functions over rules and grants.

#![warn(missing_docs)]
