//! The SACK scoreboard of a sender (RFC 6675): what was selectively acknowledged, is lost, and was sent again.
//!
//! Bitmaps over the outstanding segments, so a repeated SACK block costs a word operation, not a walk.

use std::collections::VecDeque;

/// RFC 6675: a segment is lost once this many segments above it were selectively acknowledged.
const DUP_THRESH: u32 = 3;

#[derive(Clone, Copy, Default)]
struct Word {
    sacked: u64,
    lost: u64,
    resent: u64,
}

/// Marks of the segments from `una` on.
pub(crate) struct Scoreboard {
    /// Segment of bit zero of the first word; a multiple of 64.
    base: u32,
    words: VecDeque<Word>,
    pub sacked: u32,
    pub lost: u32,
    pub resent: u32,
    /// One above the highest selectively acknowledged segment.
    high: u32,
    /// Every unacknowledged segment below is marked lost.
    lost_below: u32,
}

impl Scoreboard {
    pub fn new(una: u32) -> Self {
        Self { base: una & !63, words: VecDeque::new(), sacked: 0, lost: 0, resent: 0, high: una, lost_below: una }
    }

    fn word(&mut self, segment: u32) -> &mut Word {
        let i = ((segment - self.base) / 64) as usize;
        if i >= self.words.len() {
            self.words.resize(i + 1, Word::default());
        }
        &mut self.words[i]
    }

    /// Calls `f` with each word of `[from, to)` and the mask of the segments in it.
    fn each_word(&mut self, from: u32, to: u32, mut f: impl FnMut(&mut Word, u64)) {
        let mut at = from;
        while at < to {
            let end = to.min((at | 63) + 1);
            let mask = (u64::MAX >> (64 - (end - at))) << (at & 63);
            f(self.word(at), mask);
            at = end;
        }
    }

    /// Marks `[from, to)` as selectively acknowledged; `from` is at or above the first outstanding segment.
    pub fn sack(&mut self, from: u32, to: u32) {
        let (mut sacked, mut lost, mut resent) = (0, 0, 0);
        self.each_word(from, to, |word, mask| {
            let new = mask & !word.sacked;
            sacked += new.count_ones();
            lost += (word.lost & new).count_ones();
            resent += (word.resent & new).count_ones();
            word.sacked |= new;
            word.lost &= !new;
            word.resent &= !new;
        });
        self.sacked += sacked;
        self.lost -= lost;
        self.resent -= resent;
        self.high = self.high.max(to);
    }

    /// Marks as lost what has enough selectively acknowledged segments above it.
    pub fn detect_losses(&mut self) {
        // Find the third-highest acknowledged segment: everything unacknowledged below it is lost.
        let (mut found, mut at) = (0, self.high);
        while at > self.lost_below && found < DUP_THRESH {
            at -= 1;
            found += (self.word(at).sacked >> (at & 63) & 1) as u32;
        }
        if found == DUP_THRESH {
            self.mark_lost(self.lost_below, at);
        }
    }

    /// Marks the unacknowledged segments of `[from, to)` as lost, except what was sent again.
    pub fn mark_lost(&mut self, from: u32, to: u32) {
        let mut lost = 0;
        self.each_word(from, to, |word, mask| {
            let new = mask & !word.sacked & !word.lost;
            lost += new.count_ones();
            word.lost |= new;
        });
        self.lost += lost;
        self.lost_below = self.lost_below.max(to);
    }

    /// A timeout: everything outstanding and unacknowledged is lost, also what was sent again (RFC 6675, 5.1).
    pub fn mark_all_lost(&mut self, una: u32, nxt: u32) {
        for word in &mut self.words {
            word.resent = 0;
        }
        self.resent = 0;
        self.mark_lost(una, nxt);
    }

    /// The cumulative acknowledgement moved from `from` to `to`.
    pub fn acknowledge(&mut self, from: u32, to: u32) {
        let (mut sacked, mut lost, mut resent) = (0, 0, 0);
        let end = to.min(self.base + 64 * self.words.len() as u32);
        self.each_word(from, end, |word, mask| {
            sacked += (word.sacked & mask).count_ones();
            lost += (word.lost & mask).count_ones();
            resent += (word.resent & mask).count_ones();
            *word = Word { sacked: word.sacked & !mask, lost: word.lost & !mask, resent: word.resent & !mask };
        });
        self.sacked -= sacked;
        self.lost -= lost;
        self.resent -= resent;
        while self.base + 64 <= to {
            self.words.pop_front();
            self.base += 64;
        }
        if self.words.is_empty() {
            self.base = to & !63;
        }
        self.high = self.high.max(to);
        self.lost_below = self.lost_below.max(to);
    }

    /// The first lost segment that was not sent again, now marked as sent again.
    pub fn resend(&mut self) -> Option<u32> {
        if self.lost == self.resent {
            return None;
        }
        for (i, word) in self.words.iter_mut().enumerate() {
            let waiting = word.lost & !word.resent;
            if waiting != 0 {
                let bit = waiting.trailing_zeros();
                word.resent |= 1 << bit;
                self.resent += 1;
                return Some(self.base + 64 * i as u32 + bit);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_above_make_a_loss() {
        let mut board = Scoreboard::new(100);
        board.sack(101, 103);
        board.detect_losses();
        assert_eq!((board.sacked, board.lost), (2, 0));
        board.sack(101, 104);
        board.detect_losses();
        assert_eq!((board.sacked, board.lost), (3, 1));
        assert_eq!(board.resend(), Some(100));
        assert_eq!(board.resend(), None);
        board.acknowledge(100, 104);
        assert_eq!((board.sacked, board.lost, board.resent), (0, 0, 0));
    }

    #[test]
    fn counts_agree_with_the_marks_across_words() {
        let mut board = Scoreboard::new(10);
        board.sack(60, 70);
        board.sack(130, 200);
        board.detect_losses();
        assert_eq!((board.sacked, board.lost), (80, 50 + 60));
        let resent: Vec<u32> = std::iter::from_fn(|| board.resend()).collect();
        assert!(resent.into_iter().eq((10..60).chain(70..130)));
        board.sack(10, 60);
        board.acknowledge(10, 70);
        assert_eq!((board.sacked, board.lost, board.resent), (70, 60, 60));
        board.mark_all_lost(70, 250);
        assert_eq!((board.lost, board.resent), (110, 0));
        assert_eq!(board.resend(), Some(70)); // nothing below what is acknowledged
        board.acknowledge(70, 250);
        assert_eq!((board.sacked, board.lost, board.resent), (0, 0, 0));
    }
}
