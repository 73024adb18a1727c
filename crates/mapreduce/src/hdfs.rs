//! Where blocks of the distributed file system lie.

use joulepath_engine::Stream;
use joulepath_net::Topology;

/// Picks hosts for copies as HDFS does: the second in another rack than the first, the third beside the second.
pub(crate) struct Placement {
    stream: Stream,
    /// Worker hosts by rack.
    racks: Vec<Vec<u32>>,
    workers: Vec<u32>,
}

impl Placement {
    pub fn new(topology: &Topology, workers: Vec<u32>, stream: Stream) -> Self {
        let mut by_rack = std::collections::BTreeMap::<u32, Vec<u32>>::new();
        workers.iter().for_each(|&w| by_rack.entry(topology.rack(w)).or_default().push(w));
        Self { stream, racks: by_rack.into_values().collect(), workers }
    }

    /// Hosts of an input block with `copies` copies.
    pub fn block(&mut self, copies: u32) -> Vec<u32> {
        let first = self.workers[self.stream.below(self.workers.len() as u64) as usize];
        self.copies_after(first, copies)
    }

    /// `first` and the hosts of the other copies; fewer when there are not enough hosts.
    pub fn copies_after(&mut self, first: u32, copies: u32) -> Vec<u32> {
        let mut hosts = vec![first];
        while hosts.len() < copies as usize && hosts.len() < self.workers.len() {
            let rack_of = |racks: &[Vec<u32>], h: u32| racks.iter().position(|r| r.contains(&h));
            let home = rack_of(&self.racks, first);
            let candidates: Vec<u32> = match hosts.len() {
                1 => self.racks.iter().enumerate().filter(|(r, _)| Some(*r) != home).flat_map(|(_, h)| h.iter().copied()).collect(),
                2 => rack_of(&self.racks, hosts[1]).map_or(vec![], |r| self.racks[r].clone()),
                _ => vec![],
            };
            let open = |c: Vec<u32>| c.into_iter().filter(|h| !hosts.contains(h)).collect::<Vec<_>>();
            let mut candidates = open(candidates);
            if candidates.is_empty() {
                candidates = open(self.workers.clone());
            }
            let next = candidates[self.stream.below(candidates.len() as u64) as usize];
            hosts.push(next);
        }
        hosts
    }
}
