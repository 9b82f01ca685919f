//! Any bytes at all as one event stream.

#![no_main]

#[path = "../check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|stream: &[u8]| {
    let _ = check::check(stream);
});
