//! Formats ages and expiry times, and parses periods.

use std::fmt;
use std::time::{Duration, SystemTime};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Formats the age of a time: `2s ago`, `5m ago`, `3h ago`, `4d ago`.
pub struct AgeText(pub SystemTime);

impl fmt::Display for AgeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A time in the future comes from another clock: show it as now.
        let (count, unit) = largest_unit(self.0.elapsed().unwrap_or_default());
        write!(f, "{count}{unit} ago")
    }
}

/// Formats an expiry time: `in 59m`, or `5m ago`.
pub struct ExpiryText(pub SystemTime);

impl fmt::Display for ExpiryText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.duration_since(SystemTime::now()) {
            Ok(left) => {
                let (count, unit) = largest_unit(left);
                write!(f, "in {count}{unit}")
            }
            Err(_) => AgeText(self.0).fmt(f),
        }
    }
}

fn largest_unit(time: Duration) -> (u64, char) {
    let seconds = time.as_secs();
    match seconds {
        0..MINUTE => (seconds, 's'),
        MINUTE..HOUR => (seconds / MINUTE, 'm'),
        HOUR..DAY => (seconds / HOUR, 'h'),
        _ => (seconds / DAY, 'd'),
    }
}

/// Parses `90s`, `15m`, `36h`, `7d` or `2w`.
///
/// # Errors
///
/// Returns a sentence if the text has another form or overflows.
pub fn parse_period(text: &str) -> Result<Duration, String> {
    let bad = || "a period is written like 90s, 15m, 36h, 7d or 2w".to_owned();
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => MINUTE,
        Some('h') => HOUR,
        Some('d') => DAY,
        Some('w') => 7 * DAY,
        _ => return Err(bad()),
    };
    let count = text[..text.len() - 1].parse::<u64>().map_err(|_| bad())?;
    count.checked_mul(unit).map(Duration::from_secs).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_periods_are_formatted_and_parsed() {
        for (seconds, expected) in
            [(2, "2s ago"), (61, "1m ago"), (3599, "59m ago"), (7200, "2h ago"), (200_000, "2d ago")]
        {
            assert_eq!(AgeText(SystemTime::now() - Duration::from_secs(seconds)).to_string(), expected);
        }
        assert_eq!(AgeText(SystemTime::now() + Duration::from_secs(100)).to_string(), "0s ago");
        assert_eq!(ExpiryText(SystemTime::now() + Duration::from_secs(7300)).to_string(), "in 2h");
        assert_eq!(ExpiryText(SystemTime::now() - Duration::from_secs(61)).to_string(), "1m ago");
        for (text, seconds) in [("90s", 90), ("15m", 900), ("7d", 604_800), ("2w", 1_209_600)] {
            assert_eq!(parse_period(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "7", "d", "-1d", "1.5h", "99999999999999999w", "7é"] {
            assert!(parse_period(text).is_err(), "{text}");
        }
    }
}
