//! Virtual time: event sets that hold sources instead of events, and random streams that never disturb each other.
//!
//! The engine knows no packet and no watt. It is deterministic: equal times are served in a fixed order.

mod random;
mod timers;
mod tournament;

pub use random::Stream;
pub use timers::Timers;
pub use tournament::Tournament;
