"""`joulepath recommend`: finds what brute force finds, keeps its limits, says what it cannot, and prints commands that fit."""

import json
import signal
import subprocess
import sys
import time

import pytest

import joulepath
from joulepath.plan import PlanFileError
from joulepath.recommend import InfeasibleError

PLAN = {
    "title": "small",
    "topology": {"kind": "leaf-spine", "nodes": 12},
    "ports": {"buffer": "2000 packets"},
    "tcp": {"receive_window": "unlimited"},
    "eee": {"access": "eee", "fabric": "legacy"},
    "workload": {"kind": "jobs", "jobs": [{"benchmark": "terasort", "input": "320 MB", "maps": 20, "reduces": 11}]},
    "probes": {"rate": "2 kHz"},
    "recommend": {
        "objective": "energy",
        "limits": ["runtime <= +15 %", "probe p99 <= 4 ms"],
        "candidates": 16,
        "finalists": 2,
        "free": {"eee.fabric": ["legacy", "eee", "120us100"], "ports.queue": [{"kind": "droptail"}, {"kind": "red", "target": {"from": "100 us", "to": "1000 us"}}]},
    },
}  # fmt: skip


def changed(**recommend):
    return {**PLAN, "recommend": {**PLAN["recommend"], **recommend}}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return joulepath.recommend(PLAN, tmp_path_factory.mktemp("found"))


def test_it_finds_what_trying_everything_finds(found, tmp_path):
    body = {k: v for k, v in PLAN.items() if k != "recommend"} | {"repeat": 3}
    queues = [{"kind": "droptail"}, *({"kind": "red", "target": t} for t in ("100 us", "200 us", "400 us", "1000 us"))]
    grid = {"eee.fabric": ["legacy", "eee", "120us100"], "ports.queue": queues}
    tried = {}
    for run in joulepath.simulate({**body, "grid": grid}, tmp_path / "all").runs:
        tried.setdefault((run.run["settings"]["eee.fabric"], run.run["settings"]["ports.queue"]), []).append(run.metrics)
    mean = lambda runs, *path: sum(m[path[0]][path[1]] if path[1:] else m[path[0]] for m in runs) / len(runs)  # noqa: E731
    baseline = mean(tried["legacy", "kind droptail"], "runtime_s")
    kept = [r for r in tried.values() if mean(r, "runtime_s") <= 1.15 * baseline and mean(r, "probes", "latency_s_p99") <= 4e-3]
    best = min(mean(r, "energy_j", "total") for r in kept)
    assert found.choice.metrics["energy_j.total"] <= best * 1.02
    assert found.choice.candidate.settings["eee.fabric"] != "legacy"
    assert found.choice.holds and found.choice.metrics["probes.latency_s_p99"] <= 4e-3
    data = found.as_dict()
    low, high = data["choice"]["objective_ratio_interval95"]
    assert low <= data["choice"]["objective_ratio"] <= high < 0.95
    assert found.choice.name in data["pareto"]
    assert {s["key"] for s in data["sensitivity"]} == {"eee.fabric", "ports.queue"}
    legacy = next(s for s in data["sensitivity"] if s["value"] == "legacy")
    assert legacy["objective_change_ratio"] > 0.1
    assert (found.record.folder / "settings.txt").read_text().strip()
    assert json.loads((found.record.folder / "recommendation.json").read_text()) == json.loads(json.dumps(data))


def test_any_number_of_workers_and_a_second_time_give_the_same(found, tmp_path):
    again = joulepath.recommend(PLAN, tmp_path / "one", jobs=1)
    same = lambda r: {k: v for k, v in r.as_dict().items() if k != "record"}  # noqa: E731
    assert same(again) == same(found)
    started = time.monotonic()
    assert same(joulepath.recommend(PLAN, tmp_path / "one")) == same(found)
    assert not any(time.time() - p.stat().st_mtime < time.monotonic() - started for p in (tmp_path / "one").rglob("metrics.json"))


def test_known_settings_run_beside_the_finalists(tmp_path):
    plan = changed(known={"mine": {"eee.fabric": "12us10"}}, candidates=4, limits=[])
    found = joulepath.recommend(plan, tmp_path / "r")
    names = [f.name for f in found.finalists]
    assert "mine" in names and names[0] == "baseline"
    best = min(sum(f.objective) for f in found.finalists)
    assert sum(found.choice.objective) <= best * 1.01


def test_a_limit_of_nothing(tmp_path):
    plan = changed(limits=["drops <= +0 %"], candidates=4) | {"tcp": {"receive_window": "64 KB"}}
    found = joulepath.recommend(plan, tmp_path / "r")
    assert found.choice.metrics["drops"] == 0
    json.loads((tmp_path / "r" / "recommendation.json").read_text(), parse_constant=pytest.fail)


def test_settings_that_do_not_go_together_are_passed_over(tmp_path):
    red = {"kind": "red", "target": "200 us", "protect": ["ece", "ack+syn"]}
    free = {"tcp.ecn": [False, True], "ports.queue": [{"kind": "droptail"}, red]}
    found = joulepath.recommend(changed(free=free, objective="latency", candidates=12), tmp_path / "r")
    assert found.refused > 0, "protect without ECN"
    assert any("candidates are no plan" in n and "ports.queue.protect" in n for n in found.notes)
    assert found.choice.candidate.settings["tcp.ecn"] is True
    assert all(s["key"] != "tcp.ecn" for s in found.sensitivity), "without ECN the chosen queue is no plan"


@pytest.mark.parametrize(
    ("text", "share", "expected"),
    [("6.4 GB", 0.25, "1600000000 B"), ("640 KB", 1 / 3, "213333 B"), ("1 B", 0.25, "1 B"), ("1 s", 0.25, "250000000000 ps")],
)
def test_shares_of_work_are_whole(text, share, expected):
    from joulepath.recommend.search import _scaled

    assert _scaled(text, share) == expected


def test_an_infeasible_limit_is_named_with_the_nearest_setting(cli, tmp_path):
    with pytest.raises(InfeasibleError) as refusal:
        joulepath.recommend(changed(limits=["probe p99 <= 10 us"], candidates=4, finalists=1), tmp_path / "r")
    sentence = str(refusal.value)
    assert "found no setting that keeps every limit; the nearest (" in sentence
    assert "breaks 'probe p99 <= 10 us': probes.latency_s_p99 = " in sentence and "% beyond it" in sentence


BAD = [
    ({"free": {}}, "recommend.free: found nothing; expected at least one setting"),
    ({"free": {"eee.fabric": "eee"}}, "recommend.free.eee.fabric: found 'eee'; expected a list of choices, or a range"),
    ({"free": {"eee.fabric": []}}, "recommend.free.eee.fabric: found an empty list"),
    ({"free": {"eee.fabrik": ["eee", "legacy"]}}, "eee.fabrik: found an unknown key"),
    ({"free": {"ports.queue": [{"kind": "red", "target": {"from": "2 ms", "to": "1 ms"}}]}}, "less than the other end"),
    ({"free": {"ports.queue": [{"kind": "red", "target": {"from": "20 us", "to": "1 ms"}}]}}, "the unit of the other end, us"),
    ({"free": {"ports.queue": [{"kind": "red", "target": {"from": "20 us"}}]}}, "a range with both ends"),
    (
        {"free": {"hadoop.parallel_copies": {"from": "..", "to": "5"}}},
        "recommend.free.hadoop.parallel_copies.from: found '..'; expected a number",
    ),
    ({"objective": "joules"}, "recommend.objective: found 'joules'; expected one of energy, runtime"),
    ({"objective": {"energy": -1}}, "recommend.objective.energy: found -1; expected a positive weight"),
    ({"objective": "drops"}, "recommend.objective: found drops, which is 0 in the baseline"),
    ({"limits": ["runtime < 2 %"]}, "recommend.limits[0]: found 'runtime < 2 %'; expected a text like"),
    ({"limits": ["runtime <= 2 J"]}, "recommend.limits[0]: found 'runtime <= 2 J'; expected % of the baseline, or a number in s"),
    ({"limits": ["run time <= 2 %"]}, "did you mean 'runtime'?"),
    ({"limit": []}, "recommend.limit: found an unknown key; expected one of objective, limits"),
    ({"candidates": 1}, "recommend.candidates: found 1; expected a whole number from 4"),
    ({"baseline": {"ports.buffer": "0 packets"}}, '"0 packets"'),
    ({"known": {"finalist 1": {}}}, "recommend.known.finalist 1: found {}; expected a table"),
]


@pytest.mark.parametrize(("recommend", "sentence"), BAD)
def test_bad_plans_get_one_sentence(recommend, sentence, tmp_path):
    with pytest.raises(PlanFileError) as refusal:
        joulepath.recommend(changed(**recommend), tmp_path / "r")
    assert sentence in str(refusal.value), refusal.value


def test_plans_that_are_not_for_recommend(tmp_path):
    for plan, sentence in (
        ({k: v for k, v in PLAN.items() if k != "recommend"}, "recommend: found nothing; expected a table with objective"),
        ({**PLAN, "grid": {"eee.fabric": ["eee", "legacy"]}}, "grid: found 2 runs; expected one set of values"),
        ({k: v for k, v in PLAN.items() if k != "probes"}, "probes: found nothing; expected a table of probes"),
    ):
        with pytest.raises(PlanFileError) as refusal:
            joulepath.recommend(plan, tmp_path / "r")
        assert sentence in str(refusal.value), refusal.value


def test_simulate_ignores_the_search(tmp_path):
    assert len(joulepath.simulate(PLAN, tmp_path / "r").runs) == 1


TOML = """
title = "small"
[topology]
kind = "leaf-spine"
nodes = 16
[ports]
buffer = "2000 packets"
[tcp]
receive_window = "unlimited"
[workload]
kind = "jobs"
jobs = [{ benchmark = "terasort", input = "1280 MB", maps = 40, reduces = 15 }]
[recommend]
objective = "latency"
limits = ["runtime <= +5 %"]
candidates = 12
[recommend.baseline]
"tcp.ecn" = false
[recommend.free]
"ports.queue" = [{ kind = "mark", threshold = { from = "10 packets", to = "100 packets" } }]
"tcp" = [{ ecn = true }, { variant = "dctcp" }]
"hadoop.parallel_copies" = [5, 10]
"""


def test_the_command_prints_the_choice_and_ready_commands(cli, tmp_path):
    (tmp_path / "p.toml").write_text(TOML)
    out = cli("recommend", "p.toml").stdout
    for text in (
        "Choice: finalist", "keeps runtime <= +5 %", "How sensitive the choice is", "net.ipv4.tcp_ecn=1", "ce_threshold", "ecnconfig -p",
        "set class-of-service", "random-detect ecn minimum-threshold", "weight 0 ecn", "# the way back", "# check", "Simulated times, modelled energy",
        "report: records/p.recommend/report.html",
    ):  # fmt: skip
        assert text in out, text
    data = cli.json("recommend", "p.toml")
    assert data["evidence"] == "simulated" and data["choice"]["objective_ratio"] < 0.5
    assert all(s["apply"] and s["undo"] and s["check"] for s in data["apply"])
    page = (tmp_path / "records/p.recommend/report.html").read_text()
    assert "recommendation" in page


def test_it_stops_and_goes_on(cli, tmp_path):
    (tmp_path / "p.toml").write_text(
        TOML.replace("1280 MB", "12.8 GB").replace("maps = 40", "maps = 400").replace("candidates = 12", "candidates = 4")
    )
    command = [sys.executable, "-m", "joulepath", "recommend", "p.toml", "--jobs", "1"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    search = tmp_path / "records/p.recommend/search/runs"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (search.is_dir() and any(not p.name.startswith(".") for p in search.iterdir())):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3 and "the same command goes on from there" in err, err
    kept = {p for p in search.iterdir() if not p.name.startswith(".")}
    assert kept and kept <= set(search.iterdir())


# What chosen settings become on real equipment. The numbers are worked out by hand.
def snippets(tmp_path, before, after):
    from joulepath.plan import load_plan
    from joulepath.recommend.apply import applied

    base = {"workload": {"kind": "idle", "duration": "1 s"}, "ports": {"buffer": "1000 packets"}}
    one = lambda more: load_plan({**base, **more}).runs[0]  # noqa: E731
    return applied(one(before), one(after))


def test_commands_carry_the_numbers_in_the_units_of_each_system(tmp_path):
    red = {"buffer": "1000 packets", "queue": {"kind": "red", "min": "20 packets", "max": "60 packets", "protect": "all"}}
    out = snippets(tmp_path, {}, {"ports": red, "tcp": {"variant": "dctcp"}})
    text = out.as_text()
    assert "modprobe tcp_dctcp" in text and "tcp_congestion_control=dctcp net.ipv4.tcp_ecn=1" in text
    # 20 and 60 full frames of 1538 B; a buffer of 1000.
    assert "red limit 1538000 min 30760 max 92280 avpkt 1538 burst 33 probability 0.1 bandwidth 1000mbit ecn nodrop" in text
    assert "ecnconfig -p AZURE_LOSSLESS -gmin 30760 -gmax 92280 -gdrop 10" in text
    assert "fill-level [ 2 6 ] drop-probability [ 0 10 ]" in text
    assert "random-detect ecn minimum-threshold 31 kbytes maximum-threshold 92 kbytes max-mark-probability 10" in text
    assert any("nodrop" in w for w in out.words)
    jumbo = {"mss": "8960 B"}
    big = snippets(
        tmp_path, {"tcp": jumbo}, {"tcp": jumbo, "ports": {"buffer": "1000 packets", "queue": {**red["queue"], "protect": "ect"}}}
    ).as_text()
    assert "min 180760 max 542280 avpkt 9038" in big, "8960 B of payload are 9038 on the wire"
    mark = {"buffer": "1000 packets", "edge_queue": {"kind": "mark", "threshold": "25 KB"}}
    # 25 KB at 1 Gb/s are 200 us.
    assert "ecn ce_threshold 200us" in snippets(tmp_path, {"tcp": {"ecn": True}}, {"ports": mark, "tcp": {"ecn": True}}).as_text()


def test_what_no_knob_sets_is_said(tmp_path):
    out = snippets(tmp_path, {"eee": {"policy": "eee"}}, {"eee": {"policy": "120us100"}})
    assert not out.snippets and all("no standard knob sets packet coalescing" in w for w in out.words) and out.words
    stall = snippets(tmp_path, {}, {"eee": {"policy": "eee:50us"}}).as_text()
    assert "ethtool --set-eee NIC eee on tx-lpi on tx-timer 50" in stall
    off = snippets(tmp_path, {"eee": {"policy": "eee"}}, {"eee": {"policy": "legacy"}}).as_text()
    assert "eee off" in off and "no power efficient-ethernet auto" in off
    queue = {"kind": "codel", "target": "500 us", "interval": "10 ms", "protect": "ack+syn"}
    out = snippets(tmp_path, {}, {"ports": {"buffer": "1000 packets", "queue": queue}, "tcp": {"ecn": True}})
    assert "codel limit 1000 target 500us interval 10ms ecn" in out.as_text()
    assert any("no knob on SONiC" in w for w in out.words) and any("spares acknowledgements" in w for w in out.words)
    slots = snippets(tmp_path, {}, {"hadoop": {"map_slots": 4, "scheduler": "fair", "reduce_slots": 1}}).words
    assert [w.split()[0] for w in slots] == ["hadoop.scheduler", "hadoop.map_slots", "hadoop.reduce_slots"], "in the order of the plan"
    copies = snippets(tmp_path, {}, {"hadoop": {"parallel_copies": 20}}).as_text()
    assert "<name>mapreduce.reduce.shuffle.parallelcopies</name><value>20</value>" in copies
    nodes = snippets(tmp_path, {}, {"topology": {"kind": "leaf-spine", "nodes": 40}})
    assert any("topology.nodes" in w for w in nodes.words)
