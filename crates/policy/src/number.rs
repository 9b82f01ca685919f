//! Alternative spellings of JSON numbers.

/// Maximum digits of a number that is written out.
const MAX_DIGITS: i64 = 64;

/// Returns every spelling of a number: as sent, in plain decimal, and as a parser with 64-bit floats reads it.
pub(crate) fn spellings(text: &str) -> Vec<String> {
    let mut list = vec![text.to_owned()];
    list.extend(plain_decimal(text));
    list.extend(text.parse::<f64>().ok().map(|float| if float == 0.0 { "0".to_owned() } else { float.to_string() }));
    list.dedup();
    list
}

/// Returns the exact value without exponent and superfluous zeros, or `None` if it is too long.
fn plain_decimal(text: &str) -> Option<String> {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let trimmed = digits.trim_start_matches('0');
    if trimmed.is_empty() {
        return Some("0".to_owned());
    }
    let leading = i64::try_from(digits.len() - trimmed.len()).ok()?;
    let point = i64::try_from(whole.len()).ok()?.checked_add(exponent.parse().ok()?)?.checked_sub(leading)?;
    Some(format!("{sign}{}", insert_decimal_point(trimmed.trim_end_matches('0'), point)?))
}

/// Inserts the decimal point after `point` digits, with zeros added before or after the digits as needed.
fn insert_decimal_point(digits: &str, point: i64) -> Option<String> {
    let count = i64::try_from(digits.len()).ok()?;
    if count > MAX_DIGITS || !(-MAX_DIGITS..=MAX_DIGITS).contains(&point) {
        return None;
    }
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    if point <= 0 {
        return Some(format!("0.{}{digits}", zeros(-point)));
    }
    if point >= count {
        return Some(format!("{digits}{}", zeros(point - count)));
    }
    let (whole, fraction) = digits.split_at(usize::try_from(point).ok()?);
    Some(format!("{whole}.{fraction}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_raw_and_normalized_spellings() {
        for (text, expected) in [
            ("100", &["100"][..]),
            ("1e2", &["1e2", "100"]),
            ("1.0E+2", &["1.0E+2", "100"]),
            ("100.00", &["100.00", "100"]),
            ("-0.0", &["-0.0", "0"]),
            ("0e99", &["0e99", "0"]),
            ("-12.50e-1", &["-12.50e-1", "-1.25"]),
            ("5e-3", &["5e-3", "0.005"]),
            ("9007199254740993", &["9007199254740993", "9007199254740992"]),
            ("1e-99999999999999999999", &["1e-99999999999999999999", "0"]),
            ("1e999", &["1e999", "inf"]),
        ] {
            assert_eq!(spellings(text), expected, "{text}");
        }
    }
}
