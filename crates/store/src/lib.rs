//! Files that are never torn or lost: locked, compared, atomic.

#![warn(missing_docs)]
