//! One direction of a link: a FIFO with a limit in packets and bytes, a transmitter and a propagation delay.
//!
//! One event per hop: departure is known when a packet is accepted, so waiting, transmission and propagation fuse into
//! its arrival at the far end. Which entries have left is found out when it matters, by advancing over departures that
//! have passed. A packet occupies the buffer until its last bit has left.
//!
//! With CoDel, whose decisions fall when a packet's turn comes, packets wait in the discipline and enter the ring when their
//! turn has come. These turns need no events either: nothing reaches a port between two looks at it, so the turns that have
//! passed are taken at the next look ([`Port::catch_up`]), at the latest when the packet before arrives at the far end.

use crate::packet::{CE, ECT, KIND_BITS, Packet};
use crate::queue::{CoDel, Discipline, Verdict};
use crate::stats::{KindCount, QueueCount};
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
    /// From this much in the buffer on, the discipline judges packets that arrive.
    judge_packets: u32,
    judge_bytes: u32,
    /// Packets that wait in the discipline.
    waiting: u32,
    ps_per_byte: u64,
    delay: u64,
    /// Packets at the tail that are held.
    pub held: u32,
    /// The sleeper of this direction, shared with the twin when both sleep together.
    pub sleeper: u32,
    /// The opposite direction when both sleep together.
    pub twin: Option<u32>,
    /// Packets accepted, by the low bits that tell their kind.
    sent: [u64; 8],
    pub sent_bytes: u64,
    /// Sum of times in the buffer; of held packets their arrivals are kept apart until they depart.
    pub buffered_time: u128,
    held_since: u128,
    pub most_packets: u32,
    pub early_drops: KindCount,
    pub overflows: KindCount,
    pub marks: KindCount,
    discipline: Discipline,
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
            judge_packets: u32::MAX,
            judge_bytes: u32::MAX,
            waiting: 0,
            ps_per_byte: ((8_000_000_000_000u128 << FRACTION).div_ceil(u128::from(rate.base()))) as u64,
            delay,
            held: 0,
            sleeper,
            twin,
            sent: [0; 8],
            sent_bytes: 0,
            buffered_time: 0,
            held_since: 0,
            most_packets: 0,
            early_drops: KindCount::default(),
            overflows: KindCount::default(),
            marks: KindCount::default(),
            discipline: Discipline::DropTail,
        }
    }

    /// Gives the port a discipline that judges arriving packets when they find this much in the buffer.
    pub fn set_discipline(&mut self, discipline: Discipline, packets: u32, bytes: u32) {
        (self.discipline, self.judge_packets, self.judge_bytes) = (discipline, packets, bytes);
    }

    /// Whether the discipline has a say about a packet that arrives now.
    #[inline(always)]
    pub fn must_judge(&self) -> bool {
        self.buffered() >= self.judge_packets || self.buffered_bytes >= self.judge_bytes
    }

    /// What the discipline does to a packet that arrives at `now`.
    pub fn judge(&mut self, packet: &Packet, now: u64) -> Verdict {
        let (packets, bytes) = (self.buffered(), self.buffered_bytes);
        match &mut self.discipline {
            Discipline::Mark if packet.has(ECT) => Verdict::Mark,
            Discipline::Red(red) => {
                let idle = if packets == 0 { now.saturating_sub(self.free) } else { 0 };
                red.judge(packet, f64::from(if red.in_bytes { bytes } else { packets }), idle)
            }
            Discipline::DropTail | Discipline::Mark | Discipline::CoDel(_) => Verdict::Pass,
        }
    }

    /// Sets the mark on a packet that is accepted.
    pub fn mark(&mut self, packet: &mut Packet) {
        packet.bits |= CE;
        self.marks.count(*packet);
    }

    /// Whether packets wait in the discipline until their turn comes.
    #[inline(always)]
    pub fn is_codel(&self) -> bool {
        matches!(self.discipline, Discipline::CoDel(_))
    }

    fn codel(&mut self) -> &mut CoDel {
        match &mut self.discipline {
            Discipline::CoDel(codel) => codel,
            _ => unreachable!("asked of CoDel ports only"),
        }
    }

    /// Lets a packet of a CoDel port wait for its turn.
    pub fn wait(&mut self, packet: Packet, now: u64) {
        self.buffered_bytes += u32::from(packet.size);
        self.waiting += 1;
        self.codel().wait(packet, now);
        self.most_packets = self.most_packets.max(self.buffered());
    }

    /// Takes the turns of waiting packets up to `now`; those that CoDel drops go to `lost`.
    pub fn catch_up(&mut self, now: u64, lost: &mut Vec<Packet>) {
        while self.held == 0 && self.waiting > 0 && self.free <= now {
            let start = self.free;
            let Some(turn) = self.codel().take(start) else { return };
            self.waiting -= 1;
            self.buffered_bytes -= u32::from(turn.packet.size);
            match turn.fate {
                Verdict::Drop => {
                    self.buffered_time += u128::from(start - turn.since);
                    lost.push(turn.packet);
                    continue;
                }
                Verdict::Mark => self.marks.count(turn.packet),
                Verdict::Pass => {}
            }
            self.depart(start);
            self.send(turn.packet, turn.since, start);
        }
    }

    /// When something happens next on the link of a CoDel port: an arrival at the far end, or a turn when nothing is on it.
    pub fn next_event(&self) -> u64 {
        match (self.head != self.tail, self.waiting > 0 && self.held == 0) {
            (true, _) => self.at(self.head).arrival,
            (false, true) => self.free,
            (false, false) => Tournament::IDLE,
        }
    }

    /// The packet of a CoDel port that arrives at the far end by `now`, if one does.
    pub fn arrive_by(&mut self, now: u64) -> Option<Packet> {
        (self.head != self.tail && self.at(self.head).arrival <= now).then(|| self.arrive().0)
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
        self.tail.wrapping_sub(self.buffered_from) + self.waiting
    }

    /// Bytes in the buffer, as of the last [`Port::depart`].
    pub fn buffered_bytes(&self) -> u32 {
        self.buffered_bytes
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
        self.held += 1;
        if self.is_codel() {
            return self.wait(packet, now);
        }
        packet.arrival = HELD;
        self.held_since += u128::from(now);
        self.push(packet);
    }

    /// Gives the held packets their departures from `start` on. Returns the arrival of the first if it is the next one.
    pub fn release(&mut self, start: u64) -> Option<u64> {
        if self.is_codel() {
            self.free = start;
            self.held = 0;
            return Some(self.next_event());
        }
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
    fn push(&mut self, packet: Packet) -> Option<u64> {
        if self.tail.wrapping_sub(self.head) > self.mask {
            self.grow();
        }
        let first = self.head == self.tail;
        let slot = (self.tail & self.mask) as usize;
        self.ring[slot] = packet;
        self.tail = self.tail.wrapping_add(1);
        self.buffered_bytes += u32::from(packet.size);
        self.most_packets = self.most_packets.max(self.buffered());
        self.sent[usize::from(packet.bits & KIND_BITS)] += 1;
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
        let ring = (0..self.tail.wrapping_sub(self.head)).map(|i| self.at(self.head.wrapping_add(i)));
        let waiting = match &self.discipline {
            Discipline::CoDel(codel) => Some(codel.waiting()),
            _ => None,
        };
        ring.chain(waiting.into_iter().flatten()).fold((0, 0), |sum, p| (sum.0 + 1, sum.1 + u64::from(p.size)))
    }

    /// Packets that reached the port, by kind, and what became of them.
    pub fn count(&self) -> QueueCount {
        let mut offered = KindCount::of_bits(&self.sent);
        offered.add(self.early_drops);
        offered.add(self.overflows);
        QueueCount { offered, early_drops: self.early_drops, overflows: self.overflows, marks: self.marks }
    }

    /// Packets that were accepted.
    pub fn sent_packets(&self) -> u64 {
        self.sent.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Protect;
    use joulepath_engine::Stream;

    const US: u64 = 1_000_000;

    /// Packets (number, arrival at the far end, marked) of a CoDel port that is only looked at when something happens.
    fn lazy(arrivals: &[(u64, Packet)], mut port: Port) -> (Vec<(u32, u64, bool)>, u64) {
        let (mut out, mut lost, mut next) = (vec![], vec![], 0);
        loop {
            let due = port.next_event();
            let arrival = arrivals.get(next).map_or(Tournament::IDLE, |a| a.0);
            if due == Tournament::IDLE && arrival == Tournament::IDLE {
                return (out, lost.len() as u64);
            }
            if due < arrival {
                port.catch_up(due, &mut lost);
                out.extend(port.arrive_by(due).map(|p| (p.seq, p.arrival, p.has(CE))));
                continue;
            }
            port.catch_up(arrival, &mut lost);
            port.depart(arrival);
            if arrival >= port.free {
                port.free = arrival;
            }
            port.wait(arrivals[next].1, arrival);
            port.catch_up(arrival, &mut lost);
            next += 1;
        }
    }

    /// The same by an event for every turn.
    fn eager(arrivals: &[(u64, Packet)], mut codel: CoDel, ps_per_byte: u64, delay: u64) -> (Vec<(u32, u64, bool)>, u64) {
        let (mut out, mut lost, mut next, mut free, mut waiting) = (vec![], 0, 0, 0, 0u32);
        while next < arrivals.len() || waiting > 0 {
            let arrival = arrivals.get(next).map_or(u64::MAX, |a| a.0);
            let turn = if waiting > 0 { free } else { u64::MAX };
            // A turn at the moment of an arrival comes first, as a transmitter that has just become free does.
            if turn <= arrival {
                let t = codel.take(turn).expect("one waits");
                waiting -= 1;
                if t.fate == Verdict::Drop {
                    lost += 1;
                } else {
                    free = turn + u64::from(t.packet.size) * ps_per_byte;
                    out.push((t.packet.seq, free + delay, t.packet.has(CE)));
                }
            } else {
                if waiting == 0 && arrival > free {
                    free = arrival;
                }
                codel.wait(arrivals[next].1, arrival);
                waiting += 1;
                next += 1;
            }
        }
        (out, lost)
    }

    #[test]
    fn turns_taken_late_are_the_turns_taken_in_time() {
        let mut signalled = 0;
        for seed in 0..40 {
            let mut random = Stream::named(seed, 0, "arrivals");
            let mut now = 0;
            let arrivals: Vec<(u64, Packet)> = (0..3000)
                .map(|seq| {
                    // Bursts and pauses around full load of 1 Gb/s.
                    now += (random.exponential() * if random.uniform() < 0.02 { 400.0 } else { 4.0 } * US as f64) as u64;
                    let (size, bits) = if random.uniform() < 0.3 { (84, 1) } else { (1538, if seed % 2 == 0 { ECT } else { 0 }) };
                    (now, Packet { arrival: 0, body: Default::default(), flow: 0, seq, size, bits, hop: 0 })
                })
                .collect();
            let codel = || CoDel::new(50 * US, 300 * US, Protect::Ect, 1538);
            let mut port = Port::new(BitRate::from_base(1_000_000_000), 5 * US, u32::MAX, u32::MAX, 0, None);
            port.set_discipline(Discipline::CoDel(Box::new(codel())), u32::MAX, u32::MAX);
            let late = lazy(&arrivals, port);
            let in_time = eager(&arrivals, codel(), 8000, 5 * US);
            assert_eq!(late, in_time, "seed {seed}");
            signalled += late.1 + late.0.iter().filter(|p| p.2).count() as u64;
        }
        assert!(signalled > 1000, "{signalled}: the control loop was at work");
    }
}
