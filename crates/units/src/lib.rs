//! Physical quantities: exact integers inside, text with a unit outside.
//!
//! A quantity is a newtype over an integer count of its base unit, so sums are exact and independent of order.
//! Text is parsed decimally (never through floating point) and must carry a unit: see [`ParseError`].
//! `b` is a bit, `B` is a byte; `KB` is 1000 bytes, `KiB` is 1024.

mod quantity;
mod text;

pub use quantity::{BitRate, Bytes, Energy, Frequency, Instant, Power, Span};
pub use text::ParseError;

/// Picoseconds in a second.
pub const PS_PER_S: u64 = 1_000_000_000_000;
