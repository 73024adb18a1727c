//! Two long flows over one slow link, for comparison with ns-3. See `bench/crosscheck.py`.
//!
//! Usage: `dumbbell QUEUE VARIANT RATE_GBPS SECONDS`, with QUEUE `droptail`, `mark=K`, `red=MIN,MAX` or `codel=TARGET_US,INTERVAL_US`
//! and VARIANT `newreno`, `ecn`, `cubic` or `dctcp`; prints one line of `key=value`. The first second is not measured.

use joulepath_net::{
    Buffer, EeeSpec, LinkPair, Network, NetworkSpec, NicQueue, Notice, Opening, PhyChoice, PortsSpec, Protect, QueueSpec, TcpSpec,
    Threshold, TopologySpec, Variant, Window,
};
use joulepath_units::{BitRate, Bytes, Instant, Power, Span};

const SAMPLE: u64 = 0;
const WARM: u64 = 1;
const END: u64 = 2;
const SECOND_FLOW: u64 = 3;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (kind, numbers) = args[0].split_once('=').unwrap_or((&args[0], ""));
    let numbers: Vec<f64> = numbers.split(',').filter_map(|n| n.parse().ok()).collect();
    let us = |n: f64| Span::from_seconds(n * 1e-6);
    let queue = match kind {
        "droptail" => QueueSpec::DropTail,
        "mark" => QueueSpec::Mark { threshold: Threshold::Packets(numbers[0]) },
        "red" => QueueSpec::Red {
            min: Some(Threshold::Packets(numbers[0])),
            max: Some(Threshold::Packets(numbers[1])),
            target: None,
            mean_packet: Bytes::from_base(1500),
            max_probability: 0.1,
            gentle: false,
            weight: 1.0,
            protect: Protect::Ect,
        },
        "codel" => QueueSpec::CoDel { target: us(numbers[0]), interval: us(numbers[1]), protect: Protect::Ect },
        other => panic!("{other}: expected droptail, mark, red or codel"),
    };
    let (variant, ecn) = match args[1].as_str() {
        "newreno" => (Variant::NewReno, false),
        "ecn" => (Variant::NewReno, true),
        "cubic" => (Variant::Cubic, false),
        "dctcp" => (Variant::Dctcp, true),
        other => panic!("{other}: expected newreno, ecn, cubic or dctcp"),
    };
    let gigabits: u64 = args[2].parse().expect("a whole number of Gb/s");
    let seconds: f64 = args[3].parse().expect("seconds");
    // Access links are ten times as fast as the bottleneck, so that queues are where the disciplines are. In ns-3, too.
    let (slow, fast) = (BitRate::from_base(gigabits * 1_000_000_000), BitRate::from_base(10 * gigabits * 1_000_000_000));
    let link = |a: &str, b: &str, rate| LinkPair { a: a.into(), b: b.into(), rate, delay: Span::from_base(5_000_000) };
    let phy = Some(PhyChoice::Custom { wake: Span::ZERO, sleep: Span::ZERO, power: Power::from_base(1), source: None });
    let spec = NetworkSpec {
        topology: TopologySpec::Links {
            links: vec![
                link("a1", "left", fast),
                link("a2", "left", fast),
                link("left", "right", slow),
                link("right", "b1", fast),
                link("right", "b2", fast),
            ],
        },
        ports: PortsSpec {
            // ns-3's limit of 200, one in the device, one on the wire.
            buffer: Buffer::Packets(202),
            fabric_queue: Some(queue),
            nic_queue: NicQueue::Limit(Buffer::Packets(2000)),
            // The header of a point-to-point frame in ns-3.
            overhead: Bytes::from_base(2),
            ..PortsSpec::default()
        },
        eee: EeeSpec { access_phy: phy.clone(), fabric_phy: phy, ..EeeSpec::default() },
        tcp: TcpSpec {
            variant,
            ecn: Some(ecn),
            receive_window: Window::Bytes(Bytes::from_base(1 << 20)),
            ack_every: 1,
            min_rto: Span::from_base(10_000_000_000),
            ..TcpSpec::default()
        },
        observe: Default::default(),
    };
    let mut network = Network::new(&spec, 1).expect("a valid network");
    let port = network.port("left->right").expect("the slow link");
    let host = |name: &str| network.topology().host(name).expect("a host");
    let (a1, a2, b1, b2) = (host("a1"), host("a2"), host("b1"), host("b2"));
    let at = |s: f64| Instant::ZERO + Span::from_seconds(s);
    let endless = Bytes::from_base((seconds * slow.bps()) as u64);
    let mut flows = vec![network.start_flow(a1, b1, endless, Opening::Handshake)];
    network.set_alarm(at(0.01), SECOND_FLOW);
    network.set_alarm(at(1.0), WARM);
    network.set_alarm(at(seconds), END);
    let (mut samples, mut sum, mut most, mut before) = (0u64, 0u64, 0u32, 0u64);
    loop {
        match network.advance().expect("alarms are set") {
            Notice::Alarm(SECOND_FLOW) => flows.push(network.start_flow(a2, b2, endless, Opening::Handshake)),
            Notice::Alarm(END) => break,
            Notice::Alarm(alarm) => {
                if alarm == WARM {
                    before = flows.iter().map(|&f| network.received(f).base()).sum();
                }
                let length = network.queue_length(port);
                (samples, sum, most) = (samples + 1, sum + u64::from(length), most.max(length));
                let next = network.now() + Span::from_base(7_300_000);
                network.set_alarm(next, SAMPLE);
            }
            Notice::FlowDone(_) => {}
        }
    }
    let received = flows.iter().map(|&f| network.received(f).base()).sum::<u64>() - before;
    let result = network.finish();
    let counts = result.classes.iter().map(|c| c.queue);
    println!(
        "goodput_mbps={:.2} queue_mean={:.3} queue_max={most} drops={} marks={} timeouts={} hops={}",
        received as f64 * 8e-6 / (seconds - 1.0),
        sum as f64 / samples as f64,
        counts.clone().map(|c| c.lost()).sum::<u64>(),
        counts.map(|c| c.marks.total()).sum::<u64>(),
        result.timeouts,
        result.packet_hops,
    );
}
