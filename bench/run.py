"""Speed of the packet simulator against ns-2 and ns-3 on the same shuffle, in the same minutes.

S1: 40 hosts in 4 racks, 2 spines, 1 and 10 Gb/s, 1 MB from each host to each, 200 packets in each port, 1 MB of window.
The same with Energy Efficient Ethernet, with coalescing, and with ECN under marking at 65 packets, RED from 25 to 75 and
CoDel of 500 us / 20 ms. S2: 160 hosts, 64 KB for each pair. CPU seconds (user and system) of whole processes except where a peer's set-up is told
apart; medians of RUNS runs, alternating between programs. One line is appended to bench/history/speed.jsonl.

Needs Debian's ns2, ns3 and libns3-dev for the peers; without them it says so and measures only ourselves.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "target" / "bench"
NS3_LIBRARIES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control", "stats", "bridge")
S1, S2 = ("4", "10", "1000000", "2"), ("4", "40", "64000", "2")
# Racks, hosts in each, bytes for each connection; every host sends to 15 others: about the same number of hops at every size.
SIZES = (
    ("2", "8", "6000000"),
    ("4", "10", "2000000"),
    ("4", "20", "1000000"),
    ("4", "40", "500000"),
    ("8", "40", "250000"),
    ("16", "40", "125000"),
)
PEERS = "15"


def measure(command: list[str]) -> tuple[float, str]:
    """CPU seconds and output of a process."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed:\n{output}")
    return usage.ru_utime + usage.ru_stime, output


def value(output: str, key: str) -> float:
    return float(re.search(rf"{key}=([0-9.e+-]+)", output).group(1))


def ours(arguments: tuple[str, ...], policy: str = "legacy", *more: str) -> dict[str, float]:
    cpu, output = measure([str(ROOT / "target/release/examples/shuffle"), *arguments, policy, *more])
    return {"hops": value(output, "hops"), "cpu_s": cpu, "memory_mb": value(output, "peak_kb") / 1024}


def mean_path(racks: int, per_rack: int) -> float:
    hosts = racks * per_rack
    return (2 * (per_rack - 1) + 4 * (hosts - per_rack)) / (hosts - 1)


def ns2() -> dict[str, float]:
    _, output = measure(["ns", str(ROOT / "bench/peers/ns2_shuffle.tcl"), *S1, "Calendar"])
    # Every data segment and its acknowledgement cross the mean path; set-up in OTcl is not counted against ns-2.
    return {"hops": 2 * value(output, "data_sent") * mean_path(4, 10), "cpu_s": value(output, "run_cpu")}


def ns3() -> dict[str, float]:
    # A fifth of the bytes: 18 CPU seconds. Set-up is not counted.
    _, output = measure([str(BUILD / "ns3_shuffle"), "4", "10", "200000"])
    return {"hops": value(output, "pkt_hops"), "cpu_s": value(output, "run_cpu")}


def prepare() -> list[str]:
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "--quiet", "-p", "joulepath-net", "--example", "shuffle"], cwd=ROOT, check=True
    )
    peers = []
    if shutil.which("ns"):
        peers.append("ns2")
    source = ROOT / "bench/peers/ns3_shuffle.cc"
    if Path("/usr/include/ns3.37").exists() or list(Path("/usr/include").glob("ns3*")):
        BUILD.mkdir(parents=True, exist_ok=True)
        if not (BUILD / "ns3_shuffle").exists() or (BUILD / "ns3_shuffle").stat().st_mtime < source.stat().st_mtime:
            libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
            subprocess.run(["g++", "-std=c++17", "-O3", str(source), "-o", str(BUILD / "ns3_shuffle"), *libraries], check=True)
        peers.append("ns3")
    for name in {"ns2", "ns3"} - set(peers):
        print(f"{name} is missing (apt install ns2 ns3 libns3-dev): its column is n/a", file=sys.stderr)
    return peers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-history", action="store_true")
    options = parser.parse_args()
    peers = prepare()
    cases = {
        "S1": lambda: ours(S1),
        "S1 eee": lambda: ours(S1, "eee"),
        "S1 120us100": lambda: ours(S1, "120us100"),
        **{f"S1 {queue}": lambda queue=queue: ours(S1, "legacy", "drop", "0", queue) for queue in ("mark", "red", "codel")},
        "S2": lambda: ours(S2),
        **({"ns-2 S1": ns2} if "ns2" in peers else {}),
        **({"ns-3 S1/5": ns3} if "ns3" in peers else {}),
    }
    results: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
    for i in range(options.runs):
        for name, run in cases.items():
            started = time.monotonic()
            results[name].append(run())
            print(f"\r{i + 1}/{options.runs} {name}: {time.monotonic() - started:.1f} s" + " " * 20, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    rate = {name: statistics.median(r["hops"] / r["cpu_s"] for r in runs) for name, runs in results.items()}
    spread = {
        name: (min(r["hops"] / r["cpu_s"] for r in runs), max(r["hops"] / r["cpu_s"] for r in runs)) for name, runs in results.items()
    }
    print(f"{'scenario':<14}{'hops/CPU-s':>14}{'lowest':>12}{'highest':>12}{'hops':>14}{'memory':>10}{'ours/theirs':>13}")
    for name, median in rate.items():
        runs = results[name]
        memory = f"{max(r['memory_mb'] for r in runs):.0f} MB" if "memory_mb" in runs[0] else "n/a"
        ratio = (
            f"{rate['S1'] / median:.1f}" if name.startswith("ns-") else f"{median / rate['S1']:.0%} of S1" if name.startswith("S1 ") else ""
        )
        low, high = (f"{v / 1e6:.2f} M" for v in spread[name])
        print(f"{name:<14}{median / 1e6:>12.2f} M{low:>12}{high:>12}{runs[0]['hops']:>14,.0f}{memory:>10}{ratio:>13}")
    growth = {}
    for racks, per_rack, size in SIZES:
        runs = [ours((racks, per_rack, size, "2"), "legacy", "drop", PEERS) for _ in range(3)]
        growth[int(racks) * int(per_rack)] = statistics.median(r["cpu_s"] / r["hops"] * 1e9 for r in runs)
    print("ns of CPU for each hop by hosts: " + ", ".join(f"{hosts}: {ns:.0f}" for hosts, ns in growth.items()))
    if not options.no_history:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        line = {
            "date": datetime.date.today().isoformat(), "commit": commit, "runs": options.runs,
            "hops_per_cpu_s": {name: round(v) for name, v in rate.items()},
            "memory_mb": {n: round(max(r["memory_mb"] for r in rs)) for n, rs in results.items() if "memory_mb" in rs[0]},
            "ns_per_hop_by_hosts": {str(h): round(ns, 1) for h, ns in growth.items()},
        }  # fmt: skip
        path = ROOT / "bench/history/speed.jsonl"
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
