//! The quantities and the few operations between them that keep their meaning.

use crate::text::{self, ParseError, Unit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($int:ty), base $base:literal, example $example:literal, units $units:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name($int);

        impl $name {
            const UNITS: &'static [Unit] = $units;
            /// Nothing of it.
            pub const ZERO: Self = Self(0);

            #[doc = concat!("From a count of base units (", $base, ").")]
            #[must_use]
            pub const fn from_base(value: $int) -> Self {
                Self(value)
            }

            #[doc = concat!("The count of base units (", $base, ").")]
            #[must_use]
            pub const fn base(self) -> $int {
                self.0
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(s: &str) -> Result<Self, ParseError> {
                let value = text::parse(s, Self::UNITS, $example, $base)?;
                <$int>::try_from(value).map(Self).map_err(|_| ParseError::TooLarge { found: s.trim().to_string() })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                #[allow(clippy::unnecessary_cast)]
                text::print(self.0 as u128, Self::UNITS, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "a text with a unit, for example {:?}", $example)
                    }
                    fn visit_str<E: de::Error>(self, v: &str) -> Result<$name, E> {
                        v.parse().map_err(E::custom)
                    }
                    fn visit_u64<E: de::Error>(self, v: u64) -> Result<$name, E> {
                        Err(E::custom(ParseError::NoUnit { found: v.to_string(), example: $example }))
                    }
                    fn visit_i64<E: de::Error>(self, v: i64) -> Result<$name, E> {
                        Err(E::custom(ParseError::NotANumber { found: v.to_string(), example: $example }))
                    }
                    fn visit_f64<E: de::Error>(self, v: f64) -> Result<$name, E> {
                        Err(E::custom(ParseError::NoUnit { found: v.to_string(), example: $example }))
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "x-quantity": stringify!($name), "examples": [$example] })
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
    };
}

const TIME: &[Unit] = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("µs", 1_000_000),
    ("μs", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
    ("min", 60_000_000_000_000),
    ("h", 3_600_000_000_000_000),
];

quantity! {
    /// A length of time in picoseconds (at most 213 days).
    Span(u64), base "ps", example "120 us", units TIME
}
quantity! {
    /// An amount of data in bytes.
    Bytes(u64), base "B", example "64 KiB", units &[
        ("B", 1), ("KB", 1_000), ("kB", 1_000), ("KiB", 1 << 10), ("MB", 1_000_000), ("MiB", 1 << 20),
        ("GB", 1_000_000_000), ("GiB", 1 << 30), ("TB", 1_000_000_000_000), ("TiB", 1 << 40),
    ]
}
quantity! {
    /// A data rate in bits per second.
    BitRate(u64), base "b/s", example "10 Gb/s", units &[
        ("b/s", 1), ("kb/s", 1_000), ("Kb/s", 1_000), ("Mb/s", 1_000_000), ("Gb/s", 1_000_000_000), ("Tb/s", 1_000_000_000_000),
    ]
}
quantity! {
    /// Power in microwatts.
    Power(u64), base "uW", example "2.5 W", units &[("uW", 1), ("mW", 1_000), ("W", 1_000_000), ("kW", 1_000_000_000), ("MW", 1_000_000_000_000)]
}
quantity! {
    /// Energy in attojoules: microwatts times picoseconds is 1e-18 J exactly.
    Energy(u128), base "aJ", example "3.2 kJ", units &[
        ("aJ", 1), ("pJ", 1_000_000), ("nJ", 1_000_000_000), ("uJ", 1_000_000_000_000), ("mJ", 1_000_000_000_000_000),
        ("J", 1_000_000_000_000_000_000), ("kJ", 1_000_000_000_000_000_000_000), ("MJ", 1_000_000_000_000_000_000_000_000),
        ("kWh", 3_600_000_000_000_000_000_000_000),
    ]
}
quantity! {
    /// A frequency in hertz.
    Frequency(u64), base "Hz", example "2.5 GHz", units &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)]
}

/// A point of virtual time: picoseconds since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const NEVER: Self = Self(u64::MAX);

    /// From picoseconds since the start of the run.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the start of the run.
    #[must_use]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`; `earlier` must not be later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Span {
        debug_assert!(self >= earlier, "time runs forward");
        Span(self.0 - earlier.0)
    }

    /// Seconds since the start of the run, rounded to a double.
    #[must_use]
    pub fn seconds(self) -> f64 {
        Span(self.0).seconds()
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}

impl Span {
    /// The nearest span to a number of seconds; negative and not-a-number give zero, beyond the range the largest.
    #[must_use]
    pub fn from_seconds(seconds: f64) -> Self {
        Self((seconds * 1e12).round() as u64)
    }

    /// Seconds, rounded to a double.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl Power {
    /// Watts, rounded to a double.
    #[must_use]
    pub fn watts(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Energy {
    /// Joules, rounded to a double.
    #[must_use]
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1e18
    }
}

impl BitRate {
    /// Bits per second as a double.
    #[must_use]
    pub fn bps(self) -> f64 {
        self.0 as f64
    }

    /// Time on the wire for `size`, rounded up to a picosecond (exact for every Ethernet rate).
    #[must_use]
    pub fn time_for(self, size: Bytes) -> Span {
        let ps = (u128::from(size.0) * 8 * 1_000_000_000_000).div_ceil(u128::from(self.0.max(1)));
        Span(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_exactly() {
        assert_eq!("4.48 us".parse(), Ok(Span(4_480_000)));
        assert_eq!("10Gb/s".parse(), Ok(BitRate(10_000_000_000)));
        assert_eq!("64 KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("0.5 W".parse(), Ok(Power(500_000)));
        assert_eq!("1_000 B".parse(), Ok(Bytes(1000)));
    }

    #[test]
    fn prints_what_it_parses() {
        for text in ["4.48 us", "200 ms", "12 us", "1 s", "0 ps", "999999 ps", "1 h", "90 s"] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string().parse(), Ok(span), "{text} -> {span}");
        }
        assert_eq!("128 KB".parse::<Bytes>().unwrap().to_string(), "128 KB");
        assert_eq!("10000 Mb/s".parse::<BitRate>().unwrap().to_string(), "10 Gb/s");
    }

    #[test]
    fn every_refusal_says_what_to_write() {
        let message = |text: &str| text.parse::<Span>().unwrap_err().to_string();
        assert_eq!(message("120"), "found \"120\" without a unit; write it with one, for example \"120 us\"");
        assert_eq!(message("-1 s"), "found \"-1 s\", which is not a non-negative number with a unit; write for example \"120 us\"");
        assert!(message("3 parsec").contains("use one of ps, ns, us"));
        assert!(message("0.5 ps").contains("finer than the resolution of 1 ps"));
        assert!(message("99999999999999 h").contains("larger than can be held"));
        assert!(message("1.2.3 s").contains("not a non-negative number"));
    }

    #[test]
    fn wire_time_is_exact() {
        let rate: BitRate = "10 Gb/s".parse().unwrap();
        assert_eq!(rate.time_for(Bytes(1538)), Span(1_230_400));
    }
}
