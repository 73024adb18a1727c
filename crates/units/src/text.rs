//! One parser and one printer for every quantity.

use std::fmt;

/// Why a text is not a quantity. Every variant says what was found and what to write.
#[allow(missing_docs, reason = "the fields are named by their meaning")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseError {
    /// A number without a unit.
    NoUnit { found: String, example: &'static str },
    /// A unit that this quantity does not have.
    UnknownUnit { found: String, expected: String },
    /// Something that is not a non-negative decimal number.
    NotANumber { found: String, example: &'static str },
    /// A value that the base unit cannot hold exactly.
    TooFine { found: String, base: &'static str },
    /// A value beyond the largest that can be held.
    TooLarge { found: String },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUnit { found, example } => {
                write!(f, "found {found:?} without a unit; write it with one, for example {example:?}")
            }
            Self::UnknownUnit { found, expected } => {
                write!(f, "found {found:?}, whose unit is not known here; use one of {expected}")
            }
            Self::NotANumber { found, example } => {
                write!(f, "found {found:?}, which is not a non-negative number with a unit; write for example {example:?}")
            }
            Self::TooFine { found, base } => {
                write!(f, "found {found:?}, which is finer than the resolution of 1 {base}; round it")
            }
            Self::TooLarge { found } => write!(f, "found {found:?}, which is larger than can be held; use a smaller value"),
        }
    }
}

impl std::error::Error for ParseError {}

/// A unit: its symbol (the first of a size is the one printed) and its size in base units.
pub(crate) type Unit = (&'static str, u128);

/// Parses `"<decimal> <unit>"` (the space may be missing) into base units.
pub(crate) fn parse(text: &str, units: &[Unit], example: &'static str, base: &'static str) -> Result<u128, ParseError> {
    let trimmed = text.trim();
    let found = || shorten(trimmed);
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim());
    let not_a_number = || ParseError::NotANumber { found: found(), example };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(not_a_number());
    }
    if unit.is_empty() {
        return Err(ParseError::NoUnit { found: found(), example });
    }
    let Some(&(_, size)) = units.iter().find(|(symbol, _)| *symbol == unit) else {
        let expected = units.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
        return Err(ParseError::UnknownUnit { found: found(), expected });
    };
    let too_large = || ParseError::TooLarge { found: found() };
    let mut mantissa: u128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()).filter(|b| *b != b'_') {
        mantissa = mantissa.checked_mul(10).and_then(|m| m.checked_add(u128::from(digit - b'0'))).ok_or_else(too_large)?;
    }
    let places = fraction.bytes().filter(|b| *b != b'_').count();
    let scale = u32::try_from(places).ok().and_then(|p| 10u128.checked_pow(p)).ok_or_else(too_large)?;
    let scaled = mantissa.checked_mul(size).ok_or_else(too_large)?;
    if scaled % scale != 0 {
        return Err(ParseError::TooFine { found: found(), base });
    }
    Ok(scaled / scale)
}

/// Prints base units exactly, in the unit that gives the shortest text.
pub(crate) fn print(value: u128, units: &[Unit], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let texts = units.iter().filter_map(|&(symbol, size)| exactly(value, size).map(|number| format!("{number} {symbol}")));
    let zero = || format!("0 {}", units[0].0);
    f.write_str(&if value == 0 { zero() } else { texts.min_by_key(String::len).unwrap_or_else(zero) })
}

/// `value / size` as a decimal number of at most six places, if it is one.
fn exactly(value: u128, size: u128) -> Option<String> {
    let (whole, rest) = (value / size, value % size);
    let micro = rest.checked_mul(1_000_000).filter(|r| r % size == 0)? / size;
    if micro == 0 {
        return Some(whole.to_string());
    }
    Some(format!("{whole}.{micro:06}").trim_end_matches('0').to_string())
}

fn shorten(text: &str) -> String {
    if text.chars().count() > 60 { text.chars().take(57).chain("...".chars()).collect() } else { text.to_string() }
}
