//! Latency probes: small requests and responses beside the workload, open loop, so that a slow network cannot slow the
//! questions and hide itself ("coordinated omission").

use crate::spec::ProbeSpec;
use joulepath_engine::Stream;
use joulepath_net::{Histogram, HostId};
use joulepath_units::{Instant, Span};

/// What the probes measured.
pub struct ProbeResult {
    /// Requests sent.
    pub sent: u64,
    /// Those whose response was still on its way when the workload ended.
    pub unanswered: u64,
    /// From the moment a request was due to the last byte of its response.
    pub latency: Histogram,
}

struct Probe {
    from: HostId,
    to: HostId,
    due: Instant,
}

pub(crate) struct Probes {
    /// Mean time between requests.
    gap: f64,
    hosts: u64,
    random: Stream,
    open: Vec<Probe>,
    free: Vec<u32>,
    sent: u64,
    latency: Histogram,
}

impl Probes {
    pub fn new(spec: &ProbeSpec, hosts: u32, seed: u64, run: u64) -> Self {
        Self {
            gap: 1.0 / spec.rate.base() as f64,
            hosts: u64::from(hosts),
            random: Stream::named(seed, run, "probes"),
            open: vec![],
            free: vec![],
            sent: 0,
            latency: Histogram::default(),
        }
    }

    /// When the next request is due.
    pub fn next_due(&mut self, now: Instant) -> Instant {
        now + Span::from_seconds(self.gap * self.random.exponential())
    }

    /// A request that is due now: its number, who asks, and whom.
    pub fn ask(&mut self, now: Instant) -> (u32, HostId, HostId) {
        let from = self.random.below(self.hosts) as HostId;
        let other = self.random.below(self.hosts - 1) as HostId;
        let to = other + HostId::from(other >= from);
        let probe = Probe { from, to, due: now };
        self.sent += 1;
        let number = self.free.pop().unwrap_or(self.open.len() as u32);
        if (number as usize) < self.open.len() {
            self.open[number as usize] = probe;
        } else {
            self.open.push(probe);
        }
        (number, from, to)
    }

    /// Who asks, and whom.
    pub fn between(&self, number: u32) -> (HostId, HostId) {
        let probe = &self.open[number as usize];
        (probe.from, probe.to)
    }

    /// The response has arrived.
    pub fn answered(&mut self, number: u32, now: Instant) {
        self.latency.record(now.since(self.open[number as usize].due).base());
        self.free.push(number);
    }

    pub fn finish(self) -> ProbeResult {
        ProbeResult { sent: self.sent, unanswered: self.sent - self.latency.count(), latency: self.latency }
    }
}
