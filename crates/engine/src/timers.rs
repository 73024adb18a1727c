//! The event set of everything that is not an arrival on a link: few, rarely, in any order.
//!
//! Nothing is cancelled. An owner keeps its own deadline and compares when its timer comes up: one that moved later is set
//! again, one that is no longer wanted is dropped. Equal times are served in the order in which they were set.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A heap of `(time, token)`.
pub struct Timers<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    serial: u64,
    next: u64,
}

struct Entry<T> {
    time: u64,
    serial: u64,
    token: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.serial) == (other.time, other.serial)
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.serial).cmp(&(other.time, other.serial))
    }
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), serial: 0, next: u64::MAX }
    }
}

impl<T> Timers<T> {
    /// When the next timer is due; `u64::MAX` when none is set.
    #[inline(always)]
    #[must_use]
    pub fn next_time(&self) -> u64 {
        self.next
    }

    /// Sets a timer.
    pub fn set(&mut self, time: u64, token: T) {
        self.heap.push(Reverse(Entry { time, serial: self.serial, token }));
        self.serial += 1;
        self.next = self.next.min(time);
    }

    /// Takes the next timer.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let Reverse(entry) = self.heap.pop()?;
        self.next = self.heap.peek().map_or(u64::MAX, |Reverse(e)| e.time);
        Some((entry.time, entry.token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_their_order() {
        let mut timers = Timers::default();
        for (time, token) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd')] {
            timers.set(time, token);
        }
        assert_eq!(timers.next_time(), 3);
        let order: String = std::iter::from_fn(|| timers.pop()).map(|(_, token)| token).collect();
        assert_eq!(order, "bdac");
        assert_eq!(timers.next_time(), u64::MAX);
    }
}
