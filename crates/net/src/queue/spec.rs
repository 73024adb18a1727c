//! Queue disciplines as a plan gives them: their parameters, thresholds at a port's rate, checks and warnings.

use super::{CoDel, Discipline, Protect, Red};
use crate::spec::{Buffer, Threshold};
use crate::topology::PortClass;
use joulepath_engine::Stream;
use joulepath_units::{BitRate, Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Queue disciplines: what a port does before its buffer is full. With ECN-capable transport it marks where it would drop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum QueueSpec {
    /// Nothing: packets are dropped when the buffer is full.
    #[default]
    DropTail,
    /// True simple marking: ECN-capable packets that find the threshold in the buffer are marked, nothing is dropped early.
    Mark {
        /// Bytes, or packets as `"65 packets"`.
        threshold: Threshold,
    },
    /// Random Early Detection. Give `min` and `max`, or `target`.
    Red {
        /// Where marking or dropping begins: bytes, or packets as `"12.5 packets"`.
        #[serde(default)]
        min: Option<Threshold>,
        /// From where every packet is marked or dropped.
        #[serde(default)]
        max: Option<Threshold>,
        /// The delay to aim at: `min` is half of what a port sends in this time, at least 5 packets, and `max` three times `min`.
        #[serde(default)]
        target: Option<Span>,
        /// Mean packet that `target` and the average's decay reckon with.
        #[serde(default = "mean_packet")]
        mean_packet: Bytes,
        /// Probability of a mark or drop just below `max`.
        #[serde(default = "tenth")]
        max_probability: f64,
        /// Whether the probability rises from there to one at twice `max`, instead of jumping.
        #[serde(default)]
        gentle: bool,
        /// Weight of the present length in the moving average; 1 is the length of the moment, 0.002 the classic average.
        #[serde(default = "unity")]
        weight: f64,
        /// Which packets that cannot be marked are spared.
        #[serde(default)]
        protect: Protect,
    },
    /// Controlled Delay (RFC 8289), judged when a packet's turn comes.
    CoDel {
        /// Delay that is acceptable for good.
        target: Span,
        /// For how long it may be exceeded.
        interval: Span,
        /// Which packets that cannot be marked are spared.
        #[serde(default)]
        protect: Protect,
    },
}

/// The queue discipline of a class of ports, worked out for their rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueSetting {
    /// The class.
    pub class: PortClass,
    /// Rate of the ports.
    pub rate_bps: u64,
    /// The word of the plan.
    pub kind: &'static str,
    /// Where marking or early drops begin, in `unit`.
    pub min: Option<f64>,
    /// From where on they are certain, in `unit`.
    pub max: Option<f64>,
    /// `packets` or `bytes`.
    pub unit: Option<&'static str>,
    /// Bytes of a full frame on the wire, which turn packets into bytes.
    pub frame_bytes: u16,
    /// What cannot happen, in words.
    pub warning: Option<String>,
}

impl QueueSpec {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::DropTail => "droptail",
            Self::Mark { .. } => "mark",
            Self::Red { .. } => "red",
            Self::CoDel { .. } => "codel",
        }
    }

    /// RED's thresholds at a port of this rate, in packets or bytes (true).
    pub(crate) fn red_thresholds(&self, rate: BitRate) -> (f64, f64, bool) {
        match self {
            Self::Red { min: Some(min), max: Some(max), .. } => (min.value().0, max.value().0, min.value().1),
            Self::Red { target: Some(target), mean_packet, .. } => {
                let packets_per_second = rate.bps() / 8.0 / mean_packet.base() as f64;
                let min = (target.seconds() * packets_per_second / 2.0).max(5.0);
                (min, 3.0 * min, false)
            }
            _ => unreachable!("RED with thresholds or a target: check() has seen to it"),
        }
    }

    /// The discipline of a port, and from how much in the buffer on (packets, bytes) it judges arriving packets.
    pub(crate) fn discipline(&self, rate: BitRate, frame: u16, random: impl FnOnce() -> Stream) -> (Discipline, u32, u32) {
        match self {
            Self::DropTail => (Discipline::DropTail, u32::MAX, u32::MAX),
            Self::Mark { threshold } => {
                let (packets, bytes) = threshold.reached_at();
                (Discipline::Mark, packets, bytes)
            }
            Self::Red { mean_packet, max_probability, gentle, weight, protect, .. } => {
                let (min, max, in_bytes) = self.red_thresholds(rate);
                let packet_time = (mean_packet.base() as f64 * 8e12 / rate.bps()) as u64;
                let red = Red::new((min, max, in_bytes), *max_probability, *gentle, *weight, *protect, packet_time.max(1), random());
                let (packets, bytes) = match (*weight < 1.0, in_bytes) {
                    (true, _) => (0, 0),
                    (false, true) => (u32::MAX, min.ceil() as u32),
                    (false, false) => (min.ceil() as u32, u32::MAX),
                };
                (Discipline::Red(Box::new(red)), packets, bytes)
            }
            Self::CoDel { target, interval, protect } => {
                let codel = CoDel::new(target.base(), interval.base(), *protect, u32::from(frame));
                (Discipline::CoDel(Box::new(codel)), u32::MAX, u32::MAX)
            }
        }
    }

    /// What can never happen at a port of this rate and buffer, if anything.
    pub(crate) fn warning(&self, rate: BitRate, buffer: Buffer, frame: u16) -> Option<String> {
        let (limit_packets, limit_bytes) = match buffer {
            Buffer::Packets(n) => (n, u64::from(n) * u64::from(frame)),
            Buffer::Bytes(b) => ((b.base() / u64::from(frame)) as u32, b.base()),
        };
        let limit = |in_bytes: bool| if in_bytes { limit_bytes as f64 } else { f64::from(limit_packets) };
        let unit = |in_bytes: bool| if in_bytes { "B" } else { "packets" };
        match self {
            Self::DropTail => None,
            Self::Mark { threshold } => {
                let (value, in_bytes) = threshold.value();
                (value >= limit(in_bytes)).then(|| {
                    format!("marking starts at {value} {}, which a buffer of {buffer} does not reach with full frames", unit(in_bytes))
                })
            }
            Self::Red { .. } => {
                let (min, max, in_bytes) = self.red_thresholds(rate);
                let u = unit(in_bytes);
                if min >= limit(in_bytes) {
                    Some(format!("RED starts at {min} {u}, which a buffer of {buffer} never reaches: these ports are DropTail"))
                } else if max >= limit(in_bytes) {
                    Some(format!("RED's upper threshold, {max} {u}, is beyond a buffer of {buffer}: it is never reached"))
                } else {
                    None
                }
            }
            Self::CoDel { target, interval, .. } => {
                let drain = limit_bytes as f64 * 8.0 / rate.bps();
                if target.seconds() >= drain {
                    let drain = Span::from_seconds(drain);
                    Some(format!(
                        "CoDel's target, {target}, is longer than a full buffer of {buffer} takes to send ({drain}): it never acts"
                    ))
                } else if interval < target {
                    Some(format!(
                        "CoDel's interval, {interval}, is shorter than its target, {target}; expected the longest round-trip time"
                    ))
                } else {
                    None
                }
            }
        }
    }

    /// Checks what types cannot.
    pub(crate) fn check(&self, key: &str, buffer: Buffer, ecn: bool) -> Result<(), String> {
        let refuse = |bad: bool, name: &str, found: &dyn std::fmt::Display, expected: &str| {
            if bad { Err(format!("{key}.{name}: found {found}; expected {expected}")) } else { Ok(()) }
        };
        let longest = Span::from_base(10 * joulepath_units::PS_PER_S);
        let protected = |protect: Protect| {
            let without = protect != Protect::Ect && !ecn;
            refuse(
                without,
                "protect",
                &format!("{:?} while no packet is ECN-capable", protect.as_str()),
                "tcp.ecn = true or tcp.variant = \"dctcp\" with it",
            )
        };
        let below = |threshold: Threshold, name: &str| match (threshold, buffer) {
            (Threshold::Packets(t), Buffer::Packets(limit)) if t >= f64::from(limit) => {
                refuse(true, name, &threshold, &format!("less than the buffer, {buffer} (ports.buffer): it would never be reached"))
            }
            (Threshold::Bytes(t), Buffer::Bytes(limit)) if t >= limit => {
                refuse(true, name, &threshold, &format!("less than the buffer, {buffer} (ports.buffer): it would never be reached"))
            }
            _ => Ok(()),
        };
        match self {
            Self::DropTail => Ok(()),
            Self::Mark { threshold } => below(*threshold, "threshold"),
            Self::Red { min, max, target, mean_packet, max_probability, weight, protect, .. } => {
                match (min, max, target) {
                    (Some(min), Some(max), None) => {
                        refuse(min.value().1 != max.value().1, "max", max, &format!("the unit of min, {min}"))?;
                        refuse(min.value().0 > max.value().0, "min", min, &format!("at most max, {max}"))?;
                        below(*min, "min")?;
                    }
                    (None, None, Some(target)) => refuse(*target == Span::ZERO || *target > longest, "target", target, "above 0, to 10 s")?,
                    (None, None, None) => return Err(format!("{key}: found RED without thresholds; expected min and max, or target")),
                    (_, _, Some(target)) => {
                        return Err(format!("{key}.target: found {target} beside min or max; expected min and max, or target alone"));
                    }
                    (None, ..) => return Err(format!("{key}.min: found nothing; expected it beside max")),
                    (_, None, _) => return Err(format!("{key}.max: found nothing; expected it beside min")),
                }
                let size = mean_packet.base();
                refuse(!(40..=65_000).contains(&size), "mean_packet", mean_packet, "40 B to 65000 B")?;
                let p = *max_probability;
                refuse(!(p > 0.0 && p <= 1.0), "max_probability", &p, "a probability above 0, at most 1")?;
                refuse(!(*weight > 0.0 && *weight <= 1.0), "weight", weight, "above 0, at most 1 (no averaging)")?;
                protected(*protect)
            }
            Self::CoDel { target, interval, protect } => {
                refuse(*target == Span::ZERO || *target > longest, "target", target, "above 0, to 10 s")?;
                refuse(*interval == Span::ZERO || *interval > longest, "interval", interval, "above 0, to 10 s")?;
                protected(*protect)
            }
        }
    }
}

fn mean_packet() -> Bytes {
    Bytes::from_base(500)
}

fn tenth() -> f64 {
    0.1
}

fn unity() -> f64 {
    1.0
}
