//! Formats and parses times and durations.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wharf_spec::Timestamp;

/// Formats a duration: `12 ms`, `1.3 s`, `1m 05s`.
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            millis @ 0..1000 => write!(f, "{millis} ms"),
            1000..60_000 => write!(f, "{:.1} s", self.0.as_secs_f64()),
            _ => write!(f, "{}m {:02}s", self.0.as_secs() / 60, self.0.as_secs() % 60),
        }
    }
}

/// Returns whole milliseconds, for documents.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Converts Unix milliseconds to a time. Clamps to the end of the year 9999.
pub fn unix_time(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis.min(253_402_300_799_000))
}

/// Formats a time as RFC 3339 in UTC, to the millisecond.
pub fn timestamp(time: SystemTime) -> String {
    Timestamp(time).to_string()
}

/// Parses the output of [`timestamp`].
pub fn parse_timestamp(text: &str) -> Option<SystemTime> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (hours, millis) = time.split_once('.')?;
    let number = |text: &str| text.parse::<u64>().ok();
    let [year, month, day]: [u64; 3] = date.split('-').filter_map(number).collect::<Vec<_>>().try_into().ok()?;
    let [hour, minute, second]: [u64; 3] = hours.split(':').filter_map(number).collect::<Vec<_>>().try_into().ok()?;
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // In years that begin in March, the leap day is the last day.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    Some(unix_time(seconds * 1000 + number(millis)?.min(999)))
}

/// Formats the time of day in UTC, to the second.
pub fn time_of_day(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip() {
        for millis in [0, 951_782_400_007, 951_868_800_000, 1_785_196_799_999, 4_107_542_400_000, 253_402_300_799_000] {
            let time = unix_time(millis);
            assert_eq!(parse_timestamp(&timestamp(time)), Some(time), "{millis}");
        }
        for text in
            ["", "soon", "2026-07-27", "2026-13-27T23:59:59.999Z", "1969-07-27T23:59:59.999Z", "2026-07T1:2:3.4Z"]
        {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn times_and_durations_are_formatted() {
        assert_eq!(timestamp(unix_time(u64::MAX)), "9999-12-31T23:59:59.000Z");
        assert_eq!(time_of_day(UNIX_EPOCH + Duration::from_millis(1_785_196_799_999)), "23:59:59");
        for (millis, expected) in [(0, "0 ms"), (999, "999 ms"), (1000, "1.0 s"), (3_240, "3.2 s"), (65_000, "1m 05s")]
        {
            assert_eq!(DurationText(Duration::from_millis(millis)).to_string(), expected);
        }
    }
}
