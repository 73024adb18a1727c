//! Which waiting task runs on which free slot.

use crate::spec::Scheduler;
use std::collections::VecDeque;

/// A task that waits for a slot.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub job: usize,
    /// Tasks of its job that run.
    pub running: usize,
    /// Hosts that have its input, and their racks; empty when it reads no block.
    pub hosts: Vec<u32>,
    pub racks: Vec<u32>,
    pub input: u64,
}

/// A host with free slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Free {
    pub host: u32,
    pub rack: u32,
    pub slots: u32,
}

/// Distance of a task's input from a host: 0 on it, 1 in its rack, 2 beyond.
fn distance(task: &Waiting, free: &Free) -> u64 {
    match task {
        _ if task.hosts.is_empty() || task.hosts.contains(&free.host) => 0,
        _ if task.racks.contains(&free.rack) => 1,
        _ => 2,
    }
}

/// Pairs (index of waiting task, host). Waiting tasks are in order of submission.
pub(crate) fn assign(scheduler: Scheduler, waiting: &[Waiting], free: &[Free]) -> Vec<(usize, u32)> {
    match scheduler {
        Scheduler::Quincy => quincy(waiting, free),
        Scheduler::Fifo | Scheduler::Fair => greedy(scheduler, waiting, free),
    }
}

fn greedy(scheduler: Scheduler, waiting: &[Waiting], free: &[Free]) -> Vec<(usize, u32)> {
    let mut taken = vec![false; waiting.len()];
    let mut started = std::collections::BTreeMap::<usize, usize>::new();
    let mut pairs = Vec::new();
    // One slot of each host in turn, as heartbeats would offer them.
    let rounds = free.iter().map(|f| f.slots).max().unwrap_or(0);
    for (round, slot) in (0..rounds).flat_map(|r| free.iter().map(move |f| (r, f))) {
        if round >= slot.slots {
            continue;
        }
        let open = waiting.iter().enumerate().filter(|(i, _)| !taken[*i]);
        let order = |job: usize, running: usize| match scheduler {
            Scheduler::Fair => (running + started.get(&job).copied().unwrap_or(0), job),
            _ => (0, job),
        };
        let best = open.min_by_key(|(i, t)| (order(t.job, t.running), distance(t, slot), *i));
        let Some((i, task)) = best else { break };
        taken[i] = true;
        *started.entry(task.job).or_default() += 1;
        pairs.push((i, slot.host));
    }
    pairs
}

/// Edges of a flow network in pairs: edge `e ^ 1` is the reverse of `e`.
#[derive(Default)]
struct Flow {
    to: Vec<u32>,
    capacity: Vec<u32>,
    cost: Vec<i64>,
    edges: Vec<Vec<u32>>,
}

impl Flow {
    fn edge(&mut self, from: usize, to: usize, capacity: u32, cost: i64) {
        for (a, b, capacity, cost) in [(from, to, capacity, cost), (to, from, 0, -cost)] {
            self.edges[a].push(self.to.len() as u32);
            self.to.push(b as u32);
            self.capacity.push(capacity);
            self.cost.push(cost);
        }
    }

    /// Sends one unit along a cheapest path (Bellman and Ford with a queue); false when there is none.
    fn augment(&mut self, source: usize, sink: usize) -> bool {
        let n = self.edges.len();
        let (mut cost, mut via, mut queued) = (vec![i64::MAX; n], vec![u32::MAX; n], vec![false; n]);
        let mut queue = VecDeque::from([source]);
        cost[source] = 0;
        while let Some(at) = queue.pop_front() {
            queued[at] = false;
            for &e in &self.edges[at] {
                let (to, total) = (self.to[e as usize] as usize, cost[at] + self.cost[e as usize]);
                if self.capacity[e as usize] > 0 && total < cost[to] {
                    cost[to] = total;
                    via[to] = e;
                    if !std::mem::replace(&mut queued[to], true) {
                        queue.push_back(to);
                    }
                }
            }
        }
        if via[sink] == u32::MAX {
            return false;
        }
        let mut at = sink;
        while at != source {
            let e = via[at] as usize;
            self.capacity[e] -= 1;
            self.capacity[e ^ 1] += 1;
            at = self.to[e ^ 1] as usize;
        }
        true
    }
}

/// Minimum-cost flow: source -> task -> (host with its data | rack | cluster) -> host -> sink, with the bytes that would
/// cross the network as cost and age as tie-break. A slot is never left free to wait for locality.
fn quincy(waiting: &[Waiting], free: &[Free]) -> Vec<(usize, u32)> {
    let slots: u32 = free.iter().map(|f| f.slots).sum();
    // A task without data on any free host is interchangeable with the next: the oldest `slots` of them are enough.
    let mut others = 0;
    let candidate = |t: &Waiting| {
        let local = free.iter().any(|f| t.hosts.contains(&f.host));
        others += u32::from(!local);
        local || others <= slots
    };
    let mut candidates: Vec<usize> = Vec::new();
    let mut candidate = candidate;
    for (i, task) in waiting.iter().enumerate() {
        if candidate(task) {
            candidates.push(i);
        }
        if candidates.len() >= 4 * slots as usize + 64 {
            break;
        }
    }
    if candidates.iter().all(|&i| waiting[i].hosts.is_empty()) {
        return greedy(Scheduler::Fifo, waiting, free);
    }
    let mut racks: Vec<u32> = free.iter().map(|f| f.rack).collect();
    racks.sort_unstable();
    racks.dedup();
    let (tasks, hosts) = (candidates.len(), free.len());
    let (first_host, first_rack) = (1 + tasks, 1 + tasks + hosts);
    let (cluster, sink) = (first_rack + racks.len(), first_rack + racks.len() + 1);
    let mut flow = Flow { edges: vec![vec![]; sink + 1], ..Flow::default() };
    for (t, &i) in candidates.iter().enumerate() {
        let task = &waiting[i];
        flow.edge(0, 1 + t, 1, t as i64);
        let megabytes = (task.input / 1_000_000 + 1) as i64 * tasks as i64;
        for (h, f) in free.iter().enumerate().filter(|(_, f)| task.hosts.contains(&f.host)) {
            let _ = f;
            flow.edge(1 + t, first_host + h, 1, 0);
        }
        for (r, _) in racks.iter().enumerate().filter(|(_, r)| task.racks.contains(r)) {
            flow.edge(1 + t, first_rack + r, 1, megabytes);
        }
        flow.edge(1 + t, cluster, 1, if task.hosts.is_empty() { 0 } else { 2 * megabytes });
    }
    for (r, rack) in racks.iter().enumerate() {
        flow.edge(cluster, first_rack + r, slots, 0);
        for (h, _) in free.iter().enumerate().filter(|(_, f)| f.rack == *rack) {
            flow.edge(first_rack + r, first_host + h, slots, 0);
        }
    }
    for (h, f) in free.iter().enumerate() {
        flow.edge(first_host + h, sink, f.slots, 0);
    }
    while flow.augment(0, sink) {}
    // Read the flow: each task's unit goes to a host directly or through rack and cluster; those are interchangeable, so
    // hosts reached through a rack take its tasks in order.
    let used = |e: u32| e.is_multiple_of(2) && flow.capacity[e as usize ^ 1] > 0;
    let units = |e: u32| flow.capacity[e as usize ^ 1];
    let mut pool: Vec<VecDeque<usize>> = vec![VecDeque::new(); racks.len()];
    let mut anywhere = VecDeque::new();
    let mut pairs = Vec::new();
    for (t, &i) in candidates.iter().enumerate() {
        for &e in flow.edges[1 + t].iter().filter(|&&e| used(e)) {
            match flow.to[e as usize] as usize {
                to if to == cluster => anywhere.push_back(i),
                to if to >= first_rack => pool[to - first_rack].push_back(i),
                to if to >= first_host => pairs.push((i, free[to - first_host].host)),
                _ => {}
            }
        }
    }
    for &e in flow.edges[cluster].iter().filter(|&&e| used(e)) {
        let rack = flow.to[e as usize] as usize - first_rack;
        (0..units(e)).for_each(|_| pool[rack].extend(anywhere.pop_front()));
    }
    for (r, queue) in pool.iter_mut().enumerate() {
        for &e in flow.edges[first_rack + r].iter().filter(|&&e| used(e)) {
            let host = free[flow.to[e as usize] as usize - first_host].host;
            (0..units(e)).for_each(|_| pairs.extend(queue.pop_front().map(|i| (i, host))));
        }
    }
    pairs.sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(job: usize, hosts: &[u32]) -> Waiting {
        Waiting { job, running: 0, hosts: hosts.to_vec(), racks: hosts.iter().map(|h| h / 2).collect(), input: 64_000_000 }
    }

    fn free(hosts: &[(u32, u32)]) -> Vec<Free> {
        hosts.iter().map(|&(host, slots)| Free { host, rack: host / 2, slots }).collect()
    }

    #[test]
    fn quincy_moves_the_least_data() {
        // Greedy in order gives host 0 to the first task and leaves the second, which has only host 0, remote.
        let waiting = [task(0, &[0, 1]), task(0, &[0])];
        assert_eq!(assign(Scheduler::Quincy, &waiting, &free(&[(0, 1), (1, 1)])), [(0, 1), (1, 0)]);
        assert_eq!(assign(Scheduler::Fifo, &waiting, &free(&[(0, 1), (1, 1)])), [(0, 0), (1, 1)]);
    }

    #[test]
    fn every_scheduler_fills_slots_and_prefers_near_data() {
        for scheduler in [Scheduler::Fifo, Scheduler::Fair, Scheduler::Quincy] {
            let waiting: Vec<Waiting> = (0..10).map(|i| task(0, &[i % 4])).collect();
            let slots = free(&[(0, 2), (1, 2), (2, 2), (3, 2)]);
            let pairs = assign(scheduler, &waiting, &slots);
            assert_eq!(pairs.len(), 8, "{scheduler:?}");
            for host in 0..4 {
                assert_eq!(pairs.iter().filter(|p| p.1 == host).count(), 2);
            }
            assert!(pairs.iter().all(|&(i, host)| waiting[i].hosts == [host]), "{scheduler:?} {pairs:?}");
            let far = assign(scheduler, &[task(0, &[1])], &free(&[(3, 1), (0, 1)]));
            assert_eq!(far, [(0, if scheduler == Scheduler::Quincy { 0 } else { 3 })], "{scheduler:?}");
        }
    }

    #[test]
    fn fair_shares_between_jobs() {
        let mut waiting: Vec<Waiting> = (0..6).map(|i| task(i / 3, &[])).collect();
        waiting[0].running = 0;
        let jobs = |s| {
            let mut jobs: Vec<usize> = assign(s, &waiting, &free(&[(0, 4)])).iter().map(|p| waiting[p.0].job).collect();
            jobs.sort_unstable();
            jobs
        };
        assert_eq!(jobs(Scheduler::Fair), [0, 0, 1, 1]);
        assert_eq!(jobs(Scheduler::Fifo), [0, 0, 0, 1]);
    }
}
