//! Any bytes at all as one message.

#![no_main]

#[path = "../check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|line: &[u8]| {
    let _ = check::check(line);
});
