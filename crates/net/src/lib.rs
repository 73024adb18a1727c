//! Packet-level networks: links with Energy Efficient Ethernet, queues, TCP and topologies.
//!
//! Sources: seeds 000 and 001; IEEE 802.3az for the sleep states; RFC 5681, 6298, 6582, 6675 and 9438 for TCP. The room
//! announces states to the energy ledger and holds no joule itself. It reads no file: traces come as byte streams.

mod capture;
mod eee;
mod eee_theory;
mod histogram;
mod link;
mod network;
mod observe;
mod packet;
mod phy;
mod port;
mod queue;
mod spec;
mod stats;
mod tcp;
mod topology;

pub use capture::{Frame, Frames, TraceError};
pub use eee::{Policy, Trigger};
pub use eee_theory::{Theory, theory};
pub use histogram::Histogram;
pub use link::{Arrivals, Departure, LinkResult, LinkSpec, simulate_link};
pub use network::{FlowId, HostId, Network, Notice, Opening};
pub use observe::{Event, ObserveSpec, Observed, PacketEvent, QueueHistogram, QueueSeries};
pub use phy::{Phy, phys};
pub use queue::{Protect, QueueSetting, QueueSpec};
pub use spec::{Buffer, EeeSpec, LinkPair, LpiMode, NetworkSpec, NicQueue, PhyChoice, PortsSpec, TcpSpec, Threshold, TopologySpec, Window};
pub use stats::{ClassResult, KindCount, NetworkResult, QueueCount};
pub use tcp::Variant;
pub use topology::{PortClass, Topology};
