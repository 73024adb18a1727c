//! What a run shows beyond its sums, on request: lengths of queues over time and the packets of one connection.

use crate::packet::{CE, CWR, ECE, ECT, Kind, Packet, RETRANSMITTED};
use crate::topology::PortClass;
use joulepath_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to show beyond sums. Nothing by default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObserveSpec {
    /// Sample the queues of all ports this often: a histogram for each class, and a time series for each of `ports`.
    pub every: Option<Span>,
    /// Ports whose queues are kept as time series, named FROM->TO, for example `"rack0->spine0"`.
    pub ports: Vec<String>,
    /// Keep the packets of one connection, by its number from 1 in the order in which connections are opened.
    pub connection: Option<u64>,
}

/// Samples that are kept of all time series together; beyond it every second one is given up and the period doubles.
const MOST_SAMPLES: usize = 1 << 18;
/// Packets of a connection that are kept.
const MOST_PACKETS: usize = 200_000;

/// What happened to a packet of the observed connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// The host handed it to its network card.
    Sent,
    /// It reached the other host.
    Received,
    /// A queue marked it.
    Marked,
    /// A queue dropped it while there was room.
    Early,
    /// A full buffer dropped it.
    Overflow,
}

/// A packet of the observed connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PacketEvent {
    /// When, in picoseconds.
    pub at_ps: u64,
    /// What happened.
    pub event: Event,
    /// Where, for events at a queue.
    pub port: Option<String>,
    /// `syn`, `syn-ack`, `data` or `ack`.
    pub kind: &'static str,
    /// Number of the data segment, or of the next one that an acknowledgement expects.
    pub segment: u32,
    /// Bytes on the wire.
    pub bytes: u16,
    /// ECN-capable.
    pub ect: bool,
    /// Congestion experienced.
    pub ce: bool,
    /// Congestion echoed.
    pub ece: bool,
    /// Congestion window reduced.
    pub cwr: bool,
    /// A retransmission.
    pub retransmission: bool,
}

/// How long queues of a class were, over samples of all its ports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueHistogram {
    /// The class.
    pub class: PortClass,
    /// Packets in the buffer, and the number of samples that found as many (in periods of the first rate).
    pub packets: Vec<(u32, u64)>,
}

/// The length of one queue over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueSeries {
    /// The port.
    pub port: String,
    /// Packets in the buffer at each sample.
    pub packets: Vec<u32>,
    /// Bytes in the buffer at each sample.
    pub bytes: Vec<u32>,
}

/// Everything that was observed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observed {
    /// Time between samples; `None` when queues were not asked for.
    pub sample_s: Option<f64>,
    /// Histograms by class.
    pub histograms: Vec<QueueHistogram>,
    /// Time series of the ports that were asked for; the first sample is one period after the start.
    pub series: Vec<QueueSeries>,
    /// Packets of the connection that was asked for.
    pub connection: Vec<PacketEvent>,
    /// Whether that connection had more packets than are kept.
    pub connection_cut: bool,
}

pub(crate) struct Observer {
    /// The present period; `None` when queues are not observed.
    pub every: Option<u64>,
    /// Present period over the first.
    weight: u64,
    ports: Vec<u32>,
    series: Vec<QueueSeries>,
    /// By class, counts by length.
    lengths: Vec<Vec<u64>>,
    events: Vec<PacketEvent>,
    cut: bool,
}

impl Observer {
    pub fn new(spec: &ObserveSpec, ports: Vec<u32>) -> Self {
        let series = spec.ports.iter().map(|name| QueueSeries { port: name.clone(), packets: vec![], bytes: vec![] }).collect();
        let lengths = vec![vec![]; PortClass::ALL.len()];
        Self { every: spec.every.map(Span::base), weight: 1, ports, series, lengths, events: vec![], cut: false }
    }

    /// One sample of all ports: their class, packets and bytes in order. Returns the time to the next.
    pub fn sample(&mut self, queues: impl Iterator<Item = (PortClass, u32, u32)>) -> u64 {
        for (port, (class, packets, bytes)) in (0u32..).zip(queues) {
            let lengths = &mut self.lengths[class as usize];
            if lengths.len() <= packets as usize {
                lengths.resize(packets as usize + 1, 0);
            }
            lengths[packets as usize] += self.weight;
            for series in self.ports.iter().zip(&mut self.series).filter(|(p, _)| **p == port).map(|(_, s)| s) {
                series.packets.push(packets);
                series.bytes.push(bytes);
            }
        }
        let kept = self.series.first().map_or(0, |s| s.packets.len());
        let every = self.every.expect("queues are observed");
        if kept * self.series.len() >= MOST_SAMPLES && kept.is_multiple_of(2) {
            for series in &mut self.series {
                for values in [&mut series.packets, &mut series.bytes] {
                    let mut i = 0;
                    values.retain(|_| {
                        i += 1;
                        i % 2 == 0
                    });
                }
            }
            self.every = Some(2 * every);
            self.weight *= 2;
        }
        self.every.expect("queues are observed")
    }

    /// Notes a packet of the observed connection.
    #[cold]
    pub fn note(&mut self, at_ps: u64, event: Event, port: Option<String>, packet: Packet) {
        if self.events.len() >= MOST_PACKETS {
            self.cut = true;
            return;
        }
        let kind = match packet.kind() {
            Kind::Data => "data",
            Kind::Ack => "ack",
            Kind::Syn => "syn",
            Kind::SynAck => "syn-ack",
        };
        self.events.push(PacketEvent {
            at_ps,
            event,
            port,
            kind,
            segment: packet.seq,
            bytes: packet.size,
            ect: packet.has(ECT),
            ce: packet.has(CE),
            ece: packet.has(ECE),
            cwr: packet.has(CWR),
            retransmission: packet.has(RETRANSMITTED),
        });
    }

    pub fn finish(self) -> Observed {
        let counted = |lengths: Vec<u64>| (0u32..).zip(lengths).filter(|(_, n)| *n > 0).collect::<Vec<_>>();
        let histograms = PortClass::ALL.into_iter().zip(self.lengths).map(|(class, l)| QueueHistogram { class, packets: counted(l) });
        Observed {
            sample_s: self.every.map(|ps| ps as f64 / 1e12),
            histograms: histograms.filter(|h| !h.packets.is_empty()).collect(),
            series: self.series,
            connection: self.events,
            connection_cut: self.cut,
        }
    }
}
