//! Random Early Detection (Floyd and Jacobson 1993), on the queue of the moment or on its moving average.

use super::{Protect, Verdict};
use crate::packet::Packet;
use joulepath_engine::Stream;

/// The state of one RED queue. Lengths are in packets or in bytes, as the thresholds are.
pub(crate) struct Red {
    pub min: f64,
    pub max: f64,
    pub in_bytes: bool,
    pub max_probability: f64,
    pub gentle: bool,
    /// Weight of the present length in the average; 1 is the length itself.
    pub weight: f64,
    pub protect: Protect,
    /// Time to send a packet of mean size: how fast the average of an idle queue decays.
    pub packet_time: u64,
    pub average: f64,
    /// Packets since the last signal while the average was between the thresholds; -1 right after leaving it.
    since: i64,
    random: Stream,
}

impl Red {
    pub fn new(
        (min, max, in_bytes): (f64, f64, bool),
        max_probability: f64,
        gentle: bool,
        weight: f64,
        protect: Protect,
        packet_time: u64,
        random: Stream,
    ) -> Self {
        Self { min, max, in_bytes, max_probability, gentle, weight, protect, packet_time, average: 0.0, since: -1, random }
    }

    /// Judges a packet that finds `length` in the queue, which has been empty for `idle` (zero when it is not).
    #[inline]
    pub fn judge(&mut self, packet: &Packet, length: f64, idle: u64) -> Verdict {
        if self.weight < 1.0 {
            if idle > 0 && self.average > 0.0 {
                self.average *= libm::pow(1.0 - self.weight, idle as f64 / self.packet_time as f64);
            }
            self.average += self.weight * (length - self.average);
        } else {
            self.average = length;
        }
        if self.average < self.min {
            self.since = -1;
            return Verdict::Pass;
        }
        self.since += 1;
        let linear = |from: f64, to: f64, low: f64, high: f64, x: f64| low + (high - low) * (x - from) / (to - from);
        let base = if self.average < self.max {
            linear(self.min, self.max, 0.0, self.max_probability, self.average)
        } else if self.gentle && self.average < 2.0 * self.max {
            linear(self.max, 2.0 * self.max, self.max_probability, 1.0, self.average)
        } else {
            1.0
        };
        // The number of packets between two signals is uniform, not geometric: section 7 of the paper.
        let rest = 1.0 - self.since as f64 * base;
        let signal = base >= 1.0 || (base > 0.0 && (rest <= 0.0 || self.random.uniform() <= base / rest));
        if !signal {
            return Verdict::Pass;
        }
        self.since = 0;
        self.protect.signal(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{ECE, ECT, Kind};

    fn red(gentle: bool, weight: f64) -> Red {
        Red::new((10.0, 30.0, false), 0.1, gentle, weight, Protect::Ect, 1_000_000, Stream::named(1, 0, "red"))
    }

    fn packet(bits: u8) -> Packet {
        Packet { arrival: 0, body: Default::default(), flow: 0, seq: 0, size: 1538, bits, hop: 0 }
    }

    fn share(red: &mut Red, length: f64) -> f64 {
        let n = 100_000;
        f64::from((0..n).filter(|_| red.judge(&packet(ECT), length, 0) == Verdict::Mark).count() as u32) / f64::from(n)
    }

    #[test]
    fn marks_with_the_mean_rate_of_the_paper() {
        // The pseudo-code of the paper counts a packet before it judges it: intervals are uniform on 1 .. 1/p - 1.
        for (length, p) in [(15.0, 0.025), (20.0, 0.05), (29.0, 0.095)] {
            let expected = 2.0 * p;
            let got = share(&mut red(false, 1.0), length);
            assert!((got / expected - 1.0).abs() < 0.02, "{length}: {got} against {expected}");
        }
        assert_eq!(share(&mut red(false, 1.0), 9.9), 0.0);
        assert_eq!(share(&mut red(false, 1.0), 30.0), 1.0);
        let gentle = share(&mut red(true, 1.0), 30.0);
        assert!((0.19..0.21).contains(&gentle), "{gentle}");
        assert_eq!(share(&mut red(true, 1.0), 60.0), 1.0);
    }

    #[test]
    fn spares_what_it_protects() {
        let syn = packet(Kind::Syn as u8 | ECE);
        let (ack, echo, data) = (packet(Kind::Ack as u8), packet(Kind::Ack as u8 | ECE), packet(Kind::Data as u8));
        for (protect, spared) in [
            (Protect::Ect, [false, false, false, false]),
            (Protect::Ece, [true, false, true, false]),
            (Protect::AckSyn, [true, true, true, false]),
            (Protect::All, [true; 4]),
        ] {
            let mut red = Red { protect, ..red(false, 1.0) };
            let verdicts = [syn, ack, echo, data].map(|p| red.judge(&p, 100.0, 0));
            assert_eq!(verdicts, spared.map(|s| if s { Verdict::Pass } else { Verdict::Drop }), "{protect:?}");
            assert_eq!(red.judge(&packet(ECT), 100.0, 0), Verdict::Mark);
        }
    }

    #[test]
    fn the_average_follows_slowly_and_decays_while_idle() {
        let mut red = red(false, 0.002);
        for _ in 0..500 {
            red.judge(&packet(ECT), 40.0, 0);
        }
        let expected = 40.0 * (1.0 - libm::pow(0.998, 500.0));
        assert!((red.average - expected).abs() < 1e-9, "{}", red.average);
        red.judge(&packet(ECT), 0.0, 1000 * red.packet_time);
        assert!((red.average - expected * libm::pow(0.998, 1001.0)).abs() < 1e-9);
    }
}
