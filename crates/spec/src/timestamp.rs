//! Timestamps in files and documents.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A time that is displayed in RFC 3339 format, in UTC, to the millisecond, or with `{:.0}` to the second. Times before
/// 1970 are displayed as 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub SystemTime);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.0.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (year, month, day) = civil_date(since.as_secs() / 86_400);
        let seconds = since.as_secs() % 86_400;
        let (hour, minute, second, milli) = (seconds / 3600, seconds / 60 % 60, seconds % 60, since.subsec_millis());
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        match f.precision() {
            Some(0) => f.write_str("Z"),
            _ => write!(f, ".{milli:03}Z"),
        }
    }
}

/// Returns year, month and day for a number of days since 1970-01-01. Eras of 400 years start on the first of March.
pub fn civil_date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn timestamps_are_formatted_as_rfc_3339() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_007, "2000-02-29T00:00:00.007Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_785_196_799_999, "2026-07-27T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            let time = Timestamp(UNIX_EPOCH + Duration::from_millis(millis));
            assert_eq!(time.to_string(), expected);
            assert_eq!(format!("{time:.0}"), format!("{}Z", &expected[..19]));
        }
    }
}
