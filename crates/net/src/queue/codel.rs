//! Controlled Delay (Nichols and Jacobson; RFC 8289), with ECN as in RFC 8289 section 5.4 and Linux: where CoDel would drop,
//! an ECN-capable packet is marked and sent.

use super::{Protect, Verdict};
use crate::packet::{CE, Packet};
use std::collections::VecDeque;

/// The packets of one CoDel queue whose turn has not come, and its control loop.
pub(crate) struct CoDel {
    target: u64,
    interval: u64,
    protect: Protect,
    /// Bytes of a full frame: with no more than this behind a packet the queue is not bad.
    frame: u32,
    waiting: VecDeque<(Packet, u64)>,
    waiting_bytes: u32,
    /// When the delay will have been above the target for one interval; 0 while it is not above.
    first_above: u64,
    drop_next: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// A packet whose turn has come.
pub(crate) struct Turn {
    pub packet: Packet,
    /// When it arrived at the queue.
    pub since: u64,
    pub fate: Verdict,
}

impl CoDel {
    pub fn new(target: u64, interval: u64, protect: Protect, frame: u32) -> Self {
        Self {
            target,
            interval,
            protect,
            frame,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            first_above: 0,
            drop_next: 0,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    pub fn waiting(&self) -> impl Iterator<Item = &Packet> {
        self.waiting.iter().map(|w| &w.0)
    }

    pub fn wait(&mut self, packet: Packet, now: u64) {
        self.waiting_bytes += u32::from(packet.size);
        self.waiting.push_back((packet, now));
    }

    /// Takes the next packet at `now`, when the transmitter is free. Dropped ones come out too: call again.
    pub fn take(&mut self, now: u64) -> Option<Turn> {
        let (packet, since) = self.waiting.pop_front()?;
        self.waiting_bytes -= u32::from(packet.size);
        let bad = self.is_bad(now, since);
        let mut turn = Turn { packet, since, fate: Verdict::Pass };
        if self.dropping {
            if !bad {
                self.dropping = false;
            } else if now >= self.drop_next {
                self.count += 1;
                self.drop_next = self.control_law(self.drop_next);
                self.signal(&mut turn);
            }
        } else if bad {
            self.dropping = true;
            // Coming back soon after the last time: go on with nearly the rate that controlled the queue then.
            let delta = self.count - self.last_count;
            let soon = now.saturating_sub(self.drop_next) < 16 * self.interval;
            self.count = if delta > 1 && soon { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next = self.control_law(now);
            self.signal(&mut turn);
        }
        Some(turn)
    }

    fn signal(&self, turn: &mut Turn) {
        turn.fate = self.protect.signal(&turn.packet);
        if turn.fate == Verdict::Mark {
            turn.packet.bits |= CE;
        }
    }

    fn is_bad(&mut self, now: u64, since: u64) -> bool {
        if now - since < self.target || self.waiting_bytes <= self.frame {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now + self.interval;
            return false;
        }
        now >= self.first_above
    }

    fn control_law(&self, time: u64) -> u64 {
        time + (self.interval as f64 / libm::sqrt(f64::from(self.count))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::ECT;

    const MS: u64 = 1_000_000_000;

    /// A queue that is always 10 ms long, served once a millisecond: the times of its signals.
    fn signals(bits: u8, protect: Protect, milliseconds: u64) -> Vec<(u64, Verdict)> {
        let mut codel = CoDel::new(5 * MS, 100 * MS, protect, 1538);
        let packet = Packet { arrival: 0, body: Default::default(), flow: 0, seq: 0, size: 1538, bits, hop: 0 };
        let mut out = vec![];
        for now in 10..milliseconds {
            while codel.waiting.len() < 12 {
                codel.wait(packet, (now - 10) * MS);
            }
            loop {
                let turn = codel.take(now * MS).expect("it is never empty");
                if turn.fate != Verdict::Pass {
                    out.push((now, turn.fate));
                }
                if turn.fate != Verdict::Drop {
                    break;
                }
            }
        }
        out
    }

    #[test]
    fn signals_after_one_interval_and_then_by_the_square_root_law() {
        let marks: Vec<u64> = signals(ECT, Protect::Ect, 500).into_iter().map(|s| s.0).collect();
        // RFC 8289, 3.3: first after an interval above target, then after interval / sqrt(1), / sqrt(2), ...
        let mut at = 110.0;
        assert!(marks.len() >= 5);
        for (n, mark) in (1..).zip(marks) {
            assert!((mark as f64 - f64::ceil(at)).abs() <= 1.0, "{mark} against {at}");
            at += 100.0 / f64::from(n).sqrt();
        }
    }

    #[test]
    fn drops_what_it_cannot_mark_unless_protected() {
        assert!(signals(0, Protect::Ect, 300).iter().all(|s| s.1 == Verdict::Drop));
        assert!(signals(ECT, Protect::Ect, 300).iter().all(|s| s.1 == Verdict::Mark));
        assert!(signals(0, Protect::All, 300).is_empty());
    }

    #[test]
    fn a_short_queue_is_left_alone() {
        let mut codel = CoDel::new(5 * MS, 100 * MS, Protect::Ect, 1538);
        let packet = Packet { arrival: 0, body: Default::default(), flow: 0, seq: 0, size: 1538, bits: 0, hop: 0 };
        for now in 1..1000 {
            codel.wait(packet, now * MS - 1);
            codel.wait(packet, now * MS - 1);
            assert_eq!(codel.take((now + 20) * MS).expect("two wait").fate, Verdict::Pass, "one frame behind it");
            assert_eq!(codel.take((now + 20) * MS).expect("one waits").fate, Verdict::Pass);
        }
    }
}
