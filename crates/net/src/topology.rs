//! Hosts, switches and the ports between them, with equal-cost routes.

use crate::spec::{LinkPair, NetworkSpec, TopologySpec};
use joulepath_units::{BitRate, Span};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// What a port is for. A port is one end of a link: it stands for the direction that it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PortClass {
    /// A host's network card.
    Nic,
    /// A switch port toward a host.
    Edge,
    /// A switch port away from the hosts.
    Uplink,
    /// A switch port toward the hosts, to another switch.
    Core,
}

impl PortClass {
    /// All classes, in order.
    pub const ALL: [Self; 4] = [Self::Nic, Self::Edge, Self::Uplink, Self::Core];

    /// The word used in plans, JSON and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nic => "nic",
            Self::Edge => "edge",
            Self::Uplink => "uplink",
            Self::Core => "core",
        }
    }
}

pub(crate) struct PortPlan {
    pub from: u32,
    pub to: u32,
    pub class: PortClass,
    pub rate: BitRate,
    pub delay: Span,
}

/// A graph of hosts (numbered first) and switches. Ports come in pairs: `p ^ 1` is the opposite direction of `p`.
pub struct Topology {
    names: Vec<String>,
    hosts: u32,
    /// The switch of each host, relative to the first switch; hosts of one rack share it.
    racks: Vec<u32>,
    pub(crate) ports: Vec<PortPlan>,
    /// For destination switch and current switch, both relative: the ports on shortest paths, as a range of `choices`.
    routes: Vec<(u32, u32)>,
    choices: Vec<u32>,
    pub(crate) longest_path: usize,
}

struct Builder {
    names: Vec<String>,
    hosts: u32,
    /// (lower node, upper node, rate, delay)
    links: Vec<(u32, u32, BitRate, Span)>,
}

impl Topology {
    /// Builds the topology of a plan.
    pub fn new(spec: &NetworkSpec) -> Result<Self, String> {
        let builder = match &spec.topology {
            &TopologySpec::LeafSpine { racks, nodes, spines, edge_rate, fabric_rate, delay } => {
                let mut b = Builder::with_hosts(nodes);
                let leaves: Vec<u32> = (0..racks).map(|r| b.node(format!("rack{r}"))).collect();
                let tops: Vec<u32> = if racks > 1 { (0..spines).map(|s| b.node(format!("spine{s}"))).collect() } else { vec![] };
                for host in 0..nodes {
                    // Even racks in order: host h is in rack h * racks / nodes.
                    let rack = u64::from(host) * u64::from(racks) / u64::from(nodes);
                    b.links.push((host, leaves[rack as usize], edge_rate, delay));
                }
                for &leaf in &leaves {
                    b.links.extend(tops.iter().map(|&top| (leaf, top, fabric_rate, delay)));
                }
                b
            }
            &TopologySpec::FatTree { k, edge_rate, fabric_rate, delay } => {
                let half = k / 2;
                let mut b = Builder::with_hosts(k * half * half);
                let cores: Vec<u32> = (0..half * half).map(|c| b.node(format!("core{c}"))).collect();
                for pod in 0..k {
                    let edges: Vec<u32> = (0..half).map(|e| b.node(format!("pod{pod}.edge{e}"))).collect();
                    let aggs: Vec<u32> = (0..half).map(|a| b.node(format!("pod{pod}.agg{a}"))).collect();
                    for (e, &edge) in edges.iter().enumerate() {
                        let first = (pod * half + e as u32) * half;
                        b.links.extend((first..first + half).map(|host| (host, edge, edge_rate, delay)));
                        b.links.extend(aggs.iter().map(|&agg| (edge, agg, fabric_rate, delay)));
                    }
                    for (a, &agg) in aggs.iter().enumerate() {
                        let own = &cores[a * half as usize..(a + 1) * half as usize];
                        b.links.extend(own.iter().map(|&core| (agg, core, fabric_rate, delay)));
                    }
                }
                b
            }
            TopologySpec::Links { links } => Builder::from_list(links)?,
        };
        builder.finish(spec.ports.extra_latency)
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// The number of the host with this name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<u32> {
        self.names[..self.hosts as usize].iter().position(|n| n == name).map(|h| h as u32)
    }

    /// The rack of a host: hosts with the same number share a switch.
    #[must_use]
    pub fn rack(&self, host: u32) -> u32 {
        self.racks[host as usize]
    }

    pub(crate) fn port_name(&self, port: usize) -> String {
        let p = &self.ports[port];
        format!("{}->{}", self.names[p.from as usize], self.names[p.to as usize])
    }

    /// The ports from `src` to `dst`; `hash` picks among equal paths.
    pub(crate) fn path(&self, src: u32, dst: u32, mut hash: u64, path: &mut Vec<u32>) {
        path.clear();
        path.push(2 * src); // A host's only link is the pair (2 * host, 2 * host + 1).
        let switches = self.names.len() as u32 - self.hosts;
        let (mut at, goal) = (self.racks[src as usize], self.racks[dst as usize]);
        while at != goal {
            let (from, to) = self.routes[(goal * switches + at) as usize];
            let choices = &self.choices[from as usize..to as usize];
            hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ 0xbf58_476d_1ce4_e5b9;
            let port = choices[(((hash >> 32) * choices.len() as u64) >> 32) as usize];
            path.push(port);
            at = self.ports[port as usize].to - self.hosts;
        }
        path.push(2 * dst + 1);
    }
}

impl Builder {
    fn with_hosts(hosts: u32) -> Self {
        Self { names: (0..hosts).map(|h| format!("host{h}")).collect(), hosts, links: vec![] }
    }

    fn node(&mut self, name: String) -> u32 {
        self.names.push(name);
        self.names.len() as u32 - 1
    }

    /// Names that occur once are hosts.
    fn from_list(links: &[LinkPair]) -> Result<Self, String> {
        let mut degree: BTreeMap<&str, u32> = BTreeMap::new();
        for (i, link) in links.iter().enumerate() {
            if link.a == link.b {
                return Err(format!("topology.links[{i}]: found a link from {:?} to itself; expected two different names", link.a));
            }
            *degree.entry(&link.a).or_default() += 1;
            *degree.entry(&link.b).or_default() += 1;
        }
        let mut names: Vec<&str> = degree.iter().filter(|d| *d.1 == 1).map(|d| *d.0).collect();
        let hosts = names.len() as u32;
        if hosts < 2 {
            return Err(format!("topology.links: found {hosts} hosts (names that occur once); expected at least 2"));
        }
        names.extend(degree.iter().filter(|d| *d.1 > 1).map(|d| *d.0));
        let index: BTreeMap<&str, u32> = names.iter().enumerate().map(|(i, n)| (*n, i as u32)).collect();
        let mut ends: Vec<(u32, u32, BitRate, Span)> = vec![];
        for (i, link) in links.iter().enumerate() {
            let (a, b) = (index[link.a.as_str()], index[link.b.as_str()]);
            if a.max(b) < hosts {
                return Err(format!(
                    "topology.links[{i}]: found a link between two hosts; expected a switch (a name that occurs more than once) between them"
                ));
            }
            ends.push((a.min(b), a.max(b), link.rate, link.delay));
        }
        // Host links come first and in host order, as in the other topologies.
        ends.sort_by_key(|l| l.0.min(hosts));
        Ok(Self { names: names.into_iter().map(String::from).collect(), hosts, links: ends })
    }

    fn finish(self, extra: Span) -> Result<Topology, String> {
        let Self { names, hosts, links } = self;
        let switches = names.len() - hosts as usize;
        let mut ports = Vec::with_capacity(2 * links.len());
        let mut racks = vec![0; hosts as usize];
        let mut level = vec![u32::MAX; switches];
        let mut neighbours: Vec<Vec<(usize, u32)>> = vec![vec![]; switches];
        let mut next: VecDeque<usize> = VecDeque::new();
        let mut host_links: Vec<_> = links.iter().filter(|l| l.0 < hosts).collect();
        host_links.sort_by_key(|l| l.0);
        let ordered = host_links.into_iter().chain(links.iter().filter(|l| l.0 >= hosts));
        for (i, &(low, high, rate, delay)) in ordered.enumerate() {
            let delay = delay + extra;
            let high_at = (high - hosts) as usize;
            if low < hosts {
                racks[low as usize] = high_at as u32;
                if level[high_at] != 0 {
                    level[high_at] = 0;
                    next.push_back(high_at);
                }
                ports.push(PortPlan { from: low, to: high, class: PortClass::Nic, rate, delay });
                ports.push(PortPlan { from: high, to: low, class: PortClass::Edge, rate, delay });
            } else {
                let low_at = (low - hosts) as usize;
                neighbours[low_at].push((high_at, 2 * i as u32));
                neighbours[high_at].push((low_at, 2 * i as u32 + 1));
                ports.push(PortPlan { from: low, to: high, class: PortClass::Uplink, rate, delay });
                ports.push(PortPlan { from: high, to: low, class: PortClass::Core, rate, delay });
            }
        }
        // A switch is one level above the nearest hosts below it; a port that leads down a level is a core port.
        while let Some(at) = next.pop_front() {
            for &(to, _) in &neighbours[at] {
                if level[to] == u32::MAX {
                    level[to] = level[at] + 1;
                    next.push_back(to);
                }
            }
        }
        for port in ports.iter_mut().filter(|p| p.from >= hosts && p.to >= hosts) {
            let (from, to) = (level[(port.from - hosts) as usize], level[(port.to - hosts) as usize]);
            port.class = if from < to || (from == to && port.from < port.to) { PortClass::Uplink } else { PortClass::Core };
        }
        let (mut routes, mut choices, mut longest) = (Vec::with_capacity(switches * switches), vec![], 2);
        let mut used: Vec<usize> = racks.iter().map(|&r| r as usize).collect();
        used.sort_unstable();
        used.dedup();
        for goal in 0..switches {
            // Nothing goes to a switch without hosts, only through it.
            if used.binary_search(&goal).is_err() {
                routes.extend(std::iter::repeat_n((0, 0), switches));
                continue;
            }
            let mut distance = vec![usize::MAX; switches];
            distance[goal] = 0;
            let mut queue = VecDeque::from([goal]);
            while let Some(at) = queue.pop_front() {
                for &(to, _) in &neighbours[at] {
                    if distance[to] == usize::MAX {
                        distance[to] = distance[at] + 1;
                        queue.push_back(to);
                    }
                }
            }
            for at in 0..switches {
                let from = choices.len() as u32;
                if distance[at] != usize::MAX {
                    choices.extend(neighbours[at].iter().filter(|(to, _)| distance[*to].wrapping_add(1) == distance[at]).map(|n| n.1));
                }
                routes.push((from, choices.len() as u32));
            }
            if let Some(&lost) = used.iter().find(|&&r| distance[r] == usize::MAX) {
                let name = |s: usize| &names[hosts as usize + s];
                return Err(format!(
                    "topology.links: found no path between {:?} and {:?}; expected a connected network",
                    name(lost),
                    name(goal)
                ));
            }
            longest = longest.max(used.iter().map(|&r| distance[r] + 2).max().unwrap_or(2));
        }
        if ports.len() >= usize::from(u16::MAX) {
            return Err(format!("topology: found {} ports; expected fewer than {}", ports.len(), u16::MAX));
        }
        Ok(Topology { names, hosts, racks, ports, routes, choices, longest_path: longest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(topology: TopologySpec) -> Topology {
        Topology::new(&NetworkSpec { topology, ..NetworkSpec::default() }).unwrap()
    }

    fn classes(t: &Topology, path: &[u32]) -> Vec<PortClass> {
        path.iter().map(|&p| t.ports[p as usize].class).collect()
    }

    #[test]
    fn paths_connect() {
        let rate = |g: u64| BitRate::from_base(g * 1_000_000_000);
        let delay = Span::from_base(1);
        let leaf_spine = TopologySpec::LeafSpine { racks: 4, nodes: 42, spines: 2, edge_rate: rate(1), fabric_rate: rate(10), delay };
        let fat_tree = TopologySpec::FatTree { k: 4, edge_rate: rate(1), fabric_rate: rate(1), delay };
        for (spec, hosts) in [(leaf_spine, 42), (fat_tree, 16)] {
            let t = build(spec);
            assert_eq!(t.hosts(), hosts);
            let mut path = vec![];
            for (src, dst) in (0..hosts).flat_map(|s| (0..hosts).map(move |d| (s, d))).filter(|(s, d)| s != d) {
                t.path(src, dst, u64::from(src * 7919 + dst), &mut path);
                assert_eq!(t.ports[path[0] as usize].from, src);
                assert_eq!(t.ports[*path.last().unwrap() as usize].to, dst);
                path.windows(2).for_each(|w| assert_eq!(t.ports[w[0] as usize].to, t.ports[w[1] as usize].from));
                assert!(path.len() <= t.longest_path);
                let c = classes(&t, &path);
                assert!(c.windows(2).all(|w| w[0] <= w[1] || w == [PortClass::Core, PortClass::Edge]), "{c:?}");
            }
            (0..t.ports.len()).for_each(|p| assert_eq!(t.ports[p].from, t.ports[p ^ 1].to));
        }
    }

    #[test]
    fn equal_paths_are_all_used() {
        let t = build(TopologySpec::LeafSpine {
            racks: 2,
            nodes: 4,
            spines: 4,
            edge_rate: BitRate::from_base(1_000_000_000),
            fabric_rate: BitRate::from_base(1_000_000_000),
            delay: Span::ZERO,
        });
        let mut used = BTreeMap::new();
        let mut path = vec![];
        (0..4000).for_each(|hash| {
            t.path(0, 3, hash, &mut path);
            *used.entry(path[1]).or_insert(0) += 1;
        });
        assert_eq!(used.len(), 4);
        assert!(used.values().all(|n| (800..1200).contains(n)), "{used:?}");
    }

    #[test]
    fn a_list_of_links() {
        let link = |a: &str, b: &str| LinkPair { a: a.into(), b: b.into(), rate: BitRate::from_base(1_000_000_000), delay: Span::ZERO };
        let build =
            |links: Vec<LinkPair>| Topology::new(&NetworkSpec { topology: TopologySpec::Links { links }, ..NetworkSpec::default() });
        let t = build(vec![link("s1", "s2"), link("b", "s2"), link("a", "s1"), link("c", "s1")]).unwrap();
        assert_eq!((t.hosts(), t.ports.len()), (3, 8));
        let mut path = vec![];
        t.path(0, 1, 0, &mut path);
        assert_eq!(path.iter().map(|&p| t.port_name(p as usize)).collect::<Vec<_>>(), ["a->s1", "s1->s2", "s2->b"]);
        let message = |links| build(links).err().unwrap();
        assert!(message(vec![link("a", "a")]).contains("to itself"));
        assert!(message(vec![link("a", "b")]).contains("between two hosts"));
        assert!(message(vec![link("a", "s"), link("b", "s"), link("c", "t"), link("d", "t")]).contains("no path"));
    }
}
