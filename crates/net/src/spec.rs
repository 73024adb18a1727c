//! The parameters of a network, as a plan gives them. This file is where they are defined and documented.

use crate::eee::Policy;
use crate::observe::ObserveSpec;
use crate::phy::{Phy, phys};
use crate::queue::{QueueSetting, QueueSpec};
use crate::tcp::Variant;
use crate::topology::PortClass;
use joulepath_energy::Evidence;
use joulepath_units::{BitRate, Bytes, Power, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

/// Everything that makes a network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSpec {
    /// Which hosts, switches and links there are.
    pub topology: TopologySpec,
    /// Buffers and framing.
    pub ports: PortsSpec,
    /// Energy Efficient Ethernet.
    pub eee: EeeSpec,
    /// Transport.
    pub tcp: TcpSpec,
    /// What to show beyond sums.
    pub observe: ObserveSpec,
}

/// Hosts, switches and links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TopologySpec {
    /// Racks under one or more spine switches: with one spine the two-rack cluster of seed 000, with two the leaf-spine of seed 001.
    LeafSpine {
        /// Racks, each with one top-of-rack switch.
        #[serde(default = "d::racks")]
        racks: u32,
        /// Hosts in all racks together; as even as possible.
        #[serde(default = "d::nodes")]
        nodes: u32,
        /// Spine (aggregation) switches; flows are spread over them by ECMP.
        #[serde(default = "d::one")]
        spines: u32,
        /// Rate of the links of hosts.
        #[serde(default = "d::edge_rate")]
        edge_rate: BitRate,
        /// Rate of the links between switches.
        #[serde(default = "d::fabric_rate")]
        fabric_rate: BitRate,
        /// Propagation and forwarding delay of every link.
        #[serde(default = "d::delay")]
        delay: Span,
    },
    /// A three-tier fat tree of k-port switches with k^3/4 hosts.
    FatTree {
        /// Ports of a switch; even.
        k: u32,
        /// Rate of the links of hosts.
        #[serde(default = "d::edge_rate")]
        edge_rate: BitRate,
        /// Rate of the links between switches.
        #[serde(default = "d::fabric_rate")]
        fabric_rate: BitRate,
        /// Propagation and forwarding delay of every link.
        #[serde(default = "d::delay")]
        delay: Span,
    },
    /// A list of links. A name that occurs once is a host, every other one a switch.
    Links {
        /// The links; each carries both directions.
        links: Vec<LinkPair>,
    },
}

impl Default for TopologySpec {
    fn default() -> Self {
        Self::LeafSpine {
            racks: d::racks(),
            nodes: d::nodes(),
            spines: 1,
            edge_rate: d::edge_rate(),
            fabric_rate: d::fabric_rate(),
            delay: d::delay(),
        }
    }
}

/// A full-duplex link between two named nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkPair {
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// Rate in each direction.
    pub rate: BitRate,
    /// Propagation and forwarding delay.
    #[serde(default = "d::delay")]
    pub delay: Span,
}

/// Buffers and framing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PortsSpec {
    /// Buffer of every switch port, in bytes or as `"200 packets"`. A packet counts until its last bit has left.
    pub buffer: Buffer,
    /// Queue discipline of every switch port.
    pub queue: QueueSpec,
    /// Queue discipline of switch ports toward hosts, where it differs.
    pub edge_queue: Option<QueueSpec>,
    /// Queue discipline of ports between switches, where it differs.
    pub fabric_queue: Option<QueueSpec>,
    /// The queue of host network cards: `"pushback"` (senders wait for room, as on Linux, nothing is lost) or a limit that drops.
    pub nic_queue: NicQueue,
    /// Bytes on the wire beyond the IP packet: header, frame check, preamble and gap. With `"0 B"` frames have no minimum size either.
    pub overhead: Bytes,
    /// A fixed latency added to every link, for experiments.
    pub extra_latency: Span,
}

impl Default for PortsSpec {
    fn default() -> Self {
        Self {
            buffer: Buffer::Bytes(Bytes::from_base(128_000)),
            queue: QueueSpec::DropTail,
            edge_queue: None,
            fabric_queue: None,
            nic_queue: NicQueue::Pushback,
            overhead: Bytes::from_base(38),
            extra_latency: Span::ZERO,
        }
    }
}

impl PortsSpec {
    /// The queue discipline of a class of ports and its key in the plan.
    pub(crate) fn queue_of(&self, class: PortClass) -> (&'static str, &QueueSpec) {
        let own = match class {
            PortClass::Nic => return ("ports.nic_queue", &QueueSpec::DropTail),
            PortClass::Edge => self.edge_queue.as_ref().map(|q| ("ports.edge_queue", q)),
            PortClass::Uplink | PortClass::Core => self.fabric_queue.as_ref().map(|q| ("ports.fabric_queue", q)),
        };
        own.unwrap_or(("ports.queue", &self.queue))
    }
}

/// A length of a queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// In bytes on the wire.
    Bytes(Bytes),
    /// In packets of any size; means of automatic settings have fractions.
    Packets(f64),
}

impl Threshold {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |n: &str| n.trim().parse::<f64>().ok().filter(|n| *n > 0.0 && *n <= 1e9);
        let packets = text.trim().strip_suffix("packets").or_else(|| text.trim().strip_suffix("packet"));
        match packets {
            Some(n) => number(n)
                .map(Self::Packets)
                .ok_or_else(|| format!("found {text:?}; expected a positive number of packets, for example \"65 packets\"")),
            None => match text.parse::<Bytes>() {
                Ok(bytes) if (1..=1 << 31).contains(&bytes.base()) => Ok(Self::Bytes(bytes)),
                Ok(_) => Err(format!("found {text:?}; expected 1 B to 2 GiB, or \"65 packets\"")),
                Err(e) => Err(format!("{e}, or \"65 packets\"")),
            },
        }
    }

    /// The number and whether it counts bytes.
    pub(crate) fn value(self) -> (f64, bool) {
        match self {
            Self::Bytes(b) => (b.base() as f64, true),
            Self::Packets(n) => (n, false),
        }
    }

    /// The smallest lengths (packets, bytes) that reach it.
    pub(crate) fn reached_at(self) -> (u32, u32) {
        match self {
            Self::Bytes(b) => (u32::MAX, b.base() as u32),
            Self::Packets(n) => (n.ceil() as u32, u32::MAX),
        }
    }
}

/// The limit of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// In bytes on the wire.
    Bytes(Bytes),
    /// In packets of any size.
    Packets(u32),
}

/// The queue of a host's network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NicQueue {
    /// Senders wait for room.
    Pushback,
    /// Drops beyond this limit.
    Limit(Buffer),
}

impl Buffer {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |n: &str| n.trim().parse::<u32>().ok().filter(|n| *n > 0);
        let packets = text.trim().strip_suffix("packets").or_else(|| text.trim().strip_suffix("packet"));
        match packets {
            Some(n) => number(n)
                .map(Self::Packets)
                .ok_or_else(|| format!("found {text:?}; expected a positive whole number of packets, for example \"200 packets\"")),
            None => match text.parse::<Bytes>() {
                Ok(bytes) if (2000..=1 << 31).contains(&bytes.base()) => Ok(Self::Bytes(bytes)),
                Ok(_) => Err(format!("found {text:?}; expected 2 KB (one full frame) to 2 GiB, or \"200 packets\"")),
                Err(e) => Err(format!("{e}, or \"200 packets\"")),
            },
        }
    }

    /// The limits (packets, bytes).
    pub(crate) fn limits(self) -> (u32, u32) {
        match self {
            Self::Bytes(b) => (u32::MAX, b.base() as u32),
            Self::Packets(n) => (n, u32::MAX),
        }
    }
}

/// The receive window of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// At most these bytes in flight.
    Bytes(Bytes),
    /// Never the limit (32,768 segments).
    Unlimited,
}

macro_rules! as_text {
    ($name:ident, $example:expr, |$text:ident| $parse:expr, |$value:ident| $print:expr) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $value = self;
                serializer.serialize_str(&$print)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(f, "a text, for example {:?}", $example)
                    }
                    fn visit_str<E: de::Error>(self, $text: &str) -> Result<$name, E> {
                        $parse.map_err(E::custom)
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
    };
}

impl std::fmt::Display for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(b) => write!(f, "{b}"),
            Self::Packets(n) => write!(f, "{n} packets"),
        }
    }
}

impl std::fmt::Display for Threshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(b) => write!(f, "{b}"),
            Self::Packets(n) => write!(f, "{n} packets"),
        }
    }
}

as_text!(Buffer, "128 KB", |text| Buffer::parse(text), |value| value.to_string());
as_text!(Threshold, "65 packets", |text| Threshold::parse(text), |value| value.to_string());
as_text!(
    NicQueue,
    "pushback",
    |text| if text == "pushback" {
        Ok(NicQueue::Pushback)
    } else {
        Buffer::parse(text).map(NicQueue::Limit).map_err(|e| format!("{e}, or \"pushback\""))
    },
    |value| match value {
        NicQueue::Pushback => "pushback".to_string(),
        NicQueue::Limit(limit) => limit.to_string(),
    }
);
as_text!(
    Window,
    "64 KB",
    |text| if text == "unlimited" {
        Ok(Window::Unlimited)
    } else {
        text.parse().map(Window::Bytes).map_err(|e: joulepath_units::ParseError| format!("{e}, or \"unlimited\""))
    },
    |value| match value {
        Window::Bytes(b) => b.to_string(),
        Window::Unlimited => "unlimited".to_string(),
    }
);

/// Energy Efficient Ethernet of all ports. The most specific policy counts: class, then group, then `policy`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EeeSpec {
    /// Policy of every port: `legacy`, `ideal`, `eee`, `eee:STALL`, `coalesce:TIMER/TRIGGER` (trigger in frames or bytes) or a seed's label like `12us10`.
    pub policy: Policy,
    /// Policy of the links of hosts (classes `nic` and `edge`).
    pub access: Option<Policy>,
    /// Policy of the links between switches (classes `uplink` and `core`).
    pub fabric: Option<Policy>,
    /// Policy of host network cards.
    pub nic: Option<Policy>,
    /// Policy of switch ports toward hosts.
    pub edge: Option<Policy>,
    /// Policy of switch ports toward the core.
    pub uplink: Option<Policy>,
    /// Policy of switch ports toward the racks.
    pub core: Option<Policy>,
    /// Whether the directions of a link sleep one by one or together.
    pub lpi: LpiMode,
    /// Power in low-power idle as a share of full power, refresh included.
    pub lpi_power: f64,
    /// Physical layer of the links of hosts; by default the one of their rate.
    pub access_phy: Option<PhyChoice>,
    /// Physical layer of the links between switches; by default the one of their rate.
    pub fabric_phy: Option<PhyChoice>,
}

impl Default for EeeSpec {
    fn default() -> Self {
        Self {
            policy: Policy::Legacy,
            access: None,
            fabric: None,
            nic: None,
            edge: None,
            uplink: None,
            core: None,
            lpi: LpiMode::Independent,
            lpi_power: 0.10,
            access_phy: None,
            fabric_phy: None,
        }
    }
}

impl EeeSpec {
    pub(crate) fn policy_of(&self, class: PortClass) -> Policy {
        let (own, group) = match class {
            PortClass::Nic => (self.nic, self.access),
            PortClass::Edge => (self.edge, self.access),
            PortClass::Uplink => (self.uplink, self.fabric),
            PortClass::Core => (self.core, self.fabric),
        };
        own.or(group).unwrap_or(self.policy)
    }

    pub(crate) fn phy_of(&self, class: PortClass, rate: BitRate) -> Result<Phy, String> {
        let (key, choice) = match class {
            PortClass::Nic | PortClass::Edge => ("eee.access_phy", &self.access_phy),
            PortClass::Uplink | PortClass::Core => ("eee.fabric_phy", &self.fabric_phy),
        };
        let names = || phys().iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
        match choice {
            Some(PhyChoice::Custom { wake, sleep, power, source }) => Ok(Phy {
                name: format!("custom {rate}"),
                rate,
                wake: *wake,
                sleep: *sleep,
                power: *power,
                evidence: if source.is_some() { Evidence::Modelled } else { Evidence::Assumed },
                source: source.clone().unwrap_or_else(|| "the plan, without a source".into()),
            }),
            Some(PhyChoice::Named(name)) => {
                phys().iter().find(|p| p.name == *name).cloned().ok_or_else(|| format!("{key}: found {name:?}; expected one of {}", names()))
            }
            None => phys().iter().find(|p| p.rate == rate).cloned().ok_or_else(|| {
                format!("{key}: no physical layer is known for links of {rate} (known: {}); give {{wake = .., sleep = .., power = .., source = ..}}", names())
            }),
        }
    }
}

/// A physical layer by name or by its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PhyChoice {
    /// A name from `profiles/ethernet.toml`.
    Named(String),
    /// Own numbers, for rates without a public profile.
    Custom {
        /// T_w.
        wake: Span,
        /// T_s.
        sleep: Span,
        /// Power of a port outside low-power idle.
        power: Power,
        /// Where the numbers are from; without it the joules are labelled assumed.
        #[serde(default)]
        source: Option<String>,
    },
}

/// Whether the directions of a link sleep one by one or together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LpiMode {
    /// Each direction sleeps on its own (10GBASE-T; how the seeds treat every link).
    #[default]
    Independent,
    /// A link sleeps only while both directions are idle (1000BASE-T and 100BASE-TX as built).
    Both,
}

/// Transport of all flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpSpec {
    /// Congestion control.
    pub variant: Variant,
    /// Explicit congestion notification (RFC 3168): data is ECN-capable; SYN, acknowledgements and retransmissions are not. On by default with DCTCP, which needs it, and off otherwise.
    pub ecn: Option<bool>,
    /// Receive window of a connection: bytes or `"unlimited"`.
    pub receive_window: Window,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Smallest retransmission timeout.
    pub min_rto: Span,
    /// Segments for each acknowledgement.
    pub ack_every: u32,
    /// Longest delay of an acknowledgement.
    pub delayed_ack: Span,
    /// Payload of a full segment.
    pub mss: Bytes,
}

impl Default for TcpSpec {
    fn default() -> Self {
        Self {
            variant: Variant::NewReno,
            ecn: None,
            receive_window: Window::Bytes(Bytes::from_base(64_000)),
            initial_window: 10,
            min_rto: Span::from_base(200_000_000_000),
            ack_every: 2,
            delayed_ack: Span::from_base(40_000_000_000),
            mss: Bytes::from_base(1460),
        }
    }
}

impl TcpSpec {
    /// Whether connections use ECN.
    #[must_use]
    pub fn uses_ecn(&self) -> bool {
        self.ecn.unwrap_or(self.variant == Variant::Dctcp)
    }
}

mod d {
    use super::*;
    pub fn racks() -> u32 {
        2
    }
    pub fn nodes() -> u32 {
        80
    }
    pub fn one() -> u32 {
        1
    }
    pub fn edge_rate() -> BitRate {
        BitRate::from_base(1_000_000_000)
    }
    pub fn fabric_rate() -> BitRate {
        BitRate::from_base(10_000_000_000)
    }
    pub fn delay() -> Span {
        Span::from_base(5_000_000)
    }
}

impl NetworkSpec {
    /// Checks what types cannot: every error names the key, what was found and what is expected.
    pub fn check(&self) -> Result<(), String> {
        let refuse = |bad: bool, key: &str, found: &dyn std::fmt::Display, expected: &str| {
            if bad { Err(format!("{key}: found {found}; expected {expected}")) } else { Ok(()) }
        };
        match &self.topology {
            TopologySpec::LeafSpine { racks, nodes, spines, edge_rate, fabric_rate, .. } => {
                refuse(!(1..=1000).contains(racks), "topology.racks", racks, "1 to 1000 racks")?;
                refuse(nodes < racks || *nodes < 2, "topology.nodes", nodes, "at least 2 nodes, and one in each rack")?;
                refuse(*nodes > 10_000, "topology.nodes", nodes, "at most 10000 nodes")?;
                refuse(!(1..=64).contains(spines), "topology.spines", spines, "1 to 64 spine switches")?;
                self.rate("topology.edge_rate", *edge_rate)?;
                self.rate("topology.fabric_rate", *fabric_rate)?;
            }
            TopologySpec::FatTree { k, edge_rate, fabric_rate, .. } => {
                refuse(k % 2 == 1 || !(2..=32).contains(k), "topology.k", k, "an even number of ports from 2 to 32")?;
                self.rate("topology.edge_rate", *edge_rate)?;
                self.rate("topology.fabric_rate", *fabric_rate)?;
            }
            TopologySpec::Links { links } => {
                refuse(links.is_empty(), "topology.links", &"an empty list", "at least two links")?;
                links.iter().enumerate().try_for_each(|(i, l)| self.rate(&format!("topology.links[{i}].rate"), l.rate))?;
            }
        }
        let ports = &self.ports;
        refuse(ports.overhead.base() > 1000, "ports.overhead", &ports.overhead, "at most 1000 B")?;
        refuse(ports.extra_latency > Span::from_base(10_000_000_000_000), "ports.extra_latency", &ports.extra_latency, "at most 10 s")?;
        let share = self.eee.lpi_power;
        refuse(!(0.0..=1.0).contains(&share), "eee.lpi_power", &share, "a share of full power from 0 to 1")?;
        let tcp = &self.tcp;
        refuse(!(100..=60_000).contains(&tcp.mss.base()), "tcp.mss", &tcp.mss, "100 B to 60000 B")?;
        refuse(!(1..=1000).contains(&tcp.initial_window), "tcp.initial_window", &tcp.initial_window, "1 to 1000 segments")?;
        refuse(!(1..=64).contains(&tcp.ack_every), "tcp.ack_every", &tcp.ack_every, "1 to 64 segments")?;
        refuse(
            tcp.variant == Variant::Dctcp && !tcp.uses_ecn(),
            "tcp.ecn",
            &"false with tcp.variant = \"dctcp\"",
            "true, or nothing: DCTCP needs it",
        )?;
        let queues = [
            ("ports.queue", Some(&ports.queue)),
            ("ports.edge_queue", ports.edge_queue.as_ref()),
            ("ports.fabric_queue", ports.fabric_queue.as_ref()),
        ];
        for (key, queue) in queues {
            queue.map_or(Ok(()), |q| q.check(key, ports.buffer, tcp.uses_ecn()))?;
        }
        let observe = &self.observe;
        let shortest = Span::from_base(1_000_000);
        refuse(observe.every.is_some_and(|e| e < shortest), "observe.every", &observe.every.unwrap_or(Span::ZERO), "at least 1 us")?;
        let unsampled = !observe.ports.is_empty() && observe.every.is_none();
        refuse(unsampled, "observe.ports", &"ports without a period", "observe.every with them, for example \"100 us\"")?;
        refuse(observe.connection == Some(0), "observe.connection", &0, "a number from 1")?;
        refuse(tcp.min_rto < Span::from_base(1_000_000_000), "tcp.min_rto", &tcp.min_rto, "at least 1 ms")?;
        if let Window::Bytes(bytes) = tcp.receive_window {
            refuse(bytes < tcp.mss, "tcp.receive_window", &bytes, "at least one segment (tcp.mss), or \"unlimited\"")?;
        }
        Ok(())
    }

    /// The queue discipline of each class of switch ports and rate, with its thresholds worked out.
    pub fn queues(&self) -> Result<Vec<QueueSetting>, String> {
        let topology = crate::Topology::new(self)?;
        let frame = crate::network::wire_size(self.tcp.mss.base(), self.ports.overhead.base());
        let mut rates: Vec<(PortClass, BitRate)> = topology.ports.iter().map(|p| (p.class, p.rate)).collect();
        rates.retain(|(class, _)| *class != PortClass::Nic);
        rates.sort_by_key(|(class, rate)| (*class, rate.base()));
        rates.dedup();
        let setting = |(class, rate): (PortClass, BitRate)| {
            let (key, queue) = self.ports.queue_of(class);
            let warning = queue.warning(rate, self.ports.buffer, frame);
            let (min, max, in_bytes) = match queue {
                QueueSpec::Mark { threshold } => (Some(threshold.value().0), Some(threshold.value().0), threshold.value().1),
                QueueSpec::Red { .. } => {
                    let (min, max, in_bytes) = queue.red_thresholds(rate);
                    (Some(min), Some(max), in_bytes)
                }
                QueueSpec::DropTail | QueueSpec::CoDel { .. } => (None, None, false),
            };
            let unit = min.map(|_| if in_bytes { "bytes" } else { "packets" });
            let warning = warning.map(|w| format!("{key}: at {} ports ({rate}) {w}", class.as_str()));
            QueueSetting { class, rate_bps: rate.base(), kind: queue.kind(), min, max, unit, frame_bytes: frame, warning }
        };
        Ok(rates.into_iter().map(setting).collect())
    }

    fn rate(&self, key: &str, rate: BitRate) -> Result<(), String> {
        if (100_000..=1_000_000_000_000).contains(&rate.base()) {
            Ok(())
        } else {
            Err(format!("{key}: found {rate}; expected 100 kb/s to 1 Tb/s"))
        }
    }
}
