//! Exact JSON numbers. They are never rounded, and a comparison never expands an exponent.

use std::cmp::Ordering;
use std::fmt;

/// A JSON number that preserves its text and compares by value.
#[derive(Debug, Clone)]
pub struct JsonNumber {
    text: String,
    decimal: DecimalValue,
}

/// A value as `0.digits × 10^point`, the digits without zeros at either end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DecimalValue {
    negative: bool,
    digits: Vec<u8>,
    point: i64,
}

/// Limit at which exponents saturate.
const MAX_EXPONENT: i64 = 1 << 40;

impl JsonNumber {
    /// Parses a string that consists of one JSON number.
    pub fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, is_digits(fraction).then_some(fraction)?),
            None => (mantissa, ""),
        };
        if !is_digits(whole) || (whole.len() > 1 && whole.starts_with('0')) {
            return None;
        }
        let decimal = DecimalValue::new(text.starts_with('-'), whole, fraction, exponent);
        Some(Self { text: text.to_owned(), decimal })
    }

    /// Returns the number as written.
    pub fn get(&self) -> &str {
        &self.text
    }

    /// Reports whether the fraction is zero. `1.0` and `1e3` are integers in JSON Schema.
    pub fn is_integer(&self) -> bool {
        i64::try_from(self.decimal.digits.len()).is_ok_and(|digits| digits <= self.decimal.point)
            || self.decimal.digits.is_empty()
    }
}

impl DecimalValue {
    fn new(negative: bool, whole: &str, fraction: &str, exponent: i64) -> Self {
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let first = all.iter().position(|digit| *digit != b'0').unwrap_or(all.len());
        let end = all.iter().rposition(|digit| *digit != b'0').map_or(first, |last| last + 1);
        let length = |count: usize| i64::try_from(count).unwrap_or(MAX_EXPONENT);
        let point = exponent.saturating_add(length(whole.len())).saturating_sub(length(first));
        Self { negative, digits: all[first..end].to_vec(), point }
    }

    /// Returns −1, 0 or 1.
    fn sign(&self) -> i8 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn read_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let size = is_digits(digits).then(|| digits.parse().map_or(MAX_EXPONENT, |size: i64| size.min(MAX_EXPONENT)))?;
    Some(if text.starts_with('-') { -size } else { size })
}

impl Ord for JsonNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, two) = (&self.decimal, &other.decimal);
        let size = || one.point.cmp(&two.point).then_with(|| one.digits.cmp(&two.digits));
        one.sign().cmp(&two.sign()).then_with(|| match one.sign() {
            0 => Ordering::Equal,
            1 => size(),
            _ => size().reverse(),
        })
    }
}

impl PartialOrd for JsonNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for JsonNumber {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for JsonNumber {}

impl fmt::Display for JsonNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> JsonNumber {
        JsonNumber::parse(text).unwrap_or_else(|| panic!("{text} is a number"))
    }

    #[test]
    fn only_json_numbers_parse() {
        let numbers = ["0", "-0", "7", "-7", "1.50", "1e5", "1E+5", "1e-5", "0.001", "12345678901234567890123"];
        for text in numbers {
            assert_eq!(number(text).get(), text);
            assert!(serde_json::from_str::<f64>(text).is_ok(), "{text}");
        }
        for text in ["", "-", "+1", ".5", "1.", "01", "1e", "1e+", "0x1", "NaN", "1 ", "１", "1,5", "--1", "1.2.3"] {
            assert_eq!(JsonNumber::parse(text), None, "{text}");
        }
    }

    #[test]
    fn values_are_compared_exactly() {
        let rising = [
            "-1e9999999999999999999999",
            "-9007199254740993",
            "-9007199254740992",
            "-1.5",
            "-1",
            "-1e-99",
            "0",
            "1e-99",
            "0.1",
            "0.11",
            "1",
            "9",
            "10",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551616",
            "1e400",
        ];
        for (one, text) in rising.iter().enumerate() {
            for (two, other) in rising.iter().enumerate() {
                assert_eq!(number(text).cmp(&number(other)), one.cmp(&two), "{text} {other}");
            }
        }
        for (one, two) in [("0", "-0.00e7"), ("1", "1.0"), ("1e3", "1000"), ("0.001", "1e-3"), ("120", "1.2E2")] {
            assert_eq!(number(one), number(two));
        }
    }

    #[test]
    fn integers_are_detected_by_value() {
        for (text, whole) in [
            ("0", true),
            ("0.0", true),
            ("1.0", true),
            ("1e3", true),
            ("1.5e1", true),
            ("18446744073709551617", true),
            ("1.5", false),
            ("1e-1", false),
            ("1.55e1", false),
            ("0e-5", true),
        ] {
            assert_eq!(number(text).is_integer(), whole, "{text}");
        }
    }
}
