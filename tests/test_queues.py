"""Queues, ECN, DCTCP and probes: what the thesis' settings mean, and what the rules of the RFCs demand of whole runs."""

import json
import math
import os
import shutil
import subprocess

import pytest

import joulepath
from joulepath.plan import PlanFileError, load_plan

GIGABIT, TEN = 10**9, 10**10
# Seed 001, Tables 5.2, 6.4 and 7.3: target delay, thresholds at 1 Gb/s and at 10 Gb/s, and whether a buffer of 2000
# packets reaches both (their "NO AQM" and asterisks).
AUTO_RED = [
    ("100 us", (12.5, 37.5), (125, 375), "both"),
    ("200 us", (25, 75), (250, 750), "both"),
    ("250 us", (31.25, 93.75), (312.5, 937.5), "both"),
    ("300 us", (37.5, 112.5), (375, 1125), "both"),
    ("400 us", (50, 150), (500, 1500), "both"),
    ("500 us", (62.5, 187.5), (625, 1875), "both"),
    ("1 ms", (125, 375), (1250, 3750), "min only"),
    ("2 ms", (250, 750), (2500, 7500), "none"),
    ("4 ms", (500, 1500), (5000, 15000), "none"),
]


def body(workload, **more):
    return {"topology": {"kind": "leaf-spine", "nodes": 8}, "workload": workload, **more}


def run(plan, folder):
    return joulepath.simulate(plan, folder).runs[0]


def edge(metrics):
    return next(c for c in metrics["classes"] if c["class"] == "edge")


INCAST = {"kind": "jobs", "jobs": [{"benchmark": "terasort", "input": "280 MB", "maps": 14, "reduces": 1}]}
DEEP = "2000 packets"
UNLIMITED = {"receive_window": "unlimited"}


@pytest.mark.parametrize(("target", "slow", "fast", "reached"), AUTO_RED)
def test_automatic_thresholds_of_every_row_of_the_thesis(target, slow, fast, reached):
    ports = {"buffer": DEEP, "queue": {"kind": "red", "target": target}}
    queues = load_plan(body({"kind": "idle", "duration": "1 ms"}, ports=ports)).runs[0].queues
    for queue in queues:
        assert queue["unit"] == "packets"
        assert (queue["min"], queue["max"]) == pytest.approx(slow if queue["rate_bps"] == GIGABIT else fast)
        if queue["rate_bps"] == TEN:
            warning = queue["warning"] or ""
            assert ("never reaches: these ports are DropTail" in warning) == (reached == "none")
            assert ("it is never reached" in warning) == (reached == "min only")
        else:
            assert queue["warning"] is None


def test_the_published_interval_of_codel_is_suspected():
    # Table 5.4 says 0.75 us where Table 6.5 and its source say 0.75 ms.
    queue = {"kind": "codel", "target": "300 us", "interval": "0.75 us"}
    warnings = load_plan(body(INCAST, ports={"buffer": DEEP, "queue": queue})).runs[0].warnings
    assert any("CoDel's interval, 750 ns, is shorter than its target, 300 us" in w for w in warnings)


BAD = [
    ({"queue": {"kind": "mark", "threshold": "0 packets"}}, {}, 'ports.queue: found "0 packets"; expected a positive number'),
    ({"queue": {"kind": "mark", "threshold": "200 packets"}}, {}, "ports.queue.threshold: found 200 packets; expected less than the buffer"),
    ({"queue": {"kind": "red", "min": "80 packets", "max": "20 packets"}}, {}, "ports.queue.min: found 80 packets; expected at most max"),
    ({"queue": {"kind": "red", "min": "300 packets", "max": "900 packets"}}, {}, "ports.queue.min: found 300 packets; expected less than"),
    ({"queue": {"kind": "red", "min": "10 packets", "max": "30 KB"}}, {}, "ports.queue.max: found 30 KB; expected the unit of min"),
    ({"queue": {"kind": "red", "target": "-1 ms"}}, {}, 'ports.queue: found "-1 ms"'),
    ({"queue": {"kind": "red", "target": "0 ms"}}, {}, "ports.queue.target: found 0 ps; expected above 0"),
    ({"queue": {"kind": "red"}}, {}, "ports.queue: found RED without thresholds; expected min and max, or target"),
    ({"queue": {"kind": "red", "target": "1 ms", "min": "1 packet"}}, {}, "ports.queue.target: found 1 ms beside min or max"),
    ({"queue": {"kind": "red", "min": "5 packets"}}, {}, "ports.queue.max: found nothing; expected it beside min"),
    ({"edge_queue": {"kind": "codel", "target": "0 s", "interval": "1 ms"}}, {}, "ports.edge_queue.target: found 0 ps"),
    ({"queue": {"kind": "codel", "target": "1 ms"}}, {}, "ports.queue.interval: found nothing; expected this key"),
    ({"queue": {"kind": "red", "target": "1 ms", "protect": "ece"}}, {}, 'ports.queue.protect: found "ece" while no packet is ECN-capable'),
    ({"queue": {"kind": "red", "target": "1 ms", "protect": "acks"}}, {}, 'found "acks"; expected one of ect, ece, ack+syn, all'),
    ({"queue": {"kind": "red", "target": "1 ms", "max_probability": 0}}, {}, "ports.queue.max_probability: found 0; expected a probability"),
    ({"queue": {"kind": "redd"}}, {}, 'did you mean "red"?'),
    ({}, {"tcp": {"variant": "dctcp", "ecn": False}}, "tcp.ecn: found false with tcp.variant"),
    ({}, {"probes": {"rate": "0 Hz"}}, "probes.rate: found 0 Hz; expected a positive rate"),
    ({}, {"probes": {"rate": "1 kHz", "request": "0 B"}}, "probes.request: found 0 B; expected 1 B to 1 GB"),
    ({}, {"observe": {"ports": ["rack0->spine0"]}}, "observe.ports: found ports without a period"),
    ({}, {"observe": {"every": "1 ms", "ports": ["rack9->spine0"]}}, 'observe.ports[0]: found "rack9->spine0"; expected a port of this'),
    ({}, {"observe": {"connection": 0}}, "observe.connection: found 0; expected a number from 1"),
]  # fmt: skip


@pytest.mark.parametrize(("ports", "more", "sentence"), BAD)
def test_impossible_settings_are_refused(ports, more, sentence):
    with pytest.raises(PlanFileError) as refusal:
        load_plan(body(INCAST, ports={"buffer": "200 packets", **ports}, **more))
    assert sentence in str(refusal.value), refusal.value


def test_step_marking_keeps_the_queue_of_dctcp_near_k_at_full_throughput_without_drops(tmp_path):
    plain = run(body(INCAST, ports={"buffer": DEEP}, tcp=UNLIMITED), tmp_path / "plain").metrics
    queue = {"kind": "mark", "threshold": "20 packets"}
    observe = {"every": "100 us", "ports": ["rack0->host1"]}
    for name, tcp in (("dctcp", {"variant": "dctcp"}), ("ecn", {"ecn": True})):
        plan = body(INCAST, ports={"buffer": DEEP, "queue": queue}, tcp={**UNLIMITED, **tcp}, observe=observe)
        marked = run(plan, tmp_path / name).metrics
        assert marked["drops"] == 0 and marked["packets"]["data"]["marks"] > 100
        assert edge(plain)["queue_packets_max"] == 2000 and edge(marked)["queue_packets_max"] < 200
        assert marked["latency_s_p99"] < plain["latency_s_p99"] / 10
        assert marked["runtime_s"] < plain["runtime_s"] * 1.02, "at full throughput"


LINKS = [{"a": n, "b": "s", "rate": "1 Gb/s" if n == "h0" else "10 Gb/s"} for n in ("h0", "h1", "h2")]
STEADY = {"topology": {"kind": "links", "links": LINKS}, "workload": {"kind": "shuffle", "bytes": "60 MB"}, "seed": 2}


def steady(tmp_path, threshold, tcp):
    """Samples of the queue of the slow link toward one host, which two flows share, while they are under way."""
    plan = {
        **STEADY,
        "ports": {"buffer": DEEP, "queue": {"kind": "mark", "threshold": f"{threshold} packets"}},
        "tcp": {**UNLIMITED, "ack_every": 1, **tcp},
        "observe": {"every": "20 us", "ports": ["s->h0"]},
    }
    record = run(plan, tmp_path / f"{threshold}{tcp}".replace("/", ""))
    samples = record.observed["series"][0]["packets"]
    return record.metrics, samples[len(samples) // 5 : len(samples) // 2]


@pytest.mark.parametrize("threshold", [20, 65])
def test_two_dctcp_flows_hold_the_queue_just_above_the_threshold(tmp_path, threshold):
    metrics, samples = steady(tmp_path, threshold, {"variant": "dctcp"})
    # Alizadeh et al. 2010, section 3.3: the queue's top is K + N, for N flows; it must not run empty either.
    assert metrics["drops"] == 0
    mean = sum(samples) / len(samples)
    assert 0.5 * threshold < mean <= threshold + 3, mean
    assert max(samples) < threshold + 30


def test_two_ecn_flows_swing_further_below_the_threshold_than_dctcp(tmp_path):
    _, ecn = steady(tmp_path, 40, {"ecn": True})
    _, dctcp = steady(tmp_path, 40, {"variant": "dctcp"})
    deviation = lambda s: math.sqrt(sum((x - sum(s) / len(s)) ** 2 for x in s) / len(s))  # noqa: E731
    assert sum(ecn) / len(ecn) < sum(dctcp) / len(dctcp) and deviation(ecn) > 1.5 * deviation(dctcp)


def test_only_first_transmissions_of_data_are_ecn_capable(tmp_path):
    # RFC 3168, 6.1.1, 6.1.4 and 6.1.5. RED drops what it cannot mark, so there are retransmissions and lost handshakes.
    job = {"benchmark": "terasort", "input": "280 MB", "maps": 14, "reduces": 7}
    kinds = set()
    for tcp in ({"ecn": True}, {"variant": "dctcp"}):
        for connection in (1, 5, 9):
            queue = {"kind": "red", "min": "5 packets", "max": "15 packets"}
            more = {"ports": {"buffer": "40 packets", "queue": queue}, "observe": {"connection": connection}}
            record = run(body({"kind": "jobs", "jobs": [job]}, tcp={**UNLIMITED, **tcp}, **more), tmp_path / f"{tcp}{connection}")
            events = record.observed["connection"]
            kinds |= {(e["kind"], e["retransmission"]) for e in events}
            assert {e["kind"] for e in events} == {"syn", "syn-ack", "data", "ack"}
            for e in events:
                assert e["ect"] == (e["kind"] == "data" and not e["retransmission"])
                assert not e["ce"] or e["ect"]
                assert e["event"] != "early" or not e["ect"], "what can be marked is not dropped early"
            assert all(e["ece"] and e["cwr"] for e in events if e["kind"] == "syn"), "RFC 3168, 6.1.1: asking for ECN"
            # Between two echoes that make the sender reduce, it says CWR.
            assert any(e["cwr"] for e in events if e["kind"] == "data") == any(
                e["ece"] for e in events if e["kind"] == "ack" and e["event"] == "received"
            )
    assert ("data", True) in kinds, "some connection had a retransmission"


@pytest.fixture(scope="module")
def observed_connection(tmp_path_factory):
    queue = {"kind": "red", "min": "5 packets", "max": "15 packets"}
    more = {"ports": {"buffer": "40 packets", "queue": queue}, "observe": {"connection": 5}, "tcp": {**UNLIMITED, "ecn": True}}
    record = run(body(INCAST, **more), tmp_path_factory.mktemp("record"))
    return record.folder / "connection.pcapng", [e for e in record.observed["connection"] if e["event"] in ("sent", "received")]


def test_the_capture_of_a_connection_is_one(cli, observed_connection):
    file, events = observed_connection
    assert cli.json("link", "--trace", file)["frames"] == len(events)


def test_tshark_reads_the_bits_of_every_packet(observed_connection):
    file, events = observed_connection
    tshark = shutil.which("tshark")
    if not tshark:
        missing = pytest.fail if os.environ.get("JOULEPATH_NOTHING_SKIPPED") else pytest.skip
        missing("tshark is missing: apt install tshark")
    command = [
        tshark,
        "-r",
        file,
        "-T",
        "fields",
        "-e",
        "ip.dsfield.ecn",
        "-e",
        "tcp.flags.syn",
        "-e",
        "tcp.len",
        "-e",
        "ip.checksum.status",
    ]
    out = subprocess.run([*command, "-o", "ip.check_checksum:TRUE"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in out.splitlines()]
    assert len(rows) == len(events)
    for (ecn, syn, length, checksum), event in zip(rows, events, strict=True):
        assert int(ecn) == (3 if event["ce"] else 2 if event["ect"] else 0)
        assert (syn in ("1", "True")) == event["kind"].startswith("syn")
        assert (int(length) > 0) == (event["kind"] == "data") and checksum == "1"


def test_a_queue_that_drops_what_it_cannot_mark_loses_acknowledgements(tmp_path):
    job = {"benchmark": "terasort", "input": "1280 MB", "maps": 40, "reduces": 39}
    metrics = {}
    for protect in ("ect", "ece", "ack+syn", "all"):
        queue = {"kind": "red", "target": "100 us", "protect": protect}
        plan = body({"kind": "jobs", "jobs": [job]}, ports={"buffer": DEEP, "queue": queue}, tcp={**UNLIMITED, "ecn": True})
        plan["topology"]["nodes"] = 20
        metrics[protect] = run(plan, tmp_path / protect).metrics
    packets = {p: m["packets"] for p, m in metrics.items()}
    assert packets["ect"]["ack"]["early_drops"] > 100 and packets["ect"]["data"]["early_drops"] == 0
    assert packets["ece"]["ack"]["early_drops"] > 0, "those that echo nothing"
    assert packets["ece"]["syn"]["early_drops"] == 0
    assert packets["ack+syn"]["ack"]["early_drops"] == packets["ack+syn"]["syn"]["early_drops"] == 0
    assert metrics["all"]["drops"] == 0
    assert metrics["ack+syn"]["runtime_s"] < metrics["ect"]["runtime_s"]
    for kinds in packets.values():
        for counts in kinds.values():
            assert counts["early_drops"] + counts["overflows"] + counts["marks"] <= counts["offered"]


@pytest.mark.parametrize("queue", [
    {"kind": "red", "target": "200 us"},
    {"kind": "red", "min": "20 KB", "max": "60 KB", "gentle": True, "weight": 0.002},
    {"kind": "codel", "target": "200 us", "interval": "1 ms"},
    {"kind": "mark", "threshold": "30 KB"},
])  # fmt: skip
@pytest.mark.parametrize("policy", ["legacy", "eee", "120us100", "both"])
@pytest.mark.parametrize("tcp", [{}, {"ecn": True, "variant": "cubic"}, {"variant": "dctcp"}])
def test_every_byte_arrives_under_every_discipline(tmp_path, queue, policy, tcp):
    for buffer in ("30 packets", "100 KB"):
        plan = body(
            {"kind": "shuffle", "bytes": "150 KB"},
            ports={"buffer": buffer, "queue": queue},
            tcp=tcp,
            eee={"policy": "eee", "lpi": "both"} if policy == "both" else {"policy": policy},
        )
        if queue["kind"] == "mark" and buffer == "30 packets":
            plan["ports"]["queue"] = {"kind": "mark", "threshold": "29 packets"}
        metrics = run(plan, tmp_path / buffer).metrics
        assert metrics["goodput_bytes"] == 8 * 7 * 150_000
        for c in metrics["classes"]:
            if c["class"] != "nic" and buffer == "30 packets":
                assert c["queue_packets_max"] <= 30
        if policy == "legacy":
            offered = sum(metrics["packets"][k]["offered"] for k in metrics["packets"])
            assert offered == metrics["packet_hops"] + metrics["drops"] + pending(metrics)


def pending(metrics):
    """Packets that the run left in queues and on links: acknowledgements of the last bytes."""
    return sum(c["packets"] for c in metrics["classes"]) - metrics["packet_hops"]


def test_codel_keeps_the_delay_near_its_target(tmp_path):
    plain = run(body(INCAST, ports={"buffer": DEEP}, tcp=UNLIMITED), tmp_path / "plain").metrics
    for tcp in ({}, {"ecn": True}):
        queue = {"kind": "codel", "target": "500 us", "interval": "2 ms"}
        metrics = run(body(INCAST, ports={"buffer": DEEP, "queue": queue}, tcp={**UNLIMITED, **tcp}), tmp_path / f"{tcp}").metrics
        counts = metrics["packets"]["data"]
        assert (counts["marks"] if tcp else counts["early_drops"]) > 0
        assert metrics["latency_s_mean"] < plain["latency_s_mean"] / 4


def test_probes_measure_an_idle_network_exactly_and_a_busy_one_in_its_queues(tmp_path):
    probes = {"rate": "2 kHz", "request": "100 B", "response": "1000 B"}
    one_rack = {"kind": "leaf-spine", "racks": 1, "nodes": 8}
    idle = run({"topology": one_rack, "workload": {"kind": "idle", "duration": "2 s"}, "probes": probes}, tmp_path / "idle").metrics
    # Two links each way: 178 B and 1078 B on the wire, twice each, and 5 us of delay on each link. The acknowledgement of the
    # request (84 B) leaves just before the response.
    alone = (2 * (178 + 1078) + 84) * 8 / 1e9 + 4 * 5e-6
    assert idle["probes"]["sent"] == pytest.approx(4000, rel=0.1) and idle["probes"]["unanswered"] <= 1
    assert idle["probes"]["latency_s_p50"] == pytest.approx(alone, rel=0.01)
    new = {"topology": one_rack, "workload": {"kind": "idle", "duration": "2 s"}, "probes": {**probes, "connections": "new"}}
    handshake = run(new, tmp_path / "new").metrics["probes"]["latency_s_p50"]
    assert handshake == pytest.approx(alone + 4 * (84 * 8 / 1e9 + 5e-6), rel=0.01)
    busy = {}
    for name, ports, tcp in (("bloat", {}, {}), ("mark", {"queue": {"kind": "mark", "threshold": "20 packets"}}, {"ecn": True})):
        plan = body(INCAST, ports={"buffer": DEEP, **ports}, tcp={**UNLIMITED, **tcp}, probes=probes)
        busy[name] = run(plan, tmp_path / name).metrics["probes"]
    assert busy["bloat"]["latency_s_p99"] > 10 * busy["mark"]["latency_s_p99"] > 10 * alone


def test_a_histogram_holds_every_sample_and_long_series_are_thinned(tmp_path):
    idle = {"kind": "idle", "duration": "400 ms"}
    observed = run(body(idle, observe={"every": "1 us", "ports": ["rack0->host1"]}), tmp_path / "long").observed
    assert observed["sample_s"] == pytest.approx(2e-6) and len(observed["series"][0]["packets"]) < 1 << 18
    for histogram in observed["histograms"]:
        ports = {"nic": 8, "edge": 8, "uplink": 2, "core": 2}[histogram["class"]]
        assert sum(n for _, n in histogram["packets"]) == pytest.approx(ports * 400_000, rel=1e-5)


def test_warnings_and_the_table_of_kinds_reach_the_user(cli, tmp_path):
    (tmp_path / "p.toml").write_text(
        'title = "warned"\n[topology]\nkind = "leaf-spine"\nnodes = 20\n[ports]\nbuffer = "200 packets"\nqueue = { kind = "red", target = "200 us" }\n'
        '[tcp]\necn = true\nreceive_window = "unlimited"\n[workload]\nkind = "jobs"\njobs = [{ benchmark = "terasort", input = "640 MB", maps = 40, reduces = 19 }]\n'
    )
    out = cli("simulate", "p.toml")
    assert (
        "warning: ports.queue: at uplink and core ports (10 Gb/s) RED starts at 250 packets, which a buffer of 200 packets never reaches"
        in out.stderr
    )
    assert "ACK early" in out.stdout and "data marked" in out.stdout
    assert "red 25-75 packets" in cli("simulate", "p.toml", "--check").stdout
    one = json.loads(cli("simulate", "p.toml", "--json").stdout)["runs"][0]
    assert len(one["warnings"]) == 1 and set(one["packets"]["ack"]) == {"offered", "early_drops", "overflows", "marks"}
