//! Other clients' files, in and out, and the formats they are written in.

mod documented;
mod formats;
mod round_trip;
