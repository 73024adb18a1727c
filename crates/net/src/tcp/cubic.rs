//! CUBIC's window growth (RFC 9438), in segments.

/// RFC 9438, 4.1: C and beta.
const C: f64 = 0.4;
pub(crate) const BETA: f64 = 0.7;

/// The state of CUBIC since the last reduction.
#[derive(Default)]
pub(crate) struct Cubic {
    w_max: f64,
    k: f64,
    epoch: Option<u64>,
    w_est: f64,
    /// Fraction of a segment that the window has grown.
    credit: f64,
}

impl Cubic {
    /// A congestion event at window `cwnd`; returns the new slow-start threshold.
    pub fn reduce(&mut self, cwnd: u32) -> u32 {
        let w = f64::from(cwnd);
        // Fast convergence, RFC 9438, 4.7.
        self.w_max = if w < self.w_max { w * (1.0 + BETA) / 2.0 } else { w };
        self.epoch = None;
        self.credit = 0.0;
        ((w * BETA) as u32).max(2)
    }

    /// `acked` segments were acknowledged in congestion avoidance; returns by how many segments to grow `cwnd`.
    pub fn grow(&mut self, cwnd: u32, acked: u32, now: u64, srtt: u64) -> u32 {
        let w = f64::from(cwnd);
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.k = libm::cbrt((self.w_max - w).max(0.0) / C);
            self.w_max = self.w_max.max(w);
            self.w_est = w;
            now
        });
        let t = (now - epoch) as f64 / 1e12;
        let at = |t: f64| C * (t - self.k) * (t - self.k) * (t - self.k) + self.w_max;
        // The Reno-friendly region, 4.3.
        self.w_est += f64::from(acked) * 3.0 * (1.0 - BETA) / (1.0 + BETA) / w;
        let target = if at(t) < self.w_est { self.w_est } else { at(t + srtt as f64 / 1e12).clamp(w, 1.5 * w) };
        self.credit += f64::from(acked) * ((target - w) / w).max(0.0);
        let grown = self.credit as u32;
        self.credit -= f64::from(grown);
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_to_the_old_window_after_k_seconds() {
        let mut cubic = Cubic::default();
        let mut cwnd = cubic.reduce(1000);
        assert_eq!(cwnd, 700);
        let rtt = 100_000_000_000; // 0.1 s: far from the Reno-friendly region
        let k = libm::cbrt(300.0 / C);
        let mut now = 0;
        while (now as f64) < k * 1e12 {
            cwnd += cubic.grow(cwnd, cwnd, now, rtt);
            now += rtt;
        }
        assert!((990..=1010).contains(&cwnd), "{cwnd} after {k} s");
    }
}
