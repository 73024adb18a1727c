"""`joulepath simulate` and its record: right, repeatable, resumable, and never half-written."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import joulepath

SMALL = """
title = "small"
[topology]
kind = "leaf-spine"
nodes = 8
[workload]
kind = "jobs"
jobs = [{ benchmark = "terasort", input = "64 MB", maps = 8, reduces = 4 }]
[grid]
eee.policy = ["legacy", "eee", "12us10", "ideal"]
"""

KEYS = {
    "label", "runtime_s", "job_runtime_s_mean", "throughput_bps_node_mean", "latency_s_mean", "latency_s_p99", "energy_j", "drops",
    "retransmissions", "timeouts", "packet_hops", "cpu_s",
}  # fmt: skip


def plan(workload, **more):
    return {"topology": {"kind": "leaf-spine", "nodes": 8}, "workload": workload, **more}


def metrics(body, tmp_path) -> dict:
    return joulepath.simulate(body, tmp_path / "record").runs[0].metrics


@pytest.mark.parametrize(("policy", "share"), [("legacy", 1.0), ("eee", 0.1), ("ideal", 0.1), ("1ms1000", 0.1)])
def test_an_idle_cluster_to_the_microjoule(tmp_path, policy, share):
    seconds, nodes, racks = 7.25, 80, 2
    body = {"workload": {"kind": "idle", "duration": f"{seconds} s"}, "eee": {"policy": policy}}
    found = metrics(body, tmp_path)["energy_j"]
    watts = {"nic": nodes * 0.5, "edge": nodes * 0.5, "uplink": racks * 2.5, "core": racks * 2.5}
    for name, power in watts.items():
        assert found[name] == pytest.approx(power * seconds * share, abs=1e-6)
    assert found["total"] == pytest.approx(sum(watts.values()) * seconds * share, abs=1e-6)


def test_every_byte_of_a_shuffle_arrives_and_the_ledger_tiles(tmp_path):
    for policy in ("legacy", "eee:50us", "120us100", "1ms1000", "ideal"):
        for ports in ({}, {"buffer": "20 packets"}, {"nic_queue": "30 packets", "buffer": "20 KB"}):
            for tcp in ({}, {"variant": "cubic", "receive_window": "unlimited"}, {"ecn": True}):
                body = plan({"kind": "shuffle", "bytes": "200 KB"}, ports=ports, tcp=tcp, eee={"policy": policy}, seed=3)
                if tcp.get("ecn"):
                    body["ports"] = {**ports, "queue": {"kind": "mark", "threshold": "10 packets"}}
                record = joulepath.simulate(body, tmp_path / f"{policy}{ports}{tcp}".replace("/", ""))
                run = record.runs[0]
                assert run.metrics["goodput_bytes"] == 8 * 7 * 200_000
                accounts: dict[str, float] = {}
                for row in run.ledger:
                    accounts[row["account"]] = accounts.get(row["account"], 0) + row["time_s"]
                assert all(t == pytest.approx(run.metrics["runtime_s"], rel=1e-9) for t in accounts.values())
                exact = sum(int(row["energy_aj"]) for row in run.ledger)
                assert exact / 1e18 == pytest.approx(run.metrics["energy_j"]["total"], rel=1e-12)
                if "nic_queue" not in ports:
                    nic = next(c for c in run.metrics["classes"] if c["class"] == "nic")
                    assert nic["queue"]["overflows"]["data"] == 0, "a network card with pushback loses nothing"


def test_no_queue_exceeds_its_limit_and_droptail_fills_it(tmp_path):
    body = plan({"kind": "shuffle", "bytes": "2 MB"}, ports={"buffer": "12 packets"}, tcp={"receive_window": "1 MB"})
    edge = next(c for c in metrics(body, tmp_path)["classes"] if c["class"] == "edge")
    assert edge["queue_packets_max"] == 12 and edge["queue"]["overflows"]["data"] > 0


def test_one_flow_fills_a_link(tmp_path):
    links = [{"a": n, "b": "s", "rate": "1 Gb/s"} for n in ("x", "y", "z")]
    body = {
        "topology": {"kind": "links", "links": links},
        "workload": {"kind": "shuffle", "bytes": "20 MB"},
        "tcp": {"receive_window": "1 MB"},
    }
    found = metrics(body, tmp_path)
    # Each host sends 2 x 20 MB in 1460 B of every 1538 B on the wire; acknowledgements share the link.
    best = 40e6 * 8 * 1538 / 1460 / 1e9
    assert best < found["runtime_s"] < 1.08 * best


def tree(folder: Path) -> dict[str, bytes]:
    names = ("run.json", "metrics.json", "ledger.json", "plan.json", "metrics.parquet", "ledger.parquet")
    files = [f for f in sorted(folder.rglob("*")) if f.name in names]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


def test_same_plan_and_seed_give_the_same_bytes_with_any_number_of_workers(cli, tmp_path):
    (tmp_path / "p.toml").write_text(SMALL)
    cli("simulate", "p.toml", "--jobs", 1, "--out", "one")
    cli("simulate", "p.toml", "--jobs", 2, "--out", "two")
    assert tree(tmp_path / "one") == tree(tmp_path / "two") != {}
    cli("simulate", "p.toml", "--set", "seed=2", "--out", "three")
    assert "joulepath simulate p.toml --set seed=2" in (tmp_path / "three" / "README.txt").read_text()
    assert tree(tmp_path / "one") != tree(tmp_path / "three")


def test_json_and_tables_have_the_promised_names(cli, tmp_path):
    (tmp_path / "p.toml").write_text(SMALL)
    out = cli.json("simulate", "p.toml")
    assert [r["label"] for r in out["runs"]] == ["legacy", "eee", "12us10", "ideal"]
    for run in out["runs"]:
        assert run.keys() >= KEYS and run["energy_j"].keys() >= {"total", "nic", "edge", "uplink", "core"}
        assert run["energy_j"]["total"] == pytest.approx(sum(v for k, v in run["energy_j"].items() if k != "total"))
    record = joulepath.Record(tmp_path / "records" / "p")
    table = record.table()
    assert table.column("energy_j.total").to_pylist() == [r["energy_j"]["total"] for r in out["runs"]]
    assert table.to_pandas().shape[0] == 4
    assert pq.read_table(record.folder / "metrics.parquet").equals(table)
    assert "<table>" in record._repr_html_() and "modelled" in record._repr_html_()
    assert "joulepath simulate p.toml" in (record.folder / "README.txt").read_text()


def test_recorded_runs_are_not_run_again(cli, tmp_path):
    (tmp_path / "p.toml").write_text(SMALL)
    cli("simulate", "p.toml")
    stamps = {f: f.stat().st_mtime_ns for f in tmp_path.rglob("metrics.json")}
    gone = next(iter(sorted(stamps)))
    gone.unlink()  # a damaged run is made again
    again = cli("simulate", "p.toml")
    assert again.stderr.count("[") == 1, "only the missing run is run"
    assert {f for f in tmp_path.rglob("metrics.json") if f.stat().st_mtime_ns != stamps.get(f)} == {gone}


def test_ctrl_c_keeps_what_has_ended(tmp_path, root):
    text = (root / "experiments/cluster/terasort_80.toml").read_text()
    (tmp_path / "p.toml").write_text(text.replace('"legacy", "eee"', '"legacy"'))
    process = subprocess.Popen(
        [sys.executable, "-m", "joulepath", "simulate", "p.toml", "--jobs", "1"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("records/p/runs/*/metrics.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert b"runs are recorded in records/p; the same command goes on from there" in err and b"Traceback" not in err
    record = joulepath.Record(tmp_path / "records" / "p")
    assert 1 <= len(record.runs) < 5 and record.missing
    assert not list(tmp_path.rglob(".partial*"))


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    (tmp_path / "p.toml").write_text(SMALL)

    def full() -> None:
        # Files cannot grow beyond 20 kB: writing fails in the middle of a record, as on a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    run = subprocess.run(
        [sys.executable, "-m", "joulepath", "simulate", "p.toml"], cwd=tmp_path, preexec_fn=full, capture_output=True, text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert run.returncode == 1 and run.stderr.strip().count("\n") == 0, run.stderr
    assert "File too large" in run.stderr and "Traceback" not in run.stderr
    assert not list(tmp_path.rglob("*artial*")) and not list(tmp_path.rglob("metrics.json"))


def test_a_real_log_replays_its_bytes(tmp_path, data):
    body = plan({"kind": "log", "file": str(data / "sort_120MB_6maps_4reduces_avro_binary.jhist")})
    found = metrics(body, tmp_path / "a")
    remote_reads = found["goodput_bytes"] + found["local_bytes"]
    assert remote_reads >= 129_600_144, "everything that was shuffled is copied, on the own host or over the network"
    swim = plan({"kind": "log", "file": str(data / "FB-2009_samples_24_times_1hr_0.tsv"), "first_jobs": 5, "scale": 0.5})
    assert len(metrics(swim, tmp_path / "b")["jobs"]) == 5


def test_a_failed_job_cannot_be_replayed(cli, tmp_path, data):
    text = f'[workload]\nkind = "log"\nfile = "{data}/job_2.4.0-FAILED.jhist"\n'
    (tmp_path / "p.toml").write_text(text)
    assert "no job that can be replayed" in cli.refusal("simulate", "p.toml")


def test_schedulers_find_local_blocks(tmp_path):
    jobs = [{"benchmark": "search", "input": "640 MB", "maps": 10, "reduces": 1}]
    local = {}
    for scheduler in ("fifo", "fair", "quincy"):
        body = {"workload": {"kind": "jobs", "jobs": jobs}, "hadoop": {"scheduler": scheduler}}
        local[scheduler] = metrics(body, tmp_path / scheduler)["blocks_read"]["own_host"]
    assert local["quincy"] == 10 >= max(local["fifo"], local["fair"])


def test_both_directions_sleep_together(tmp_path):
    body = plan({"kind": "shuffle", "bytes": "1 MB"}, eee={"policy": "eee"})
    apart = metrics(body, tmp_path / "a")["energy_j"]["nic"]
    together = metrics({**body, "eee": {"policy": "eee", "lpi": "both"}}, tmp_path / "b")["energy_j"]
    assert together["nic"] == pytest.approx(together["edge"], rel=1e-9), "both ends are in the same state"
    assert together["nic"] >= apart * 0.95


def test_other_rates_and_topologies(tmp_path):
    phy = {"wake": "4.5 us", "sleep": "3 us", "power": "5 W"}
    body = {
        "topology": {"kind": "fat-tree", "k": 4, "edge_rate": "10 Gb/s", "fabric_rate": "40 Gb/s"},
        "workload": {"kind": "shuffle", "bytes": "100 KB"},
        "eee": {"policy": "eee", "fabric_phy": phy},
    }
    found = metrics(body, tmp_path)
    assert found["goodput_bytes"] == 16 * 15 * 100_000
    assert found["evidence"] == "mixed", "a physical layer without a source makes its joules assumed"


def test_progress_is_json_free_on_standard_output(cli, tmp_path):
    (tmp_path / "p.toml").write_text(SMALL)
    run = cli("simulate", "p.toml", "--json")
    assert json.loads(run.stdout)["runs"]
