//! String formats. Only the syntax is checked, to catch typos; a valid address need not exist.

use std::fmt;

/// The required format of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextFormat {
    /// An email address.
    Email,
    /// An absolute URI.
    Uri,
    /// A day, as in `2026-07-28`.
    Date,
    /// A date and time with a UTC offset, as in `2026-07-28T12:00:00Z`.
    DateTime,
    /// A format the protocol does not define; not checked.
    Other(String),
}

impl TextFormat {
    pub(super) fn from_name(name: String) -> Self {
        match name.as_str() {
            "email" => Self::Email,
            "uri" => Self::Uri,
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            _ => Self::Other(name),
        }
    }

    /// Reports whether a string has this format.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
            Self::Date => is_date(text.as_bytes()),
            Self::DateTime => is_date_time(text.as_bytes()),
            Self::Other(_) => true,
        }
    }
}

impl fmt::Display for TextFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Email => "an email address",
            Self::Uri => "a URI",
            Self::Date => "a date like 2026-07-28",
            Self::DateTime => "a date and time like 2026-07-28T12:00:00Z",
            Self::Other(name) => name,
        })
    }
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let plain =
        |part: &str| !part.is_empty() && !part.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    plain(local) && !local.contains('@') && plain(domain) && domain.split('.').all(|label| !label.is_empty())
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme_fits = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let acts = |letter: char| letter.is_whitespace() || letter.is_control() || "\"<>\\^`{|}".contains(letter);
    scheme_fits && !rest.is_empty() && !rest.contains(acts)
}

/// Accepts `yyyy-mm-dd` if the day exists.
fn is_date(text: &[u8]) -> bool {
    let [year @ .., b'-', m1, m2, b'-', d1, d2] = text else { return false };
    if year.len() != 4 {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (number(year), number(&[*m1, *m2]), number(&[*d1, *d2])) else {
        return false;
    };
    (1..=days_in(year, month)).contains(&day)
}

fn days_in(year: u32, month: u32) -> u32 {
    let leap = (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => 0,
    }
}

/// Accepts an RFC 3339 timestamp: date, `T`, time with optional fraction, `Z` or offset.
fn is_date_time(text: &[u8]) -> bool {
    let Some((date, [b'T' | b't', time @ ..])) = text.split_at_checked(10) else { return false };
    let Some((clock, rest)) = time.split_at_checked(8) else { return false };
    let [h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return false };
    // Seconds may be 60: a leap second.
    let within = |digits: [u8; 2], most: u32| number(&digits).is_some_and(|value| value <= most);
    let offset = match rest {
        [b'.', fraction @ ..] => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 { return false } else { &fraction[digits..] }
        }
        rest => rest,
    };
    let offset_fits = match offset {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => within([*h1, *h2], 23) && within([*m1, *m2], 59),
        _ => false,
    };
    is_date(date) && within([*h1, *h2], 23) && within([*m1, *m2], 59) && within([*s1, *s2], 60) && offset_fits
}

fn number(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, good: &[&str], bad: &[&str]) {
        let format = TextFormat::from_name(format.to_owned());
        for text in good {
            assert!(format.matches(text), "{text}");
        }
        for text in bad {
            assert!(!format.matches(text), "{text}");
        }
    }

    #[test]
    fn formats_are_checked() {
        check(
            "email",
            &["a@b", "first.last+tag@mail.example", "ü@ü.example", "a@[127.0.0.1]"],
            &["", "a", "@b", "a@", "a b@c", "a@b..c", "a@.b", "a@b.", "a@b@c", "a@b\n"],
        );
        check(
            "uri",
            &["https://a.example/x?y#z", "mailto:a@b", "urn:isbn:1", "file:///x", "a+b-c.1:x"],
            &["", "a.example", "//a.example", "1a:b", ":x", "https:", "https://a b", "https://a<b", "h\u{e9}:x"],
        );
        check(
            "date",
            &["2026-07-28", "2024-02-29", "2000-02-29", "0001-01-01"],
            &["", "2026-7-28", "2026-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-04-31", "2026-01-00"],
        );
        check("date", &[], &["28.07.2026", "2026-07-28T00:00:00Z", "20260-01-01", "+026-01-01", "２026-01-01"]);
        check(
            "date-time",
            &["2026-07-28T12:00:00Z", "2026-07-28t23:59:60z", "2026-07-28T12:00:00.123+05:30"],
            &["2026-07-28", "2026-07-28T12:00:00", "2026-07-28 12:00:00Z", "2026-07-28T24:00:00Z", "2026-07-28T12:00Z"],
        );
        check("date-time", &[], &["2026-07-28T12:00:00.Z", "2026-07-28T12:00:00+0530", "2026-02-30T12:00:00Z", "é"]);
        check("password", &["anything", ""], &[]);
    }
}
