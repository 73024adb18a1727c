//! What a run of the network measured.

use crate::packet::{Kind, Packet, RETRANSMITTED};
use crate::topology::PortClass;
use joulepath_energy::Account;
use serde::Serialize;

/// Packets by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct KindCount {
    /// First transmissions of data.
    pub data: u64,
    /// Retransmitted data.
    pub retransmission: u64,
    /// Pure acknowledgements.
    pub ack: u64,
    /// SYN and SYN-ACK.
    pub syn: u64,
}

impl KindCount {
    pub(crate) fn count(&mut self, packet: Packet) {
        *match packet.kind() {
            Kind::Data if packet.has(RETRANSMITTED) => &mut self.retransmission,
            Kind::Data => &mut self.data,
            Kind::Ack => &mut self.ack,
            Kind::Syn | Kind::SynAck => &mut self.syn,
        } += 1;
    }

    /// From counts by the bits of [`crate::packet::KIND_BITS`].
    pub(crate) fn of_bits(counts: &[u64; 8]) -> Self {
        let of = |kind: Kind| counts[kind as usize];
        let retransmission = counts[usize::from(RETRANSMITTED)];
        Self { data: of(Kind::Data), retransmission, ack: of(Kind::Ack), syn: of(Kind::Syn) + of(Kind::SynAck) }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.data += other.data;
        self.retransmission += other.retransmission;
        self.ack += other.ack;
        self.syn += other.syn;
    }

    /// All kinds together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.data + self.retransmission + self.ack + self.syn
    }
}

/// What became of the packets that reached queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueCount {
    /// Packets that arrived.
    pub offered: KindCount,
    /// Dropped by the queue discipline while there was room.
    pub early_drops: KindCount,
    /// Dropped because the buffer was full.
    pub overflows: KindCount,
    /// Marked for congestion and sent.
    pub marks: KindCount,
}

impl QueueCount {
    pub(crate) fn add(&mut self, other: Self) {
        self.offered.add(other.offered);
        self.early_drops.add(other.early_drops);
        self.overflows.add(other.overflows);
        self.marks.add(other.marks);
    }

    /// Packets lost for either reason.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.early_drops.total() + self.overflows.total()
    }
}

/// Sums over the ports of one class.
#[derive(Debug, Clone, Serialize)]
pub struct ClassResult {
    /// The class.
    pub class: PortClass,
    /// Ports in it.
    pub ports: u64,
    /// Share of the run that transmitters were sending, averaged over ports.
    pub utilisation: f64,
    /// Mean packets in the buffer, averaged over time and ports.
    pub queue_packets_mean: f64,
    /// The most packets in any one buffer.
    pub queue_packets_max: u64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Times that a sleeping link was woken.
    pub wakes: u64,
    /// Arrivals, losses and marks by kind of packet.
    pub queue: QueueCount,
}

/// A finished run of the network.
pub struct NetworkResult {
    /// Length of the run in seconds.
    pub duration_s: f64,
    /// Per class, in the order of [`PortClass`].
    pub classes: Vec<ClassResult>,
    /// One account for each port.
    pub accounts: Vec<Account>,
    /// Packets that crossed a link.
    pub packet_hops: u64,
    /// Payload delivered in order to applications, in bytes.
    pub goodput_bytes: u64,
    /// Data segments sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Flows started.
    pub flows: u64,
    /// Time from the network card of the sender to the receiving host, for data packets.
    pub latency: crate::Histogram,
    /// What was asked for beyond sums.
    pub observed: crate::Observed,
}
