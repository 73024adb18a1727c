//! One direction of a link: a FIFO with a limit in packets and bytes, a transmitter and a propagation delay.
//!
//! One event per hop: departure is known when a packet is accepted, so waiting, transmission and propagation fuse into
//! its arrival at the far end. Which entries have left is found out when it matters, by advancing over departures that
//! have passed. A packet occupies the buffer until its last bit has left.

use crate::packet::{CE, ECT, Packet};
use crate::stats::DropCount;
use joulepath_engine::Tournament;
use joulepath_units::BitRate;

/// Fractional bits of picoseconds per byte: every Ethernet rate is exact.
const FRACTION: u32 = 16;

/// The arrival time of a packet that is held: it has no departure yet.
pub(crate) const HELD: u64 = Tournament::IDLE;

pub(crate) struct Port {
    /// When the transmitter has sent everything that it accepted and does not hold.
    pub free: u64,
    ring: Vec<Packet>,
    mask: u32,
    /// Next packet to arrive at the far end; first packet still in the buffer; end. They wrap.
    head: u32,
    buffered_from: u32,
    tail: u32,
    buffered_bytes: u32,
    limit_packets: u32,
    limit_bytes: u32,
    mark_packets: u32,
    mark_bytes: u32,
    ps_per_byte: u64,
    delay: u64,
    /// Packets at the tail that are held.
    pub held: u32,
    /// The sleeper of this direction, shared with the twin when both sleep together.
    pub sleeper: u32,
    /// The opposite direction when both sleep together.
    pub twin: Option<u32>,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    /// Sum of times in the buffer; of held packets their arrivals are kept apart until they depart.
    pub buffered_time: u128,
    held_since: u128,
    pub most_packets: u32,
    pub drops: DropCount,
    pub marks: u64,
}

impl Port {
    pub fn new(rate: BitRate, delay: u64, limit_packets: u32, limit_bytes: u32, sleeper: u32, twin: Option<u32>) -> Self {
        let ring = 16;
        Self {
            free: 0,
            ring: vec![Packet { arrival: HELD, body: Default::default(), flow: 0, seq: 0, size: 0, bits: 0, hop: 0 }; ring],
            mask: ring as u32 - 1,
            head: 0,
            buffered_from: 0,
            tail: 0,
            buffered_bytes: 0,
            limit_packets,
            limit_bytes,
            mark_packets: u32::MAX,
            mark_bytes: u32::MAX,
            ps_per_byte: ((8_000_000_000_000u128 << FRACTION).div_ceil(u128::from(rate.base()))) as u64,
            delay,
            held: 0,
            sleeper,
            twin,
            sent_packets: 0,
            sent_bytes: 0,
            buffered_time: 0,
            held_since: 0,
            most_packets: 0,
            drops: DropCount::default(),
            marks: 0,
        }
    }

    /// Marks ECN-capable packets that find this much in the buffer.
    pub fn mark_above(&mut self, packets: u32, bytes: u32) {
        (self.mark_packets, self.mark_bytes) = (packets, bytes);
    }

    #[inline(always)]
    fn at(&self, i: u32) -> &Packet {
        &self.ring[(i & self.mask) as usize]
    }

    /// Removes from the buffer what has departed by `now`.
    #[inline(always)]
    pub fn depart(&mut self, now: u64) {
        while self.buffered_from != self.tail {
            let packet = self.at(self.buffered_from);
            if packet.arrival - self.delay > now {
                break;
            }
            self.buffered_bytes -= u32::from(packet.size);
            self.buffered_from = self.buffered_from.wrapping_add(1);
        }
    }

    /// Packets in the buffer, as of the last [`Port::depart`].
    #[inline(always)]
    pub fn buffered(&self) -> u32 {
        self.tail.wrapping_sub(self.buffered_from)
    }

    /// When half of the buffered packets will have left; `None` while they are held.
    pub fn half_empty_at(&self) -> Option<u64> {
        let arrival = self.at(self.buffered_from.wrapping_add(self.buffered() / 2)).arrival;
        (arrival != HELD).then(|| arrival - self.delay)
    }

    #[inline(always)]
    pub fn has_room(&self, size: u16) -> bool {
        self.buffered() < self.limit_packets && self.buffered_bytes + u32::from(size) <= self.limit_bytes
    }

    /// Appends a packet that starts not before `start`. Returns its arrival if it is the next one on this link.
    #[inline(always)]
    pub fn send(&mut self, mut packet: Packet, now: u64, start: u64) -> Option<u64> {
        self.free = start + ((u64::from(packet.size) * self.ps_per_byte) >> FRACTION);
        packet.arrival = self.free + self.delay;
        self.buffered_time += u128::from(self.free - now);
        self.push(packet)
    }

    /// Appends a packet without a departure.
    pub fn hold(&mut self, mut packet: Packet, now: u64) {
        packet.arrival = HELD;
        self.held += 1;
        self.held_since += u128::from(now);
        self.push(packet);
    }

    /// Gives the held packets their departures from `start` on. Returns the arrival of the first if it is the next one.
    pub fn release(&mut self, start: u64) -> Option<u64> {
        let first = self.tail.wrapping_sub(self.held);
        self.free = start;
        for i in 0..self.held {
            let slot = (first.wrapping_add(i) & self.mask) as usize;
            self.free += (u64::from(self.ring[slot].size) * self.ps_per_byte) >> FRACTION;
            self.ring[slot].arrival = self.free + self.delay;
            self.buffered_time += u128::from(self.free);
        }
        self.buffered_time -= std::mem::take(&mut self.held_since);
        self.held = 0;
        (first == self.head).then(|| self.at(first).arrival)
    }

    #[inline(always)]
    fn push(&mut self, mut packet: Packet) -> Option<u64> {
        if packet.has(ECT) && (self.buffered() >= self.mark_packets || self.buffered_bytes >= self.mark_bytes) {
            packet.bits |= CE;
            self.marks += 1;
        }
        if self.tail.wrapping_sub(self.head) > self.mask {
            self.grow();
        }
        let first = self.head == self.tail;
        let slot = (self.tail & self.mask) as usize;
        self.ring[slot] = packet;
        self.tail = self.tail.wrapping_add(1);
        self.buffered_bytes += u32::from(packet.size);
        self.most_packets = self.most_packets.max(self.buffered());
        self.sent_packets += 1;
        self.sent_bytes += u64::from(packet.size);
        first.then_some(packet.arrival)
    }

    #[cold]
    fn grow(&mut self) {
        let mut ring = Vec::with_capacity(self.ring.len() * 2);
        for i in 0..self.ring.len() as u32 {
            ring.push(*self.at(self.head.wrapping_add(i)));
        }
        let blank = ring[0];
        ring.resize(self.ring.len() * 2, blank);
        self.buffered_from = self.buffered_from.wrapping_sub(self.head);
        self.tail = self.tail.wrapping_sub(self.head);
        self.head = 0;
        self.ring = ring;
        self.mask = self.ring.len() as u32 - 1;
    }

    /// Takes the packet that arrives now at the far end, and when the next one will.
    #[inline(always)]
    pub fn arrive(&mut self) -> (Packet, u64) {
        let packet = *self.at(self.head);
        if self.buffered_from == self.head {
            self.buffered_bytes -= u32::from(packet.size);
            self.buffered_from = self.buffered_from.wrapping_add(1);
        }
        self.head = self.head.wrapping_add(1);
        let next = if self.head == self.tail { Tournament::IDLE } else { self.at(self.head).arrival };
        (packet, next)
    }

    /// Packets on the link, and their bytes: waiting, being sent or travelling.
    pub fn on_link(&self) -> (u64, u64) {
        let count = self.tail.wrapping_sub(self.head);
        let bytes = (0..count).map(|i| u64::from(self.at(self.head.wrapping_add(i)).size)).sum();
        (u64::from(count), bytes)
    }
}
