//! The network in motion: packets hop from port to port, flows open, send and end.
//!
//! One event per hop (see `port`). The owner drives it by [`Network::advance`], which runs until a flow has delivered all
//! its bytes or an alarm of the owner is due.

use crate::eee::{Sleeper, Wake};
use crate::histogram::Histogram;
use crate::observe::{Event, Observer};
use crate::packet::{Body, CE, CWR, ECE, ECT, Kind, Packet, RETRANSMITTED};
use crate::port::Port;
use crate::queue::Verdict;
use crate::spec::{LpiMode, NetworkSpec, NicQueue, Window};
use crate::stats::{ClassResult, NetworkResult, QueueCount};
use crate::tcp::{Receiver, Reply, Sender, TcpConfig};
use crate::topology::{PortClass, Topology};
use joulepath_energy::{AccountId, Ledger};
use joulepath_engine::{Stream, Timers, Tournament};
use joulepath_units::{Bytes, Instant};
use std::collections::{BTreeMap, VecDeque};

/// A host, numbered from zero.
pub type HostId = u32;
/// A flow that is under way. Numbers are used again after a flow has ended.
pub type FlowId = u32;

/// Why [`Network::advance`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// All bytes of a flow have arrived in order.
    FlowDone(FlowId),
    /// An alarm is due.
    Alarm(u64),
}

/// How a flow begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// A new connection, with its handshake.
    Handshake,
    /// A message on a connection that has been open for long.
    Established,
}

#[derive(Debug, Clone, Copy)]
enum Timer {
    Retransmit { flow: u32, age: u32 },
    Acknowledge { flow: u32, age: u32 },
    Release { sleeper: u32, port: u32, generation: u32 },
    NicRoom { host: u32 },
    Alarm(u64),
    Sample,
}

/// Packets that a network card with pushback accepts from its stack.
const NIC_PACKETS: u32 = 32;
/// IPv4 and TCP headers.
const HEADERS: u64 = 40;
/// Smallest payload of an Ethernet frame.
const MIN_PAYLOAD: u64 = 46;
/// Marks the end of a path.
const END: u16 = u16::MAX;

struct Flow {
    bytes: u64,
    /// How often this number was used before: old timers are recognised by it.
    age: u32,
    /// Wire bytes of the last segment.
    last_size: u16,
    /// The last segment's number.
    last: u32,
    active: bool,
    /// Dropped on the way, from the sender and from the receiver.
    lost_forward: u32,
    lost_back: u32,
}

/// A network in motion.
pub struct Network {
    now: u64,
    topology: Topology,
    ports: Vec<Port>,
    arrivals: Tournament,
    timers: Timers<Timer>,
    sleepers: Vec<Sleeper>,
    ledger: Ledger,
    accounts: Vec<AccountId>,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    flows: Vec<Flow>,
    free_flows: Vec<u32>,
    /// Ports of each flow: the way there and the way back, each `stride` long and ended by [`END`].
    paths: Vec<u16>,
    stride: usize,
    tcp: TcpConfig,
    full_size: u16,
    ack_sizes: [u16; 4],
    overhead: u64,
    mss: u64,
    pushback: bool,
    /// Flows that wait for room in the network card of each host, and whether a timer is set for it.
    waiting: Vec<VecDeque<u32>>,
    nic_timer: Vec<bool>,
    seed: u64,
    notices: VecDeque<Notice>,
    latency: Histogram,
    packet_hops: u64,
    injected: (u64, u64),
    delivered: (u64, u64),
    dropped: (u64, u64),
    goodput_bytes: u64,
    retransmissions: u64,
    timeouts: u64,
    flows_started: u64,
    observer: Observer,
    /// The number of the connection that is observed, and the flow that carries it now (or none).
    observed_connection: u64,
    observed_flow: u32,
    /// Packets that CoDel dropped and that are not accounted for yet.
    lost: Vec<Packet>,
}

impl Network {
    /// The network of a plan; `seed` only moves the choice among equal paths.
    pub fn new(spec: &NetworkSpec, seed: u64) -> Result<Self, String> {
        spec.check()?;
        let topology = Topology::new(spec)?;
        let count = topology.ports.len();
        let overhead = spec.ports.overhead.base();
        let wire = |payload: u64| wire_size(payload, overhead);
        let mss = spec.tcp.mss.base();
        let full_size = wire(mss);
        let mut ledger = Ledger::default();
        let mut profiles = BTreeMap::new();
        let (mut ports, mut sleepers, mut accounts) = (Vec::with_capacity(count), Vec::new(), Vec::with_capacity(count));
        for (i, plan) in topology.ports.iter().enumerate() {
            let phy = spec.eee.phy_of(plan.class, plan.rate)?;
            let policy = spec.eee.policy_of(plan.class);
            let together = spec.eee.lpi == LpiMode::Both;
            if together && i % 2 == 1 {
                let other = spec.eee.policy_of(topology.ports[i - 1].class);
                if policy != other {
                    return Err(format!(
                        "eee.lpi: found \"both\" with the policies {other} and {policy} at the two ends of {}; expected one policy for both directions",
                        topology.port_name(i)
                    ));
                }
            } else {
                sleepers.push(Sleeper::new(policy, &phy));
            }
            let sleeper = &sleepers[sleepers.len() - 1];
            let profile = *profiles.entry(phy.name.clone()).or_insert_with(|| ledger.profile(phy.profile(spec.eee.lpi_power)));
            accounts.push(ledger.open(topology.port_name(i), plan.class.as_str(), profile, sleeper.first_state()));
            let (packets, bytes) = match (plan.class, spec.ports.nic_queue) {
                (PortClass::Nic, NicQueue::Pushback) => (u32::MAX, u32::MAX),
                (PortClass::Nic, NicQueue::Limit(limit)) => limit.limits(),
                _ => spec.ports.buffer.limits(),
            };
            let twin = together.then_some(i as u32 ^ 1);
            let mut port = Port::new(plan.rate, plan.delay.base(), packets, bytes, sleepers.len() as u32 - 1, twin);
            let random = || Stream::named(seed, i as u64, "queue");
            let (discipline, packets, bytes) = spec.ports.queue_of(plan.class).1.discipline(plan.rate, full_size, random);
            port.set_discipline(discipline, packets, bytes);
            ports.push(port);
        }
        let observed_ports = spec.observe.ports.iter().enumerate().map(|(i, name)| {
            (0..count).find(|&p| topology.port_name(p) == *name).map(|p| p as u32).ok_or_else(|| {
                format!(
                    "observe.ports[{i}]: found {name:?}; expected a port of this network, for example {:?}",
                    topology.port_name(count - 1)
                )
            })
        });
        let observer = Observer::new(&spec.observe, observed_ports.collect::<Result<_, _>>()?);
        let mut timers = Timers::default();
        if let Some(every) = observer.every {
            timers.set(every, Timer::Sample);
        }
        let window = match spec.tcp.receive_window {
            Window::Bytes(bytes) => (bytes.base() / mss).clamp(1, 32_768) as u32,
            Window::Unlimited => 32_768,
        };
        let hosts = topology.hosts() as usize;
        let stride = topology.longest_path + 1;
        Ok(Self {
            now: 0,
            ports,
            arrivals: Tournament::new(count),
            timers,
            sleepers,
            ledger,
            accounts,
            senders: vec![],
            receivers: vec![],
            flows: vec![],
            free_flows: vec![],
            paths: vec![],
            stride,
            tcp: TcpConfig {
                variant: spec.tcp.variant,
                ecn: spec.tcp.uses_ecn(),
                window,
                initial_window: spec.tcp.initial_window,
                min_rto: spec.tcp.min_rto.base(),
                ack_every: spec.tcp.ack_every,
                delayed_ack: spec.tcp.delayed_ack.base(),
            },
            full_size,
            // RFC 2018: two bytes and eight for each block, padded to four.
            ack_sizes: [wire(0), wire(12), wire(20), wire(28)],
            overhead,
            mss,
            pushback: spec.ports.nic_queue == NicQueue::Pushback,
            waiting: vec![VecDeque::new(); hosts],
            nic_timer: vec![false; hosts],
            seed,
            notices: VecDeque::new(),
            latency: Histogram::default(),
            packet_hops: 0,
            injected: (0, 0),
            delivered: (0, 0),
            dropped: (0, 0),
            goodput_bytes: 0,
            retransmissions: 0,
            timeouts: 0,
            flows_started: 0,
            observer,
            observed_connection: spec.observe.connection.unwrap_or(u64::MAX),
            observed_flow: u32::MAX,
            lost: vec![],
            topology,
        })
    }

    /// The topology.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_ps(self.now)
    }

    /// Packets that have crossed a link so far.
    #[must_use]
    pub fn packet_hops(&self) -> u64 {
        self.packet_hops
    }

    /// Sets an alarm; a time in the past is now.
    pub fn set_alarm(&mut self, at: Instant, token: u64) {
        self.timers.set(at.ps().max(self.now), Timer::Alarm(token));
    }

    /// Sends `bytes` from one host to another, now.
    ///
    /// # Panics
    /// When source and destination are the same host, or there is nothing to send: both are decisions of the owner.
    pub fn start_flow(&mut self, src: HostId, dst: HostId, bytes: Bytes, opening: Opening) -> FlowId {
        let bytes = bytes.base();
        assert!(src != dst && bytes > 0, "a flow goes from one host to another and carries something");
        let segments = u32::try_from(bytes.div_ceil(self.mss)).expect("a flow has at most 2^32 segments");
        let tail = bytes - u64::from(segments - 1) * self.mss;
        let last_size = wire_size(tail, self.overhead);
        let flow = self.free_flows.pop().unwrap_or_else(|| {
            self.flows.push(Flow { bytes, age: 0, last_size: 0, last: 0, active: false, lost_forward: 0, lost_back: 0 });
            self.senders.push(Sender::new(0, 0, &self.tcp));
            self.receivers.push(Receiver::new(0));
            self.paths.resize(self.paths.len() + 2 * self.stride, END);
            self.flows.len() as u32 - 1
        });
        let i = flow as usize;
        let age = self.flows[i].age + 1;
        self.flows[i] = Flow { bytes, age, last_size, last: segments - 1, active: true, lost_forward: 0, lost_back: 0 };
        self.senders[i] = match opening {
            Opening::Handshake => Sender::new(segments, self.now, &self.tcp),
            Opening::Established => Sender::established(segments, self.now, &self.tcp),
        };
        self.receivers[i] = Receiver::new(segments);
        // The identity of a connection (hosts and a number of its own, as a port would be) picks its path, in each direction.
        self.flows_started += 1;
        let mut path = Vec::with_capacity(self.stride);
        for (way, (from, to)) in [(src, dst), (dst, src)].into_iter().enumerate() {
            let identity = (u64::from(from) << 40 | u64::from(to) << 16) ^ self.flows_started ^ self.seed.rotate_left(32);
            self.topology.path(from, to, identity, &mut path);
            let start = (2 * i + way) * self.stride;
            for slot in 0..self.stride {
                self.paths[start + slot] = path.get(slot).map_or(END, |&p| p as u16);
            }
        }
        if self.flows_started == self.observed_connection {
            self.observed_flow = flow;
        }
        match opening {
            Opening::Handshake => {
                self.send_syn(flow);
                self.arm_retransmission(flow);
            }
            Opening::Established => self.send_allowed(flow),
        }
        flow
    }

    /// Bytes of a flow that is under way which have arrived in order.
    #[must_use]
    pub fn received(&self, flow: FlowId) -> Bytes {
        Bytes::from_base((u64::from(self.receivers[flow as usize].next) * self.mss).min(self.flows[flow as usize].bytes))
    }

    /// The number of the port with this name (FROM->TO).
    #[must_use]
    pub fn port(&self, name: &str) -> Option<u32> {
        (0..self.ports.len()).find(|&p| self.topology.port_name(p) == name).map(|p| p as u32)
    }

    /// Packets in the buffer of a port now, the one being sent included.
    pub fn queue_length(&mut self, port: u32) -> u32 {
        self.look(port);
        self.ports[port as usize].buffered()
    }

    /// Brings a port's buffer up to now.
    fn look(&mut self, port: u32) {
        if self.ports[port as usize].is_codel() {
            self.ports[port as usize].catch_up(self.now, &mut self.lost);
            self.account_for_lost(port);
            self.arrivals.advance(port, self.ports[port as usize].next_event());
        }
        self.ports[port as usize].depart(self.now);
    }

    /// Runs until something happens that the owner waits for; `None` when nothing will.
    pub fn advance(&mut self) -> Option<Notice> {
        loop {
            if let Some(notice) = self.notices.pop_front() {
                return Some(notice);
            }
            let (time, link) = self.arrivals.first();
            if self.timers.next_time() <= time {
                let (due, timer) = self.timers.pop()?;
                self.now = due;
                self.on_timer(timer);
                continue;
            }
            if time == Tournament::IDLE {
                return None;
            }
            self.now = time;
            if self.ports[link as usize].is_codel() {
                self.advance_codel(link);
                continue;
            }
            let (packet, next) = self.ports[link as usize].arrive();
            self.arrivals.advance(link, next);
            self.arrived(packet);
        }
    }

    /// A packet reaches the far end of a link.
    #[inline(always)]
    fn arrived(&mut self, packet: Packet) {
        self.packet_hops += 1;
        let way = 2 * packet.flow as usize + usize::from(!packet.is_forward());
        let port = self.paths[way * self.stride + packet.hop as usize];
        if port == END {
            self.deliver(packet);
        } else {
            self.enqueue(port, packet);
        }
    }

    /// An event of a CoDel port: turns that have come, and a packet at the far end if one is due.
    fn advance_codel(&mut self, link: u32) {
        let port = &mut self.ports[link as usize];
        port.catch_up(self.now, &mut self.lost);
        let packet = port.arrive_by(self.now);
        self.arrivals.advance(link, self.ports[link as usize].next_event());
        self.account_for_lost(link);
        if let Some(packet) = packet {
            self.arrived(packet);
        }
    }

    /// Puts a packet into a port's buffer or drops it.
    #[inline(always)]
    fn enqueue(&mut self, port_id: u16, mut packet: Packet) {
        let now = self.now;
        packet.hop += 1;
        let port = &mut self.ports[port_id as usize];
        if port.is_codel() {
            return self.enqueue_codel(port_id, packet);
        }
        port.depart(now);
        let verdict = if port.must_judge() { port.judge(&packet, now) } else { Verdict::Pass };
        if verdict == Verdict::Drop || !port.has_room(packet.size) {
            let event = if verdict == Verdict::Drop { Event::Early } else { Event::Overflow };
            return self.drop_packet(port_id, packet, event);
        }
        if verdict == Verdict::Mark {
            port.mark(&mut packet);
            if packet.flow == self.observed_flow {
                self.note(Event::Marked, Some(port_id), packet);
            }
        }
        let port = &mut self.ports[port_id as usize];
        let first = if now < port.free {
            port.send(packet, now, port.free)
        } else {
            match self.wake(port_id, packet) {
                Some(start) => self.ports[port_id as usize].send(packet, now, start),
                None => return,
            }
        };
        if let Some(arrival) = first {
            self.arrivals.hasten(u32::from(port_id), arrival);
        }
    }

    /// The same for a port whose packets wait in CoDel.
    fn enqueue_codel(&mut self, port_id: u16, packet: Packet) {
        let now = self.now;
        let port = &mut self.ports[port_id as usize];
        port.catch_up(now, &mut self.lost);
        port.depart(now);
        if !port.has_room(packet.size) {
            self.drop_packet(port_id, packet, Event::Overflow);
        } else if now < port.free {
            port.wait(packet, now);
        } else if let Some(start) = self.wake(port_id, packet) {
            let port = &mut self.ports[port_id as usize];
            port.free = start;
            port.wait(packet, now);
            port.catch_up(now, &mut self.lost);
        }
        self.arrivals.advance(u32::from(port_id), self.ports[port_id as usize].next_event());
        self.account_for_lost(u32::from(port_id));
    }

    /// Accounts for what CoDel has dropped at a port.
    #[inline]
    fn account_for_lost(&mut self, port: u32) {
        while let Some(packet) = self.lost.pop() {
            self.drop_packet(port as u16, packet, Event::Early);
        }
    }

    #[cold]
    fn note(&mut self, event: Event, port: Option<u16>, packet: Packet) {
        let name = port.map(|p| self.topology.port_name(p as usize));
        self.observer.note(self.now, event, name, packet);
    }

    /// A packet finds its port with nothing to send; `None` when it was held (or released together with others).
    fn wake(&mut self, port_id: u16, packet: Packet) -> Option<u64> {
        // Whether both directions are idle: of a CoDel port that is known once its turns are taken.
        if let Some(twin) = self.ports[port_id as usize].twin
            && self.ports[twin as usize].is_codel()
        {
            self.look(twin);
        }
        let port = &self.ports[port_id as usize];
        let idle = port.twin.map_or(port.free, |twin| port.free.max(self.ports[twin as usize].free));
        let sleeper = port.sleeper;
        let (ledger, accounts, twin) = (&mut self.ledger, &self.accounts, port.twin);
        let announce = announcer(ledger, accounts, port_id as usize, twin);
        let now = self.now;
        match self.sleepers[sleeper as usize].arrive(now, idle, u64::from(packet.size), announce) {
            Wake::Start(start) => Some(start),
            Wake::Hold(timer) => {
                self.ports[port_id as usize].hold(packet, now);
                if let Some(due) = timer {
                    let generation = self.sleepers[sleeper as usize].generation;
                    self.timers.set(due, Timer::Release { sleeper, port: u32::from(port_id), generation });
                }
                None
            }
            Wake::Release(start) => {
                self.ports[port_id as usize].hold(packet, now);
                self.release(u32::from(port_id), start);
                None
            }
        }
    }

    /// Sends what a port, and its twin when they sleep together, has held.
    fn release(&mut self, port: u32, start: u64) {
        let twin = self.ports[port as usize].twin;
        for id in std::iter::once(port).chain(twin) {
            if self.ports[id as usize].held > 0
                && let Some(arrival) = self.ports[id as usize].release(start)
            {
                self.arrivals.hasten(id, arrival);
            }
        }
    }

    #[cold]
    fn drop_packet(&mut self, port: u16, packet: Packet, event: Event) {
        let at = &mut self.ports[port as usize];
        if event == Event::Early { &mut at.early_drops } else { &mut at.overflows }.count(packet);
        if packet.flow == self.observed_flow {
            self.note(event, Some(port), packet);
        }
        self.dropped.0 += 1;
        self.dropped.1 += u64::from(packet.size);
        let flow = &mut self.flows[packet.flow as usize];
        *if packet.is_forward() { &mut flow.lost_forward } else { &mut flow.lost_back } += 1;
        self.end_flow_if_quiet(packet.flow);
    }

    /// Hands a packet of a flow to its host's network card.
    #[inline]
    fn send(&mut self, flow: u32, bits: u8, seq: u32, size: u16, body: Body) {
        let packet = Packet { arrival: 0, body, flow, seq, size, bits, hop: 0 };
        self.injected.0 += 1;
        self.injected.1 += u64::from(size);
        let way = 2 * flow as usize + usize::from(!packet.is_forward());
        if packet.is_forward() {
            self.senders[flow as usize].sent += 1;
        } else {
            self.receivers[flow as usize].sent += 1;
        }
        if flow == self.observed_flow {
            self.note(Event::Sent, None, packet);
        }
        let port = self.paths[way * self.stride];
        self.enqueue(port, packet);
    }

    /// With ECN the flags ask for it (RFC 3168, 6.1.1).
    fn send_syn(&mut self, flow: u32) {
        let flags = if self.tcp.ecn { ECE | CWR } else { 0 };
        self.send(flow, Kind::Syn as u8 | flags, 0, self.ack_sizes[0], Body::default());
    }

    #[inline]
    fn send_segment(&mut self, flow: u32) -> bool {
        let Some(segment) = self.senders[flow as usize].segment(self.now, &self.tcp) else { return false };
        let f = &self.flows[flow as usize];
        let size = if segment.number == f.last { f.last_size } else { self.full_size };
        let mut bits = Kind::Data as u8;
        if segment.retransmitted {
            bits |= RETRANSMITTED;
            self.retransmissions += 1;
        } else if self.tcp.ecn {
            bits |= if segment.reduced { ECT | CWR } else { ECT };
        }
        self.send(flow, bits, segment.number, size, Body::born(self.now));
        true
    }

    /// Sends what the windows, and the network card, allow.
    #[inline]
    fn send_allowed(&mut self, flow: u32) {
        if !self.pushback {
            while self.send_segment(flow) {}
        } else if !self.senders[flow as usize].waiting {
            let nic = self.paths[2 * flow as usize * self.stride] as usize;
            let host = nic / 2;
            loop {
                self.ports[nic].depart(self.now);
                let free = self.waiting[host].is_empty() && self.ports[nic].buffered() - self.ports[nic].held < NIC_PACKETS;
                if !free {
                    if self.senders[flow as usize].may_send(&self.tcp) {
                        self.senders[flow as usize].waiting = true;
                        self.waiting[host].push_back(flow);
                        self.arm_nic(host as u32);
                    }
                    break;
                }
                if !self.send_segment(flow) {
                    break;
                }
            }
        }
        self.arm_retransmission(flow);
    }

    fn arm_nic(&mut self, host: u32) {
        if !self.nic_timer[host as usize]
            && let Some(due) = self.ports[2 * host as usize].half_empty_at()
        {
            self.nic_timer[host as usize] = true;
            self.timers.set(due.max(self.now), Timer::NicRoom { host });
        }
    }

    /// The network card of a host has room again: waiting flows send one segment each, in turn.
    fn fill_nic(&mut self, host: u32) {
        let nic = 2 * host as usize;
        self.nic_timer[host as usize] = false;
        self.ports[nic].depart(self.now);
        while self.ports[nic].buffered() - self.ports[nic].held < NIC_PACKETS {
            let Some(flow) = self.waiting[host as usize].pop_front() else { return };
            self.send_segment(flow);
            self.arm_retransmission(flow);
            if self.senders[flow as usize].may_send(&self.tcp) {
                self.waiting[host as usize].push_back(flow);
            } else {
                self.senders[flow as usize].waiting = false;
                self.end_flow_if_quiet(flow);
            }
        }
        if !self.waiting[host as usize].is_empty() {
            self.arm_nic(host);
        }
    }

    #[inline]
    fn arm_retransmission(&mut self, flow: u32) {
        let sender = &mut self.senders[flow as usize];
        // A later deadline waits for the timer to come up; an earlier one (after the handshake) replaces it.
        if sender.deadline < sender.timer_at {
            sender.timer_at = sender.deadline;
            let age = self.flows[flow as usize].age;
            self.timers.set(sender.deadline, Timer::Retransmit { flow, age });
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        let now = self.now;
        let current = |flows: &[Flow], flow: u32, age: u32| flows[flow as usize].active && flows[flow as usize].age == age;
        match timer {
            Timer::Alarm(token) => self.notices.push_back(Notice::Alarm(token)),
            Timer::NicRoom { host } => self.fill_nic(host),
            Timer::Sample => {
                (0..self.ports.len() as u32).for_each(|port| self.look(port));
                let queues = self.topology.ports.iter().zip(&self.ports).map(|(plan, p)| (plan.class, p.buffered(), p.buffered_bytes()));
                let every = self.observer.sample(queues);
                self.timers.set(now + every, Timer::Sample);
            }
            Timer::Release { sleeper, port, generation } => {
                let s = &mut self.sleepers[sleeper as usize];
                if s.generation == generation && s.is_holding() {
                    let twin = self.ports[port as usize].twin;
                    let start = s.release(now, announcer(&mut self.ledger, &self.accounts, port as usize, twin));
                    self.release(port, start);
                    if self.pushback && self.topology.ports[port as usize].class == PortClass::Nic {
                        self.arm_waiting(port / 2);
                    }
                }
            }
            Timer::Retransmit { flow, age } if current(&self.flows, flow, age) && self.senders[flow as usize].timer_at == now => {
                let sender = &mut self.senders[flow as usize];
                sender.timer_at = u64::MAX;
                if sender.deadline <= now {
                    sender.timed_out(now);
                    self.timeouts += 1;
                    if sender.is_opening() {
                        self.send_syn(flow);
                        self.arm_retransmission(flow);
                        return;
                    }
                    self.send_allowed(flow);
                }
                self.arm_retransmission(flow);
            }
            Timer::Acknowledge { flow, age } if current(&self.flows, flow, age) => {
                let receiver = &mut self.receivers[flow as usize];
                receiver.timer_set = false;
                if receiver.deadline <= now {
                    self.acknowledge(flow);
                } else if receiver.deadline != u64::MAX {
                    receiver.timer_set = true;
                    self.timers.set(receiver.deadline, Timer::Acknowledge { flow, age });
                }
            }
            Timer::Retransmit { .. } | Timer::Acknowledge { .. } => {}
        }
    }

    fn arm_waiting(&mut self, host: u32) {
        if !self.waiting[host as usize].is_empty() {
            self.arm_nic(host);
        }
    }

    fn acknowledge(&mut self, flow: u32) {
        let receiver = &mut self.receivers[flow as usize];
        let bits = Kind::Ack as u8 | if receiver.echo { ECE } else { 0 };
        let (next, body, blocks) = receiver.acknowledge();
        self.send(flow, bits, next, self.ack_sizes[blocks as usize], body);
    }

    /// A packet reaches its host.
    #[inline(always)]
    fn deliver(&mut self, packet: Packet) {
        let (now, flow, i) = (self.now, packet.flow, packet.flow as usize);
        self.delivered.0 += 1;
        self.delivered.1 += u64::from(packet.size);
        if flow == self.observed_flow {
            self.note(Event::Received, None, packet);
        }
        match packet.kind() {
            Kind::Data => {
                self.latency.record(now - packet.body.birth());
                let receiver = &mut self.receivers[i];
                receiver.got += 1;
                if receiver.notice(packet.has(CE), packet.has(CWR), &self.tcp) {
                    self.acknowledge(flow);
                    self.receivers[i].echo = packet.has(CE);
                }
                let receiver = &mut self.receivers[i];
                let was_complete = receiver.is_complete();
                match receiver.data(packet.seq, packet.has(RETRANSMITTED), &self.tcp) {
                    Reply::Now => {
                        if receiver.is_complete() && !was_complete {
                            self.goodput_bytes += self.flows[i].bytes;
                            self.notices.push_back(Notice::FlowDone(flow));
                        }
                        self.acknowledge(flow);
                    }
                    Reply::Later => {
                        receiver.deadline = now + self.tcp.delayed_ack;
                        if !receiver.timer_set {
                            receiver.timer_set = true;
                            let age = self.flows[i].age;
                            self.timers.set(receiver.deadline, Timer::Acknowledge { flow, age });
                        }
                    }
                }
            }
            Kind::Ack => {
                let sender = &mut self.senders[i];
                sender.got += 1;
                sender.acknowledged(packet.seq, packet.body, packet.has(ECE), now, &self.tcp);
                if sender.is_complete() {
                    self.end_flow_if_quiet(flow);
                } else {
                    self.send_allowed(flow);
                }
            }
            Kind::Syn => {
                self.receivers[i].got += 1;
                let flags = if self.tcp.ecn { ECE } else { 0 };
                self.send(flow, Kind::SynAck as u8 | flags, 0, self.ack_sizes[0], Body::default());
            }
            Kind::SynAck => {
                let sender = &mut self.senders[i];
                sender.got += 1;
                if sender.is_opening() {
                    sender.opened(now, &self.tcp);
                    self.send_allowed(flow);
                } else {
                    self.end_flow_if_quiet(flow);
                }
            }
        }
    }

    /// Frees the number of a flow once it is acknowledged and nothing of it is in the network.
    fn end_flow_if_quiet(&mut self, flow: u32) {
        let i = flow as usize;
        let (f, sender, receiver) = (&self.flows[i], &self.senders[i], &self.receivers[i]);
        let quiet = sender.sent == receiver.got + f.lost_forward && receiver.sent == sender.got + f.lost_back;
        if f.active && sender.is_complete() && !sender.waiting && quiet {
            self.flows[i].active = false;
            self.free_flows.push(flow);
            if flow == self.observed_flow {
                self.observed_flow = u32::MAX;
            }
        }
    }

    /// Ends the run now: closes the ledger and checks that every packet and byte is accounted for.
    ///
    /// # Panics
    /// When bytes sent are not the bytes delivered, dropped and still on links: a fault of the simulator.
    #[must_use]
    pub fn finish(mut self) -> NetworkResult {
        let end = self.now;
        (0..self.ports.len() as u32).for_each(|port| self.look(port));
        let on_links = self.ports.iter().map(Port::on_link).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let accounted = |f: fn((u64, u64)) -> u64| f(self.delivered) + f(self.dropped) + f(on_links);
        assert_eq!(self.injected.0, accounted(|t| t.0), "packets sent = delivered + dropped + on links");
        assert_eq!(self.injected.1, accounted(|t| t.1), "bytes sent = delivered + dropped + on links");
        for id in 0..self.ports.len() {
            let port = &self.ports[id];
            if port.twin.is_none_or(|twin| id < twin as usize) {
                let idle = port.twin.map_or(port.free, |twin| port.free.max(self.ports[twin as usize].free));
                let announce = announcer(&mut self.ledger, &self.accounts, id, port.twin);
                self.sleepers[port.sleeper as usize].close(end, idle, announce);
            }
        }
        let seconds = Instant::from_ps(end).seconds();
        let mut classes = Vec::new();
        for class in PortClass::ALL {
            let of_class = || (self.ports.iter().zip(&self.topology.ports)).filter(move |p| p.1.class == class).map(|p| (p.0, p.1.rate));
            let ports = of_class().count() as u64;
            if ports == 0 {
                continue;
            }
            let per_port_time = ports as f64 * seconds.max(1e-12);
            let mut queue = QueueCount::default();
            of_class().for_each(|(p, _)| queue.add(p.count()));
            classes.push(ClassResult {
                class,
                ports,
                utilisation: of_class().map(|(p, rate)| p.sent_bytes as f64 * 8.0 / rate.bps()).sum::<f64>() / per_port_time,
                queue_packets_mean: of_class().map(|(p, _)| p.buffered_time as f64 / 1e12).sum::<f64>() / per_port_time,
                queue_packets_max: of_class().map(|(p, _)| u64::from(p.most_packets)).max().unwrap_or(0),
                packets: of_class().map(|(p, _)| p.sent_packets()).sum(),
                bytes: of_class().map(|(p, _)| p.sent_bytes).sum(),
                wakes: of_class().map(|(p, _)| self.sleepers[p.sleeper as usize].wakes).sum(),
                queue,
            });
        }
        NetworkResult {
            duration_s: seconds,
            classes,
            accounts: self.ledger.close(Instant::from_ps(end)),
            packet_hops: self.packet_hops,
            goodput_bytes: self.goodput_bytes,
            retransmissions: self.retransmissions,
            timeouts: self.timeouts,
            flows: self.flows_started,
            latency: self.latency,
            observed: self.observer.finish(),
        }
    }
}

/// Bytes on the wire for a payload; without overhead there is no Ethernet frame and so no smallest one.
pub(crate) fn wire_size(payload: u64, overhead: u64) -> u16 {
    let packet = payload + HEADERS;
    if overhead == 0 { packet as u16 } else { (packet.max(MIN_PAYLOAD) + overhead) as u16 }
}

/// Announces states of a port, and of its twin when both sleep together.
fn announcer<'a>(ledger: &'a mut Ledger, accounts: &'a [AccountId], port: usize, twin: Option<u32>) -> impl FnMut(u8, u64) + 'a {
    move |state, time| {
        ledger.enter(accounts[port], state, Instant::from_ps(time));
        if let Some(twin) = twin {
            ledger.enter(accounts[twin as usize], state, Instant::from_ps(time));
        }
    }
}
