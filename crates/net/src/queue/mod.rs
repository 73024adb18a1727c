//! Queue disciplines of switch ports: what happens to a packet before the buffer is full.
//!
//! RED and marking judge a packet when it arrives, CoDel when its turn to be sent has come. DropTail is the absence of a
//! discipline: its ports never come here.

mod codel;
mod red;
mod spec;

pub(crate) use codel::CoDel;
pub(crate) use red::Red;
pub use spec::{QueueSetting, QueueSpec};

use crate::packet::{ECE, ECT, Kind, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which packets that cannot be marked a queue with ECN spares from early drops (seed 001, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Protect {
    /// Only ECN-capable packets, which are marked instead: what switches of today do.
    #[default]
    #[serde(rename = "ect")]
    Ect,
    /// Also packets with the ECN-Echo flag: SYN, SYN-ACK and acknowledgements that echo congestion.
    #[serde(rename = "ece")]
    Ece,
    /// Also every acknowledgement, SYN and SYN-ACK.
    #[serde(rename = "ack+syn")]
    AckSyn,
    /// Everything: no early drop at all (`nodrop` of Linux), true marking.
    #[serde(rename = "all")]
    All,
}

impl Protect {
    /// The word used in plans.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ect => "ect",
            Self::Ece => "ece",
            Self::AckSyn => "ack+syn",
            Self::All => "all",
        }
    }

    /// Whether a packet that cannot be marked is let through where others are dropped early.
    fn spares(self, packet: &Packet) -> bool {
        match self {
            Self::Ect => false,
            Self::Ece => packet.has(ECE),
            Self::AckSyn => packet.kind() != Kind::Data,
            Self::All => true,
        }
    }

    /// What becomes of a packet on which the queue wants to signal congestion.
    fn signal(self, packet: &Packet) -> Verdict {
        if packet.has(ECT) {
            Verdict::Mark
        } else if self.spares(packet) {
            Verdict::Pass
        } else {
            Verdict::Drop
        }
    }
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// What a port does besides first in, first out.
pub(crate) enum Discipline {
    DropTail,
    /// True simple marking: the threshold is the port's own `judge_packets` and `judge_bytes`.
    Mark,
    Red(Box<Red>),
    CoDel(Box<CoDel>),
}
