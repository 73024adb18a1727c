//! Random streams, each derived from (seed, run, name): adding one moves no other.
//!
//! xoshiro256++ (Blackman and Vigna 2021) seeded by SplitMix64 over an FNV-1a hash of the name. Transcendental functions
//! come from `libm`, so the same stream has the same bits on every machine.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A random stream.
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream called `name` in repetition `run` of a plan with this `seed`.
    #[must_use]
    pub fn named(seed: u64, run: u64, name: &str) -> Self {
        let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let words = seed.to_le_bytes().into_iter().chain(run.to_le_bytes());
        let hash = words.chain(name.bytes()).fold(0xcbf2_9ce4_8422_2325, fnv);
        Self(Xoshiro256PlusPlus::seed_from_u64(hash))
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in the half-open interval (0, 1]: never zero, so its logarithm is finite.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Uniform below `n` (which must not be zero), without bias.
    pub fn below(&mut self, n: u64) -> u64 {
        // Lemire's multiplication with rejection of the biased low part.
        let threshold = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.0.next_u64()) * u128::from(n);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// Exponential with mean one.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// Pareto with scale one: P(X > x) = x^-shape.
    pub fn pareto(&mut self, shape: f64) -> f64 {
        libm::pow(self.uniform(), -1.0 / shape)
    }

    /// Log-normal with median one: exp(N(0, sigma)).
    pub fn log_normal(&mut self, sigma: f64) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        libm::exp(sigma * radius * libm::cos(core::f64::consts::TAU * self.uniform()))
    }

    /// Shuffles in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_all_of_its_name() {
        let first = |seed, run, name| Stream::named(seed, run, name).next_u64();
        assert_eq!(first(1, 2, "a"), first(1, 2, "a"));
        assert_ne!(first(1, 2, "a"), first(1, 2, "b"));
        assert_ne!(first(1, 2, "a"), first(1, 3, "a"));
        assert_ne!(first(1, 2, "a"), first(2, 2, "a"));
    }

    #[test]
    fn means_are_right() {
        let mut stream = Stream::named(7, 0, "means");
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || stream.exponential()) - 1.0).abs() < 0.01);
        assert!((mean(&mut || stream.below(10) as f64) - 4.5).abs() < 0.03);
        assert!((mean(&mut || stream.pareto(3.0)) - 1.5).abs() < 0.02);
        assert!((mean(&mut || libm::log(stream.log_normal(0.3))).abs()) < 0.01);
    }
}
