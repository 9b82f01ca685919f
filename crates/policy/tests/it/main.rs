//! Policies from outside: what is decided, what is reported, what is judged.

mod access;
mod block;

mod decisions;
mod judgements;
mod origins;
mod problems;
mod properties;
