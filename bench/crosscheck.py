"""Two long flows over one slow link, here and in ns-3: goodput within 1 %, mean queue within 15 %.

DCTCP with step marking at 20 packets (1 Gb/s) and 65 (10 Gb/s), RED and CoDel with ECN, DropTail. ns-3 judges what waits in
its discipline; one packet more waits in its device and one is on the wire, and all three are in our buffer. So our
thresholds are larger by two, and the packet on the wire is added to ns-3's mean. The smallest timeout is 10 ms in both: with
200 ms the few retransmissions that are lost again decide a short run's goodput.

Needs Debian's ns3 and libns3-dev. Exits with 1 when a row is outside.
"""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "target" / "bench"
LIBRARIES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control", "stats")
GOODPUT, QUEUE = 0.01, 0.15
ON_WIRE = 1
# Name, our queue, theirs, transport, Gb/s, seconds.
CASES = (
    ("DropTail, 1 Gb/s", "droptail", "droptail", "newreno", 1, 6),
    ("DropTail, 10 Gb/s", "droptail", "droptail", "newreno", 10, 3),
    ("DCTCP, K = 20, 1 Gb/s", "mark=22", "red:20:20", "dctcp", 1, 6),
    ("DCTCP, K = 65, 10 Gb/s", "mark=67", "red:65:65", "dctcp", 10, 3),
    ("ECN, K = 65, 1 Gb/s", "mark=67", "red:65:65", "ecn", 1, 6),
    ("RED 25 to 75 with ECN, 1 Gb/s", "red=27,77", "red:25:75", "ecn", 1, 6),
    ("RED 25 to 75, drops, 1 Gb/s", "red=27,77", "red:25:75", "newreno", 1, 6),
    ("CoDel 500 us / 20 ms with ECN, 1 Gb/s", "codel=500,20000", "codel:500:20000", "ecn", 1, 6),
    ("CoDel 300 us / 0.75 ms with ECN, 1 Gb/s", "codel=300,750", "codel:300:750", "ecn", 1, 6),
)


def build() -> tuple[Path, Path]:
    if not list(Path("/usr/include").glob("ns3*")):
        sys.exit("crosscheck: ns-3 is missing; install it with: apt install ns3 libns3-dev")
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "--quiet", "-p", "joulepath-net", "--example", "dumbbell"], cwd=ROOT, check=True
    )
    BUILD.mkdir(parents=True, exist_ok=True)
    theirs, source = BUILD / "ns3_dumbbell", ROOT / "bench/peers/ns3_dumbbell.cc"
    if not theirs.exists() or theirs.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["g++", "-std=c++17", "-O2", str(source), "-o", str(theirs), *(f"-lns3-{n}" for n in LIBRARIES)], check=True)
    return ROOT / "target/release/examples/dumbbell", theirs


def measure(program: Path, *arguments: object) -> dict[str, float]:
    run = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{program.name} {' '.join(map(str, arguments))} failed:\n{run.stderr}")
    return {k: float(v) for k, v in re.findall(r"(\w+)=([-+0-9.e]+)", run.stdout)}


def main() -> int:
    ours, theirs = build()
    print(f"{'case':<42}{'goodput, Mb/s':>22}{'':>9}{'mean queue, packets':>24}{'':>9}{'drops':>16}{'marks':>18}")
    print(f"{'':<42}{'ours':>12}{'ns-3':>10}{'diff':>9}{'ours':>14}{'ns-3':>10}{'diff':>9}{'ours':>8}{'ns-3':>8}{'ours':>9}{'ns-3':>9}")
    outside = []
    with ThreadPoolExecutor(2) as pool:
        pairs = [
            (case, pool.submit(measure, ours, case[1], *case[3:6]), pool.submit(measure, theirs, case[2], *case[3:6])) for case in CASES
        ]
        for (name, *_), a, b in pairs:
            a, b = a.result(), b.result()
            b["queue_mean"] += ON_WIRE
            goodput, queue = (a[k] / b[k] - 1 for k in ("goodput_mbps", "queue_mean"))
            good = abs(goodput) <= GOODPUT and abs(queue) <= QUEUE
            print(
                f"{name:<42}{a['goodput_mbps']:>12.1f}{b['goodput_mbps']:>10.1f}{goodput:>+9.2%}{a['queue_mean']:>14.1f}{b['queue_mean']:>10.1f}{queue:>+9.1%}"
                f"{a['drops']:>8.0f}{b['drops']:>8.0f}{a['marks']:>9.0f}{b['marks']:>9.0f}{'' if good else '  OUTSIDE'}",
                flush=True,
            )
            if not good:
                outside.append(name)
    if outside:
        print(f"outside the bounds: {', '.join(outside)}", file=sys.stderr)
    return bool(outside)


if __name__ == "__main__":
    sys.exit(main())
