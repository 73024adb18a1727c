//! A log-linear histogram: constant relative resolution over the whole range of `u64`.

/// Counts of durations in picoseconds. `BITS` sub-bucket bits bound the error of a percentile to 2^-(BITS + 1).
#[derive(Clone)]
pub struct Histogram<const BITS: u32 = 7> {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
}

impl<const BITS: u32> Default for Histogram<BITS> {
    fn default() -> Self {
        Self { counts: vec![0; ((65 - BITS) as usize) << BITS], total: 0, sum: 0 }
    }
}

impl<const BITS: u32> Histogram<BITS> {
    /// Adds one duration.
    #[inline(always)]
    pub fn record(&mut self, ps: u64) {
        // Below 2^BITS buckets are exact; above, the exponent picks a group and the next BITS bits the bucket.
        let exponent = (ps >> BITS | 1).ilog2();
        let index = if ps < 1 << BITS { ps as usize } else { ((exponent as usize) << BITS) + (ps >> exponent) as usize };
        self.counts[index] += 1;
        self.total += 1;
        self.sum += u128::from(ps);
    }

    /// How many were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The exact mean in seconds; `None` when empty.
    #[must_use]
    pub fn mean_s(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64 / 1e12)
    }

    /// The middle of the bucket that holds the `q`-quantile, in seconds; `None` when empty.
    #[must_use]
    pub fn quantile_s(&self, q: f64) -> Option<f64> {
        let rank = ((self.total as f64 * q).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && count > 0 {
                let (low, width) = Self::bucket(index);
                return Some((low as f64 + (width - 1) as f64 / 2.0) / 1e12);
            }
        }
        None
    }

    /// The non-empty buckets as (lower end, upper end, count) in picoseconds.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, c)| **c > 0).map(|(index, &count)| {
            let (low, width) = Self::bucket(index);
            (low, low.saturating_add(width - 1), count)
        })
    }

    fn bucket(index: usize) -> (u64, u64) {
        let index = index as u64;
        if index < 2 << BITS {
            return (index, 1);
        }
        let exponent = (index >> BITS) - 1;
        ((index - (exponent << BITS)) << exponent, 1 << exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_the_range() {
        for ps in (0..5000).chain([u64::MAX, u64::MAX / 3, 1 << 40, (1 << 40) - 1]) {
            let mut histogram = Histogram::<7>::default();
            histogram.record(ps);
            let (low, high, count) = histogram.buckets().next().unwrap();
            assert!(low <= ps && ps <= high && count == 1, "{ps} in {low}..={high}");
            assert!(u128::from(high - low) * 128 <= u128::from(low.max(128)));
        }
    }

    #[test]
    fn quantiles_and_mean() {
        let mut histogram = Histogram::<10>::default();
        (1..=1000u64).for_each(|i| histogram.record(i * 1_000_000_000));
        assert!((histogram.mean_s().unwrap() - 0.5005).abs() < 1e-12);
        assert!((histogram.quantile_s(0.99).unwrap() / 0.99 - 1.0).abs() < 1e-3);
        assert_eq!(Histogram::<7>::default().quantile_s(0.5), None);
    }
}
