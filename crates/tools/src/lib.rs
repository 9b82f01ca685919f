//! Tools, the registry everyone calls through, its gate, and outcomes.

#![warn(missing_docs)]
