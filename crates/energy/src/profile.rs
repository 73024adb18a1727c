//! What a device draws in each of its states.

use crate::Evidence;
use joulepath_units::Power;

/// The power of each state of a device, with where the numbers come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerProfile {
    /// Name shown to people, for example `10GBASE-T`.
    pub name: String,
    /// Names of the states, in the order of the state numbers that the device announces.
    pub states: Vec<&'static str>,
    /// Power in each state.
    pub power: Vec<Power>,
    /// How these powers are known.
    pub evidence: Evidence,
    /// Where they are from.
    pub source: String,
}
