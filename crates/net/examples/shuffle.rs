//! The speed benchmark's scenario: an all-to-all shuffle on a leaf-spine network. See `bench/`.
//!
//! Usage: `shuffle RACKS HOSTS_PER_RACK BYTES SPINES [POLICY] [NIC_QUEUE] [PEERS] [QUEUE]`; prints one line of `key=value`. Each host
//! sends to all others, or to the PEERS that follow it at equal distances.

use joulepath_engine::Stream;
use joulepath_net::{
    Buffer, EeeSpec, Network, NetworkSpec, NicQueue, Notice, Opening, PortsSpec, Protect, QueueSpec, TcpSpec, Threshold, TopologySpec,
    Window,
};
use joulepath_units::{Bytes, Instant, Span};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: u64| args.get(i).map_or(default, |a| a.parse().expect("a whole number"));
    let (racks, per_rack, bytes, spines) = (number(0, 4) as u32, number(1, 10) as u32, number(2, 1_000_000), number(3, 2) as u32);
    let policy = args.get(4).map_or("legacy", String::as_str).parse().expect("a policy");
    let nic_queue = if args.get(5).is_some_and(|a| a == "pushback") { NicQueue::Pushback } else { NicQueue::Limit(Buffer::Packets(200)) };
    let packets = |n: f64| Threshold::Packets(n);
    let protect = Protect::Ect;
    let queue = match args.get(7).map_or("droptail", String::as_str) {
        "droptail" => QueueSpec::DropTail,
        "mark" => QueueSpec::Mark { threshold: packets(65.0) },
        "red" => QueueSpec::Red {
            min: Some(packets(25.0)),
            max: Some(packets(75.0)),
            target: None,
            mean_packet: Bytes::from_base(500),
            max_probability: 0.1,
            gentle: false,
            weight: 1.0,
            protect,
        },
        "codel" => QueueSpec::CoDel { target: Span::from_base(500_000_000), interval: Span::from_base(20_000_000_000), protect },
        other => panic!("{other}: expected droptail, mark, red or codel"),
    };
    let nodes = racks * per_rack;
    let gigabit = |n: u64| joulepath_units::BitRate::from_base(n * 1_000_000_000);
    let spec = NetworkSpec {
        topology: TopologySpec::LeafSpine {
            racks,
            nodes,
            spines,
            edge_rate: gigabit(1),
            fabric_rate: gigabit(10),
            delay: Span::from_base(5_000_000),
        },
        ports: PortsSpec { buffer: Buffer::Packets(200), queue, nic_queue, overhead: Bytes::ZERO, ..PortsSpec::default() },
        eee: EeeSpec { policy, ..EeeSpec::default() },
        tcp: TcpSpec { ecn: Some(true), receive_window: Window::Bytes(Bytes::from_base(1 << 20)), ack_every: 1, ..TcpSpec::default() },
        observe: Default::default(),
    };
    let mut network = Network::new(&spec, 1).expect("a valid network");
    let mut starts = Stream::named(1, 0, "starts");
    let mut pairs = Vec::new();
    let peers = (number(6, 0) as u32).min(nodes - 1);
    let others = if peers == 0 { nodes - 1 } else { peers };
    let partner = |a: u32, i: u32| (a + 1 + i * (nodes - 1) / others) % nodes;
    for (a, b) in (0..nodes).flat_map(|a| (0..others).map(move |i| (a, partner(a, i)))) {
        network.set_alarm(Instant::ZERO + Span::from_seconds(starts.uniform() * 1e-3), pairs.len() as u64);
        pairs.push((a, b));
    }
    let (mut done, mut last) = (0, Instant::ZERO);
    while done < pairs.len() {
        match network.advance().expect("every flow ends") {
            Notice::Alarm(pair) => {
                let (a, b) = pairs[pair as usize];
                network.start_flow(a, b, Bytes::from_base(bytes), Opening::Handshake);
            }
            Notice::FlowDone(_) => (done, last) = (done + 1, network.now()),
        }
    }
    let result = network.finish();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak_kb = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).map_or("nan", |l| l.trim_end_matches("kB").trim()).to_string();
    let energy: f64 = result.accounts.iter().map(|a| a.energy.joules()).sum();
    println!(
        "hosts={nodes} flows={done} hops={} makespan_s={:.6} drops={} retransmissions={} timeouts={} energy_j={energy:.6} latency_s_mean={:.9} peak_kb={peak_kb}",
        result.packet_hops,
        last.seconds(),
        result.classes.iter().map(|c| c.queue.lost()).sum::<u64>(),
        result.retransmissions,
        result.timeouts,
        result.latency.mean_s().unwrap_or(0.0),
    );
}
