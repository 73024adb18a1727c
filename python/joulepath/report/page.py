"""The HTML page: data as JSON, charts drawn by Observable Plot, everything inlined once.

The content security policy forbids every source; the page's own scripts and style are allowed by their hashes. Charts
write style attributes, which `style-src-attr 'unsafe-inline'` admits without admitting style sheets.
"""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from joulepath.record import Record, RunRecord
from joulepath.record.record import write_whole
from joulepath.report.figures import figure_rows

NO_SCRIPT = "This page draws its charts with a script that it carries; the numbers are in the record's metrics.parquet."
POINTS = 800
CLASSES = {"nic": "network cards", "edge": "switch to host", "uplink": "switch up", "core": "switch down"}


def write_report(records: Sequence[Record], path: Path) -> Path:
    """Write one page over these records. Raises `OSError` when it cannot be written; then nothing is left behind."""
    data = {"classes": CLASSES, "records": [_record(r) for r in records]}
    title = " · ".join(r.title for r in records)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page(title, data))
    return path


def page(title: str, data: dict[str, Any]) -> str:
    """The whole page as text."""
    assets = resources.files("joulepath.report") / "assets"
    scripts = [(assets / name).read_text(encoding="utf-8") for name in ("d3.min.js", "plot.umd.min.js", "report.js")]
    style = (assets / "report.css").read_text(encoding="utf-8")
    # "<" cannot end the script element early; a JSON block is data, not script, and needs no hash.
    payload = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    script_hashes = " ".join(_hash(s) for s in scripts)
    policy = f"default-src 'none'; script-src {script_hashes}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    tags = "\n".join(f"<script>{s}</script>" for s in scripts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)} · Joulepath</title>
<style>{style}</style>
</head>
<body>
<main id="page"><noscript>{NO_SCRIPT}</noscript></main>
<script type="application/json" id="data">{payload}</script>
{tags}
</body>
</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _record(record: Record) -> dict[str, Any]:
    runs = []
    for run in record.runs:
        m = run.metrics
        runs.append(
            {
                "label": run.label,
                "settings": run.run["settings"],
                **{
                    k: m[k]
                    for k in (
                        "runtime_s",
                        "job_runtime_s_mean",
                        "latency_s_mean",
                        "latency_s_p99",
                        "energy_j",
                        "energy_delay_js",
                    )
                },
                **{
                    k: m[k]
                    for k in (
                        "evidence",
                        "state_ratio",
                        "drops",
                        "retransmissions",
                        "timeouts",
                        "throughput_bps_node_mean",
                        "packets",
                    )
                },
                "latency": _cumulative(m["latency_histogram"]),
                "probes": _probes(m["probes"]),
                "warnings": run.run["warnings"],
                "queues": _queues(run),
            }
        )
    plan = record.plan
    readme = record.folder / "README.txt"
    command = readme.read_text(encoding="utf-8").strip().splitlines()[-1].strip() if readme.is_file() else ""
    return {
        "title": plan["title"],
        "name": plan["name"],
        "source": plan.get("source", ""),
        "description": plan.get("description", ""),
        "version": plan["version"],
        "command": command,
        "missing": record.missing,
        "recommendation": record.recommendation,
        "plan": record.runs[0].run["plan"] if record.runs else {},
        "runs": runs,
        "figures": [{**f, "rows": figure_rows(record, f)} for f in plan["figures"]],
    }


def _probes(probes: dict[str, Any] | None) -> dict[str, Any] | None:
    if not probes:
        return None
    return {**{k: v for k, v in probes.items() if k != "latency_histogram"}, "latency": _cumulative(probes["latency_histogram"])}


def _queues(run: RunRecord) -> dict[str, Any] | None:
    """Histograms and time series of queues, thinned to what a chart can show: of each stretch its highest sample."""
    observed = run.observed
    if not observed or observed["sample_s"] is None:
        return None
    series = []
    for one in observed["series"]:
        step = max(1, len(one["packets"]) // POINTS)
        tops = [max(one["packets"][i : i + step]) for i in range(0, len(one["packets"]), step)]
        series.append({"port": one["port"], "step_s": step * observed["sample_s"], "packets": tops})
    return {"sample_s": observed["sample_s"], "histograms": observed["histograms"], "series": series}


def _cumulative(histogram: list[list[float]], points: int = 120) -> list[list[float]]:
    """Upper ends of buckets and the share of packets up to there, thinned to what a chart can show."""
    total = sum(count for _, _, count in histogram)
    out: list[list[float]] = []
    seen = 0
    for _, high, count in histogram:
        seen += count
        share = seen / total
        if not out or share - out[-1][1] >= 1 / points or (share > 0.99 and (1 - out[-1][1]) > 1.2 * (1 - share)):
            out.append([high, share])
    return out


def notebook_table(record: Record) -> str:
    """A small HTML table of a record for notebooks."""
    columns = ("run", "runtime (s)", "energy (J)", "of first", "latency p99 (µs)", "drops")
    first = record.runs[0].metrics["energy_j"]["total"] if record.runs else 1
    rows = []
    for run in record.runs:
        m = run.metrics
        p99 = "n/a" if m["latency_s_p99"] is None else f"{m['latency_s_p99'] * 1e6:.0f}"
        cells = (
            run.label,
            f"{m['runtime_s']:.3f}",
            f"{m['energy_j']['total']:.1f}",
            f"{m['energy_j']['total'] / first:.1%}",
            p99,
            f"{m['drops']:,}",
        )
        rows.append("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells) + "</tr>")
    head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
    note = f"simulated times, {record.runs[0].metrics['evidence']} energy" if record.runs else "no runs"
    return f"<table><caption>{html.escape(record.title)} ({note})</caption><tr>{head}</tr>{''.join(rows)}</table>"
