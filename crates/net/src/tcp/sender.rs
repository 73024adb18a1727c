//! The sending end of a flow: window, loss recovery, retransmission timer.

use super::cubic::Cubic;
use super::dctcp::Dctcp;
use super::scoreboard::Scoreboard;
use super::{INITIAL_RTO, MAX_RTO, TcpConfig, Variant};
use crate::packet::{Body, SACK_BLOCKS};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// SYN sent.
    Opening,
    Open,
    /// Fast recovery until `recover` is acknowledged.
    Recovery,
    /// After a timeout, until `recover` is acknowledged.
    Loss,
}

/// A segment that may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub number: u32,
    pub retransmitted: bool,
    /// It tells the receiver that the window was reduced.
    pub reduced: bool,
}

/// No segment is being timed.
const UNTIMED: u32 = u32::MAX;

/// The sending end of a flow.
pub(crate) struct Sender {
    /// First unacknowledged segment, next new segment, segments of the flow.
    pub una: u32,
    nxt: u32,
    pub end: u32,
    cwnd: u32,
    /// Acknowledged segments toward the next growth in congestion avoidance.
    credit: u32,
    ssthresh: u32,
    recover: u32,
    state: State,
    backoff: u8,
    /// Whether it waits for room in its network card.
    pub waiting: bool,
    /// The first retransmission of a recovery is sent whatever is in flight (RFC 6675, section 5, step 4.3).
    fast_retransmit: bool,
    /// The next new segment says that the window was reduced; echoes below `echo_until` are of the same congestion (RFC 3168, 6.1.2).
    reduced: bool,
    echo_until: u32,
    timed: u32,
    timed_at: u64,
    srtt: u64,
    rttvar: u64,
    rto: u64,
    /// When the retransmission timer is due; `u64::MAX` for none.
    pub deadline: u64,
    /// When the timer that was last set for this sender comes up; `u64::MAX` for none.
    pub timer_at: u64,
    pub sent: u32,
    pub got: u32,
    board: Option<Box<Scoreboard>>,
    cubic: Option<Box<Cubic>>,
    dctcp: Option<Box<Dctcp>>,
}

impl Sender {
    /// A flow of `end` segments whose SYN is sent `now`.
    pub fn new(end: u32, now: u64, config: &TcpConfig) -> Self {
        Self {
            una: 0,
            nxt: 0,
            end,
            cwnd: config.initial_window,
            credit: 0,
            ssthresh: u32::MAX,
            recover: 0,
            state: State::Opening,
            backoff: 0,
            waiting: false,
            fast_retransmit: false,
            reduced: false,
            echo_until: 0,
            timed: 0,
            timed_at: now,
            srtt: 0,
            rttvar: 0,
            rto: INITIAL_RTO,
            deadline: now + INITIAL_RTO,
            timer_at: u64::MAX,
            sent: 0,
            got: 0,
            board: None,
            cubic: (config.variant == Variant::Cubic).then(Box::default),
            dctcp: (config.variant == Variant::Dctcp).then(Box::default),
        }
    }

    /// A message of `end` segments on a connection that has been open for long: no handshake, and a timer that knows the path.
    pub fn established(end: u32, now: u64, config: &TcpConfig) -> Self {
        let rto = config.min_rto.min(INITIAL_RTO);
        Self { state: State::Open, timed: UNTIMED, rto, deadline: u64::MAX, ..Self::new(end, now, config) }
    }

    pub fn is_opening(&self) -> bool {
        self.state == State::Opening
    }

    pub fn is_complete(&self) -> bool {
        self.una == self.end
    }

    /// The SYN-ACK arrived: data may flow.
    pub fn opened(&mut self, now: u64, config: &TcpConfig) {
        self.state = State::Open;
        if self.backoff == 0 {
            self.measure(now - self.timed_at, config);
        } else {
            // RFC 6298, 5.7 and RFC 5681, 3.1: after a lost SYN, a window of one segment.
            self.cwnd = 1;
            self.backoff = 0;
        }
        self.timed = UNTIMED;
        self.deadline = u64::MAX;
    }

    /// RFC 6298, section 2, with a clock of one picosecond.
    fn measure(&mut self, rtt: u64, config: &TcpConfig) {
        if self.srtt == 0 {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = (3 * self.rttvar + self.srtt.abs_diff(rtt)) / 4;
            self.srtt = (7 * self.srtt + rtt) / 8;
        }
        self.rto = (self.srtt + 4 * self.rttvar).clamp(config.min_rto, MAX_RTO);
    }

    /// Segments believed to be in the network (RFC 6675, "pipe").
    fn in_flight(&self) -> u32 {
        let outstanding = self.nxt - self.una;
        self.board.as_ref().map_or(outstanding, |b| outstanding + b.resent - b.sacked - b.lost)
    }

    /// Whether [`Sender::segment`] would return one.
    #[inline]
    pub fn may_send(&self, config: &TcpConfig) -> bool {
        let lost = self.board.as_ref().is_some_and(|b| b.lost > b.resent);
        let new = self.nxt < self.end.min(self.una.saturating_add(config.window));
        self.state != State::Opening && ((lost || new) && self.in_flight() < self.cwnd || lost && self.fast_retransmit)
    }

    /// The next segment to send now, if the windows allow one.
    #[inline]
    pub fn segment(&mut self, now: u64, config: &TcpConfig) -> Option<Segment> {
        if !self.may_send(config) {
            return None;
        }
        if self.deadline == u64::MAX {
            self.deadline = now + (self.rto << self.backoff).min(MAX_RTO);
        }
        if let Some(number) = self.board.as_mut().and_then(|b| b.resend()) {
            self.fast_retransmit = false;
            self.timed = UNTIMED; // Karn's rule: the outstanding measurement may have become ambiguous.
            return Some(Segment { number, retransmitted: true, reduced: false });
        }
        let number = self.nxt;
        self.nxt += 1;
        if self.timed == UNTIMED {
            self.timed = number;
            self.timed_at = now;
        }
        Some(Segment { number, retransmitted: false, reduced: std::mem::take(&mut self.reduced) })
    }

    /// An acknowledgement of everything below `next`, with SACK blocks, that echoes congestion or does not.
    #[inline]
    pub fn acknowledged(&mut self, next: u32, body: Body, echoed: bool, now: u64, config: &TcpConfig) {
        let before = self.in_flight();
        let acked = next.saturating_sub(self.una);
        if acked > 0 {
            if next > self.timed {
                // `timed` is UNTIMED (the largest number) while nothing is measured.
                self.measure(now - self.timed_at, config);
                self.timed = UNTIMED;
            }
            if let Some(board) = &mut self.board {
                board.acknowledge(self.una, next);
            }
            self.una = next;
            self.backoff = 0;
            self.deadline = if self.una == self.nxt { u64::MAX } else { now + self.rto };
            if let Some(dctcp) = &mut self.dctcp {
                dctcp.acknowledged(acked, echoed, self.una, self.nxt);
            }
        }
        // RFC 3168, 6.1.2: an echo does not let the window grow.
        let growing = if echoed { 0 } else { acked };
        if body.block(0).1 > 0 || self.board.is_some() {
            self.disordered(next, acked, growing, before, body, now);
        } else {
            self.grow(growing, before, now);
        }
        if echoed {
            self.congestion_echoed();
        }
    }

    #[cold]
    fn disordered(&mut self, next: u32, acked: u32, growing: u32, before: u32, body: Body, now: u64) {
        let una = self.una;
        let board = self.board.get_or_insert_with(|| Box::new(Scoreboard::new(una)));
        for (offset, length) in (0..SACK_BLOCKS).map(|i| body.block(i)) {
            let (from, to) = ((next + offset).max(una), (next + offset + length).min(self.nxt));
            if length > 0 && from < to {
                board.sack(from, to);
            }
        }
        board.detect_losses();
        if matches!(self.state, State::Recovery | State::Loss) && una >= self.recover {
            if self.state == State::Recovery {
                self.cwnd = self.ssthresh;
            }
            self.state = State::Open;
        }
        match self.state {
            State::Open if board.lost > 0 => {
                self.reduce(before.max(self.nxt - una));
                self.cwnd = self.ssthresh;
                self.recover = self.nxt;
                self.state = State::Recovery;
                self.fast_retransmit = true;
            }
            // RFC 6582: after a partial acknowledgement the first outstanding segment is lost too.
            State::Recovery if acked > 0 => board.mark_lost(una, (una + 1).min(self.nxt)),
            State::Open | State::Loss => self.grow(growing, before, now),
            State::Recovery | State::Opening => {}
        }
        if let Some(board) = &self.board
            && self.state == State::Open
            && board.sacked == 0
            && board.lost == 0
        {
            self.board = None;
        }
    }

    /// The receiver echoes congestion: reduce the window, once for each window of data (RFC 3168, 6.1.2).
    fn congestion_echoed(&mut self) {
        if self.state == State::Open && self.una > self.echo_until {
            if let Some(dctcp) = &self.dctcp {
                (self.cwnd, self.credit) = dctcp.cut(self.cwnd, self.credit);
                self.ssthresh = self.cwnd;
            } else {
                self.reduce(self.in_flight().max(1));
                self.cwnd = self.ssthresh;
            }
            self.reduced = true;
            self.echo_until = self.nxt;
        }
    }

    fn reduce(&mut self, flight: u32) {
        self.ssthresh = match &mut self.cubic {
            Some(cubic) => cubic.reduce(self.cwnd.min(flight)),
            None => (self.cwnd.min(flight) / 2).max(2),
        };
        self.credit = 0;
    }

    /// Grows the window by RFC 5681, only when it was what limited the sender (RFC 7661).
    #[inline]
    fn grow(&mut self, mut acked: u32, flight: u32, now: u64) {
        let limited = if self.cwnd < self.ssthresh { self.cwnd <= flight.saturating_mul(2) } else { self.cwnd <= flight };
        if !limited || acked == 0 {
            return;
        }
        if self.cwnd < self.ssthresh {
            let step = acked.min(self.ssthresh - self.cwnd);
            self.cwnd += step;
            acked -= step;
        }
        if acked == 0 {
            return;
        }
        match &mut self.cubic {
            Some(cubic) => self.cwnd += cubic.grow(self.cwnd, acked, now, self.srtt),
            None => {
                self.credit += acked;
                if self.credit >= self.cwnd {
                    self.credit -= self.cwnd;
                    self.cwnd += 1;
                }
            }
        }
    }

    /// The retransmission timer ran out. For a SYN the caller sends it again.
    pub fn timed_out(&mut self, now: u64) {
        self.backoff = (self.backoff + 1).min(16);
        self.deadline = now + (self.rto << self.backoff).min(MAX_RTO);
        if self.state == State::Opening {
            return;
        }
        self.timed = UNTIMED;
        if self.state != State::Loss {
            // RFC 5681, (4): only the first timeout of a segment halves the threshold.
            self.reduce(self.in_flight().max(1));
        }
        self.cwnd = 1;
        self.recover = self.nxt;
        self.fast_retransmit = false;
        self.state = State::Loss;
        let una = self.una;
        let board = self.board.get_or_insert_with(|| Box::new(Scoreboard::new(una)));
        board.mark_all_lost(una, self.nxt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;
    const CONFIG: TcpConfig = TcpConfig {
        variant: Variant::NewReno,
        ecn: false,
        window: 1000,
        initial_window: 10,
        min_rto: 200 * MS,
        ack_every: 1,
        delayed_ack: 0,
    };

    fn opened(end: u32) -> Sender {
        let mut sender = Sender::new(end, 0, &CONFIG);
        assert!(!sender.may_send(&CONFIG));
        sender.opened(MS, &CONFIG);
        sender
    }

    fn send_all(sender: &mut Sender, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| sender.segment(now, &CONFIG)).map(|s| s.number).collect()
    }

    fn sack(blocks: &[(u32, u32)]) -> Body {
        let mut body = Body::default();
        blocks.iter().enumerate().for_each(|(i, b)| body.set_block(i, b.0, b.1));
        body
    }

    #[test]
    fn slow_start_doubles_each_round() {
        let mut sender = opened(1000);
        let mut now = MS;
        let mut sent = send_all(&mut sender, now);
        for expected in [10usize, 20, 40, 80] {
            assert_eq!(sent.len(), expected);
            now += MS;
            let acknowledged = std::mem::take(&mut sent);
            for segment in acknowledged {
                sender.acknowledged(segment + 1, Body::default(), false, now, &CONFIG);
                sent.extend(send_all(&mut sender, now));
            }
        }
    }

    #[test]
    fn one_loss_is_repaired_without_a_timeout() {
        let mut sender = opened(1000);
        assert_eq!(send_all(&mut sender, MS).len(), 10);
        // Segment 0 is lost; 1 to 9 arrive. The third SACK starts recovery with half the flight.
        for n in 1..=9 {
            sender.acknowledged(0, sack(&[(1, n)]), false, 2 * MS, &CONFIG);
            if n == 3 {
                assert_eq!(sender.segment(2 * MS, &CONFIG), Some(Segment { number: 0, retransmitted: true, reduced: false }));
                assert_eq!((sender.cwnd, sender.state), (5, State::Recovery));
            } else if n < 3 {
                // Limited transmit (RFC 3042): one new segment for each of the first duplicates.
                assert_eq!(send_all(&mut sender, 2 * MS), [9 + n]);
            }
        }
        let outstanding = sender.nxt;
        sender.acknowledged(outstanding, Body::default(), false, 3 * MS, &CONFIG);
        assert_eq!((sender.state, sender.cwnd, sender.una), (State::Open, 5, outstanding));
        assert!(sender.board.is_none());
    }

    #[test]
    fn a_timeout_sends_again_from_the_first_hole() {
        let mut sender = opened(30);
        send_all(&mut sender, MS);
        sender.acknowledged(2, sack(&[(3, 1)]), false, 2 * MS, &CONFIG); // 0, 1 and 5 arrived
        send_all(&mut sender, 2 * MS);
        let due = sender.deadline;
        sender.timed_out(due);
        assert_eq!(sender.cwnd, 1);
        assert_eq!(send_all(&mut sender, due), [2]);
        sender.acknowledged(3, sack(&[(2, 1)]), false, due + MS, &CONFIG);
        assert_eq!(send_all(&mut sender, due + MS), [3, 4]);
        sender.acknowledged(6, Body::default(), false, due + 2 * MS, &CONFIG);
        assert_eq!(send_all(&mut sender, due + 2 * MS)[..2], [6, 7]);
    }

    #[test]
    fn one_cut_for_each_window_of_echoes() {
        let mut sender = opened(1000);
        assert_eq!(send_all(&mut sender, MS).len(), 10);
        for next in 1..=10 {
            sender.acknowledged(next, Body::default(), true, 2 * MS, &CONFIG);
            assert!(sender.cwnd <= 6, "{}", sender.cwnd);
            if let Some(segment) = sender.segment(2 * MS, &CONFIG) {
                assert_eq!(segment.reduced, segment.number == 10, "only the first new segment says so");
            }
        }
        let cwnd = sender.cwnd;
        assert!((4..=6).contains(&cwnd), "{cwnd}");
        sender.acknowledged(11, Body::default(), true, 3 * MS, &CONFIG);
        assert!(sender.cwnd < cwnd);
    }

    #[test]
    fn the_timer_backs_off_and_recovers() {
        let mut sender = opened(5);
        send_all(&mut sender, MS);
        let first = sender.deadline;
        sender.timed_out(first);
        let second = sender.deadline - first;
        assert_eq!(second, 2 * 200 * MS);
        sender.acknowledged(5, Body::default(), false, first + MS, &CONFIG);
        assert_eq!(sender.deadline, u64::MAX);
        assert!(sender.is_complete());
    }
}
