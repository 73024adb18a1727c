//! The event set of sources whose events are already in order (the arrivals on a link): a winner tree.
//!
//! Each source shows only its next time, so the set holds sources, not events: an insertion or removal replays one
//! leaf-to-root path, with no allocation and no search. Ties go to the lower source number, which makes runs repeatable.

use std::hint::select_unpredictable;

/// The time of a source that has nothing to come.
pub const IDLE: u64 = u64::MAX - 1;

#[derive(Clone, Copy)]
struct Node {
    time: u64,
    source: u64,
}

/// A winner tree over a fixed number of sources.
///
/// ```
/// let mut next = joulepath_engine::Tournament::new(3);
/// next.advance(2, 50);
/// next.hasten(0, 50);
/// assert_eq!(next.first(), (50, 0)); // equal times: the lower source
/// next.advance(0, joulepath_engine::Tournament::IDLE);
/// assert_eq!(next.first(), (50, 2));
/// ```
pub struct Tournament {
    nodes: Vec<Node>,
    leaves: usize,
}

impl Tournament {
    /// The time of a source that has nothing to come.
    pub const IDLE: u64 = IDLE;

    /// A set of `sources` idle sources, numbered from zero.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        let leaves = sources.max(1).next_power_of_two();
        let mut nodes = vec![Node { time: IDLE, source: 0 }; 2 * leaves];
        for source in 0..leaves {
            nodes[leaves + source].source = source as u64;
        }
        for i in (1..leaves).rev() {
            nodes[i] = nodes[2 * i];
        }
        Self { nodes, leaves }
    }

    /// The earliest time and its source; the time is [`Tournament::IDLE`] when every source is idle.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> (u64, u32) {
        let root = self.nodes[1];
        (root.time, root.source as u32)
    }

    /// Sets the next time of any source. Use it for the source that [`Tournament::first`] returned: its whole path changes.
    #[inline(always)]
    pub fn advance(&mut self, source: u32, time: u64) {
        let nodes = self.nodes.as_mut_slice();
        let mut i = self.leaves + source as usize;
        let mut winner = Node { time, source: u64::from(source) };
        nodes[i] = winner;
        while i > 1 {
            let rival = nodes[i ^ 1];
            // A right child (odd) also loses ties, so that the lower source wins them. Who wins cannot be predicted: moves
            // on a condition instead of a branch.
            let beaten = rival.time < winner.time + (i as u64 & 1);
            winner.time = select_unpredictable(beaten, rival.time, winner.time);
            winner.source = select_unpredictable(beaten, rival.source, winner.source);
            i >>= 1;
            nodes[i] = winner;
        }
    }

    /// Sets an earlier next time of a source; stops where it does not win.
    #[inline(always)]
    pub fn hasten(&mut self, source: u32, time: u64) {
        let nodes = self.nodes.as_mut_slice();
        let mut i = self.leaves + source as usize;
        nodes[i].time = time;
        while i > 1 && nodes[i ^ 1].time >= time + (i as u64 & 1) {
            i >>= 1;
            nodes[i] = Node { time, source: u64::from(source) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    #[test]
    fn agrees_with_a_linear_search() {
        for sources in [1usize, 2, 3, 7, 96, 337] {
            let mut stream = Stream::named(1, 0, "tournament");
            let mut tree = Tournament::new(sources);
            let mut times = vec![IDLE; sources];
            for step in 0..3000 {
                let source = (stream.next_u64() % sources as u64) as usize;
                let time = if stream.next_u64().is_multiple_of(4) { IDLE } else { stream.next_u64() % 64 };
                if time < times[source] && step % 2 == 0 {
                    tree.hasten(source as u32, time);
                } else {
                    tree.advance(source as u32, time);
                }
                times[source] = time;
                let best = times.iter().copied().enumerate().min_by_key(|&(i, t)| (t, i)).unwrap();
                assert_eq!(tree.first(), (best.1, best.0 as u32));
            }
        }
    }
}
