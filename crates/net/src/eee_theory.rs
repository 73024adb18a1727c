//! The exact means of a link with Poisson arrivals and frames of one size: an M/D/1 queue with generalised vacations.
//!
//! Derivation. A cycle begins when the queue empties. With probability p = exp(-lambda stall) it sleeps; the vacation V
//! from the start of T_s to the start of T_w is max(T_s, min(X + timer, A_n)), with X the first and A_n the n-th arrival.
//! V is a stopping time of the arrivals, so (Wald) E[N(V)] = lambda E[V], and as N(N-1) is compensated by 2 lambda N,
//! E[N(V)(N(V)-1)] = 2 lambda E[integral of N over V]. Both reduce to integrals of P(M > t) and E[N(t); M > t], which are
//! sums of Poisson tails. With Q frames waiting when service starts, the decomposition of Fuhrmann and Cooper (1985)
//! gives the mean wait lambda D^2 / (2 (1 - rho)) + E[Q(Q-1)] / (2 lambda E[Q]).

use crate::eee::{Policy, Trigger};
use crate::phy::Phy;

/// Exact means in steady state. Times in seconds, shares of time from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Theory {
    /// Share of time in each state: active, sleeping, low-power idle, waking.
    pub shares: [f64; 4],
    /// Mean time from arrival to start of transmission.
    pub wait_s_mean: f64,
    /// Times per second that the link goes to sleep.
    pub sleeps_per_s: f64,
    /// Frames sent for each sleep; `None` when it never sleeps.
    pub frames_per_burst: Option<f64>,
}

/// P(Poisson(x) <= k); zero for negative k.
fn poisson_at_most(k: i64, x: f64) -> f64 {
    if k < 0 {
        return 0.0;
    }
    // Terms in logarithms: x reaches thousands with the long timers.
    let mut log_term = -x;
    let mut sum = libm::exp(log_term);
    for i in 1..=k {
        if x == 0.0 {
            break;
        }
        log_term += libm::log(x / i as f64);
        sum += libm::exp(log_term);
    }
    sum.min(1.0)
}

/// The exact solution for frames of `frame_s` seconds at `load` of line rate; an error names what it does not cover.
pub fn theory(policy: Policy, phy: &Phy, load: f64, frame_s: f64) -> Result<Theory, String> {
    if !(load > 0.0 && load < 1.0) {
        return Err(format!("found load {load}; the closed form needs a load above 0 and below 1"));
    }
    let lambda = load / frame_s;
    let queueing = lambda * frame_s * frame_s / (2.0 * (1.0 - load));
    let (t_s, t_w) = (phy.sleep.seconds(), phy.wake.seconds());
    let (stall, timer, n) = match policy {
        Policy::Legacy => {
            return Ok(Theory { shares: [1.0, 0.0, 0.0, 0.0], wait_s_mean: queueing, sleeps_per_s: 0.0, frames_per_burst: None });
        }
        Policy::Ideal => {
            let sleeps_per_s = lambda * (1.0 - load);
            let shares = [load, 0.0, 1.0 - load, 0.0];
            return Ok(Theory { shares, wait_s_mean: queueing, sleeps_per_s, frames_per_burst: Some(lambda / sleeps_per_s) });
        }
        Policy::Eee { stall } => (stall.seconds(), 0.0, i64::from(u32::MAX)),
        Policy::Coalesce { timer, trigger: Trigger::Frames(n) } => (0.0, timer.seconds(), i64::from(n)),
        Policy::Coalesce { trigger: Trigger::Bytes(_), .. } => {
            return Err("a trigger in bytes has no closed form here; give it in frames or use --method simulate".into());
        }
    };
    let late = t_s.max(timer);
    // Integrals over t > T_s of P(M > t) and of E[N(t); M > t]; below `timer` no first arrival can have run out.
    let tail = libm::exp(-lambda * (late - timer)) / lambda;
    let (held, at_most) = if timer > 0.0 { (lambda * timer, poisson_at_most(n - 1, lambda * timer)) } else { (0.0, 1.0) };
    let mut beyond = tail * at_most;
    let mut count = tail * if timer > 0.0 { held * poisson_at_most(n - 2, held) } else { 0.0 };
    if t_s < timer {
        // P(M > t) = P(Poisson(lambda t) < n), whose integral is a sum of Poisson tails.
        let between = |k: i64| poisson_at_most(k, lambda * t_s) - poisson_at_most(k, lambda * timer);
        beyond += (0..n).map(between).sum::<f64>() / lambda;
        count += (0..n - 1).map(|k| (k + 1) as f64 * between(k + 1)).sum::<f64>() / lambda;
    }
    let vacation = t_s + beyond;
    let pairs_in_vacation = lambda * lambda * t_s * t_s + 2.0 * lambda * count;
    let pairs = pairs_in_vacation + 2.0 * lambda * t_w * lambda * vacation + (lambda * t_w) * (lambda * t_w);
    let asleep = libm::exp(-lambda * stall);
    let idle = (1.0 - asleep) / lambda + asleep * (vacation + t_w);
    let cycle = idle / (1.0 - load);
    let (sleeping, waking) = (asleep * t_s / cycle, asleep * t_w / cycle);
    let lpi = asleep * (vacation - t_s) / cycle;
    Ok(Theory {
        shares: [1.0 - sleeping - lpi - waking, sleeping, lpi, waking],
        wait_s_mean: queueing + asleep * pairs / (2.0 * lambda * lambda * idle),
        sleeps_per_s: asleep / cycle,
        frames_per_burst: Some(lambda * cycle / asleep),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::phys;

    fn ten_gig() -> &'static Phy {
        phys().iter().find(|p| p.name == "10GBASE-T").unwrap()
    }

    #[test]
    fn standard_eee_at_low_and_moderate_load() {
        // Seed 000, Figure 2 read at 10 % and 20 %: "almost half" and "70 %"; exact theory gives 54 % and 76 %.
        let energy = |load| {
            let t = theory("eee".parse().unwrap(), ten_gig(), load, 1.2e-6).unwrap();
            1.0 - 0.9 * t.shares[2]
        };
        assert!((energy(0.10) - 0.54).abs() < 0.005, "{}", energy(0.10));
        assert!((energy(0.20) - 0.76).abs() < 0.005, "{}", energy(0.20));
    }

    #[test]
    fn limits() {
        let of = |policy: &str| theory(policy.parse().unwrap(), ten_gig(), 0.3, 1.2e-6).unwrap();
        // A trigger of one frame is standard EEE, whatever the timer.
        let (one, plain) = (of("coalesce:1ms/1"), of("eee"));
        assert!((one.wait_s_mean / plain.wait_s_mean - 1.0).abs() < 1e-9);
        assert!((one.shares[2] - plain.shares[2]).abs() < 1e-9);
        // A stall timer that never runs out is legacy.
        assert!((of("eee:1s").wait_s_mean / of("legacy").wait_s_mean - 1.0).abs() < 1e-9);
        for policy in ["eee", "12us10", "120us100", "1ms1000", "eee:50us"] {
            let t = of(policy);
            assert!((t.shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(t.shares[0] >= 0.3 - 1e-12);
        }
    }
}
