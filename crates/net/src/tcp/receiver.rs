//! The receiving end of a flow: in-order delivery, delayed acknowledgements, SACK blocks.

use super::{TcpConfig, Variant};
use crate::packet::{Body, SACK_BLOCKS};

/// When to acknowledge what just arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Now.
    Now,
    /// When the delayed-acknowledgement timer runs out, unless more arrives.
    Later,
}

/// The receiving end of a flow.
pub(crate) struct Receiver {
    /// Next expected segment.
    pub next: u32,
    /// Segments of the flow.
    pub end: u32,
    /// Segments that arrived since the last acknowledgement.
    unacknowledged: u32,
    /// When a delayed acknowledgement is due; `u64::MAX` for none.
    pub deadline: u64,
    /// Whether a timer for this receiver is set.
    pub timer_set: bool,
    pub sent: u32,
    pub got: u32,
    /// Congestion was experienced and the sender has not said that it slowed down (RFC 3168, 6.1.3); with DCTCP, the last
    /// segment was marked (RFC 8257, 3.2).
    pub echo: bool,
    out_of_order: Option<Box<OutOfOrder>>,
}

#[derive(Default)]
struct OutOfOrder {
    /// Disjoint ranges above `next`, ascending.
    ranges: Vec<(u32, u32)>,
    /// Some segment of the most recently changed ranges, latest first (RFC 2018, section 4).
    recent: [u32; SACK_BLOCKS],
}

impl Receiver {
    pub fn new(end: u32) -> Self {
        Self { next: 0, end, unacknowledged: 0, deadline: u64::MAX, timer_set: false, sent: 0, got: 0, echo: false, out_of_order: None }
    }

    pub fn is_complete(&self) -> bool {
        self.next == self.end
    }

    /// Notes the mark of a segment before it is taken. True when what arrived before must be acknowledged first, so that the
    /// sender can tell how much was marked (RFC 8257, 3.2).
    #[inline]
    pub fn notice(&mut self, marked: bool, reduced: bool, config: &TcpConfig) -> bool {
        if config.variant == Variant::Dctcp {
            let first = marked != self.echo && self.unacknowledged > 0;
            self.echo = marked != first;
            return first;
        }
        if marked || reduced {
            self.echo = marked;
        }
        false
    }

    /// A segment arrives; retransmissions are acknowledged at once, as Linux does in its quick-acknowledgement mode.
    #[inline]
    pub fn data(&mut self, segment: u32, retransmitted: bool, config: &TcpConfig) -> Reply {
        if segment != self.next || self.out_of_order.is_some() || retransmitted {
            self.disordered(segment);
            return Reply::Now;
        }
        self.next += 1;
        self.unacknowledged += 1;
        if self.unacknowledged >= config.ack_every || self.next == self.end { Reply::Now } else { Reply::Later }
    }

    #[cold]
    fn disordered(&mut self, segment: u32) {
        if segment < self.next {
            return;
        }
        let ooo = self.out_of_order.get_or_insert_default();
        if segment == self.next {
            self.next += 1;
            if ooo.ranges.first().is_some_and(|r| r.0 == self.next) {
                self.next = ooo.ranges.remove(0).1;
            }
        } else {
            let i = ooo.ranges.partition_point(|r| r.1 < segment);
            match ooo.ranges.get_mut(i) {
                Some(range) if range.0 <= segment && segment < range.1 => {}
                Some(range) if range.1 == segment => {
                    range.1 += 1;
                    if ooo.ranges.get(i + 1).is_some_and(|r| r.0 == segment + 1) {
                        ooo.ranges[i].1 = ooo.ranges.remove(i + 1).1;
                    }
                }
                Some(range) if range.0 == segment + 1 => range.0 = segment,
                _ => ooo.ranges.insert(i, (segment, segment + 1)),
            }
            // Keep one entry for each range: drop those that now name the same one.
            let owner = |ranges: &[(u32, u32)], s: u32| ranges.iter().position(|r| r.0 <= s && s < r.1);
            let mine = owner(&ooo.ranges, segment);
            let others = ooo.recent.into_iter().filter(|&s| owner(&ooo.ranges, s).is_some_and(|o| Some(o) != mine));
            let mut recent = [segment; SACK_BLOCKS];
            others.take(SACK_BLOCKS - 1).enumerate().for_each(|(i, s)| recent[i + 1] = s);
            ooo.recent = recent;
        }
        if ooo.ranges.is_empty() {
            self.out_of_order = None;
        }
    }

    /// The acknowledgement to send now: the next expected segment, the SACK blocks and how many there are.
    #[inline]
    pub fn acknowledge(&mut self) -> (u32, Body, u32) {
        self.unacknowledged = 0;
        self.deadline = u64::MAX;
        let mut body = Body::default();
        let mut blocks = 0;
        if let Some(ooo) = &self.out_of_order {
            let mut told = [u32::MAX; SACK_BLOCKS];
            for segment in ooo.recent {
                if let Some(&(from, to)) = ooo.ranges.iter().find(|r| r.0 <= segment && segment < r.1)
                    && !told.contains(&from)
                {
                    told[blocks] = from;
                    body.set_block(blocks, from - self.next, to - from);
                    blocks += 1;
                }
            }
        }
        (self.next, body, blocks as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: TcpConfig =
        TcpConfig { variant: Variant::NewReno, ecn: false, window: 44, initial_window: 10, min_rto: 0, ack_every: 2, delayed_ack: 0 };

    #[test]
    fn acknowledges_every_second_and_the_last() {
        let mut receiver = Receiver::new(3);
        assert_eq!(receiver.data(0, false, &CONFIG), Reply::Later);
        assert_eq!(receiver.data(1, false, &CONFIG), Reply::Now);
        assert_eq!(receiver.acknowledge().0, 2);
        assert_eq!(receiver.data(2, false, &CONFIG), Reply::Now);
        assert!(receiver.is_complete());
    }

    #[test]
    fn the_first_block_holds_the_latest_segment() {
        let mut receiver = Receiver::new(100);
        let blocks = |r: &mut Receiver| {
            let (ack, body, n) = r.acknowledge();
            (0..n as usize).map(|i| body.block(i)).map(|(o, l)| (ack + o, ack + o + l)).collect::<Vec<_>>()
        };
        for (segment, expected) in [
            (2, vec![(2, 3)]),
            (5, vec![(5, 6), (2, 3)]),
            (8, vec![(8, 9), (5, 6), (2, 3)]),
            (3, vec![(2, 4), (8, 9), (5, 6)]),
            (4, vec![(2, 6), (8, 9)]),
            (12, vec![(12, 13), (2, 6), (8, 9)]),
        ] {
            assert_eq!(receiver.data(segment, false, &CONFIG), Reply::Now);
            assert_eq!(blocks(&mut receiver), expected);
        }
        receiver.data(0, true, &CONFIG);
        receiver.data(1, true, &CONFIG);
        assert_eq!(receiver.next, 6);
        for s in [6, 7, 9, 10, 11] {
            receiver.data(s, true, &CONFIG);
        }
        assert_eq!((receiver.next, blocks(&mut receiver)), (13, vec![]));
        assert_eq!(receiver.data(13, false, &CONFIG), Reply::Later);
    }
}
