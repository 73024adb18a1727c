//! TCP without I/O: a sender and a receiver as values that the network drives with times and packets.
//!
//! Follows RFC 5681 (congestion control), 6298 (timer), 6582 and 6675 (loss recovery with SACK, without the rescue
//! retransmission), 9438 (CUBIC), 3168 (ECN), 8257 (DCTCP), 3390/6928 (initial window as configured). Works in whole segments of one size.
//! Not modelled: Nagle, urgent data, FIN, window probes (receivers read at once), RACK-TLP and tail loss probes.

mod cubic;
mod dctcp;
mod receiver;
mod scoreboard;
mod sender;

pub(crate) use receiver::{Receiver, Reply};
pub(crate) use sender::Sender;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Congestion control of all flows of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// NewReno with SACK (RFC 5681, 6582, 6675).
    #[default]
    NewReno,
    /// CUBIC with SACK (RFC 9438).
    Cubic,
    /// DCTCP (RFC 8257): NewReno that reduces its window by the share of marked bytes.
    Dctcp,
}

/// What all flows share, in the simulator's units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TcpConfig {
    pub variant: Variant,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Receive window in segments.
    pub window: u32,
    pub initial_window: u32,
    pub min_rto: u64,
    /// Segments for each delayed acknowledgement.
    pub ack_every: u32,
    pub delayed_ack: u64,
}

/// RFC 6298, 2.1: before any measurement.
pub(crate) const INITIAL_RTO: u64 = joulepath_units::PS_PER_S;
/// RFC 6298, 2.5.
pub(crate) const MAX_RTO: u64 = 60 * joulepath_units::PS_PER_S;
