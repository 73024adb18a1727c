//! DCTCP's estimate of congestion and its cut of the window (RFC 8257, section 3.3).

/// One, in the fixed-point numbers of this file.
const ONE: u64 = 1 << 20;
/// The estimation gain g = 1/16.
const GAIN_BITS: u32 = 4;

/// What a DCTCP sender keeps besides the state of TCP.
pub(crate) struct Dctcp {
    /// Estimated share of marked bytes, of [`ONE`]; it starts at one.
    alpha: u64,
    acked: u64,
    marked: u64,
    /// The observation window ends when more than this is acknowledged.
    window_end: u32,
}

impl Default for Dctcp {
    fn default() -> Self {
        Self { alpha: ONE, acked: 0, marked: 0, window_end: 0 }
    }
}

impl Dctcp {
    /// `acked` segments were newly acknowledged, up to `una`, with or without an echo of congestion; `nxt` is sent next.
    pub fn acknowledged(&mut self, acked: u32, echoed: bool, una: u32, nxt: u32) {
        self.acked += u64::from(acked);
        self.marked += if echoed { u64::from(acked) } else { 0 };
        if una > self.window_end && self.acked > 0 {
            self.alpha = self.alpha - (self.alpha >> GAIN_BITS) + ((self.marked * ONE) >> GAIN_BITS) / self.acked;
            self.alpha = self.alpha.min(ONE);
            (self.acked, self.marked) = (0, 0);
            self.window_end = nxt;
        }
    }

    /// The window of `cwnd` segments and `credit / cwnd` of one more, multiplied by 1 - alpha / 2: at least two segments.
    pub fn cut(&self, cwnd: u32, credit: u32) -> (u32, u32) {
        let window = u64::from(cwnd) * ONE + u64::from(credit.min(cwnd)) * ONE / u64::from(cwnd.max(1));
        let cut = (window - (u128::from(window) * u128::from(self.alpha) / u128::from(2 * ONE)) as u64).max(2 * ONE);
        let whole = (cut / ONE) as u32;
        (whole, ((cut % ONE) * u64::from(whole) / ONE) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of 100 segments of which every `n`-th acknowledgement echoes.
    fn after(windows: u32, every: u32) -> Dctcp {
        let mut dctcp = Dctcp::default();
        for i in 1..=windows * 100 {
            dctcp.acknowledged(1, i % every == 0, i, i.div_ceil(100) * 100);
        }
        dctcp
    }

    #[test]
    fn the_estimate_converges_to_the_share_of_marks() {
        for every in [1, 4, 10] {
            let alpha = after(200, every).alpha as f64 / ONE as f64;
            assert!((alpha - 1.0 / f64::from(every)).abs() < 0.01, "{every}: {alpha}");
        }
        // Without marks it decays by 15/16 for each window and reaches (nearly) zero.
        let alpha = after(17, u32::MAX).alpha as f64 / ONE as f64;
        assert!((alpha - 0.9375f64.powi(16)).abs() < 0.03, "{alpha}");
        assert!(after(400, u32::MAX).alpha < 16);
    }

    #[test]
    fn the_cut_follows_the_estimate_to_fractions_of_a_segment() {
        assert_eq!(Dctcp::default().cut(40, 0), (20, 0), "with alpha = 1 the window is halved");
        assert_eq!(Dctcp { alpha: ONE / 10, ..Dctcp::default() }.cut(10, 0), (9, 4), "9.5 segments");
        assert_eq!(Dctcp { alpha: 0, ..Dctcp::default() }.cut(10, 5).0, 10);
        assert_eq!(Dctcp::default().cut(2, 0), (2, 0), "never below two");
    }
}
