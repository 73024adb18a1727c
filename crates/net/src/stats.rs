//! What a run of the network measured.

use crate::packet::{Kind, Packet, RETRANSMITTED};
use crate::topology::PortClass;
use joulepath_energy::Account;
use serde::Serialize;

/// Packets lost to a full buffer, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DropCount {
    /// First transmissions of data.
    pub data: u64,
    /// Retransmitted data.
    pub retransmission: u64,
    /// Pure acknowledgements.
    pub ack: u64,
    /// SYN and SYN-ACK.
    pub syn: u64,
}

impl DropCount {
    pub(crate) fn count(&mut self, packet: Packet) {
        *match packet.kind() {
            Kind::Data if packet.has(RETRANSMITTED) => &mut self.retransmission,
            Kind::Data => &mut self.data,
            Kind::Ack => &mut self.ack,
            Kind::Syn | Kind::SynAck => &mut self.syn,
        } += 1;
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
    /// Losses.
    pub drops: DropCount,
    /// Packets that were marked for congestion.
    pub marks: u64,
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
}
