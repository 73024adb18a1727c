"""The HTML report in a real browser."""

import os
import re
import shutil
import subprocess

import pytest

import joulepath
from joulepath.report import write_report
from joulepath.report.figures import figure_rows

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

PLAN = {
    "title": 'A <b>title</b> with "marks" & </script>',
    "source": "a test",
    "topology": {"kind": "leaf-spine", "nodes": 8},
    "workload": {"kind": "jobs", "jobs": [{"benchmark": "terasort", "input": "64 MB", "maps": 8, "reduces": 4}]},
    "probes": {"rate": "2 kHz"},
    "observe": {"every": "1 ms", "ports": ["rack0->host1"]},
    "grid": {"eee.policy": ["legacy", "eee", "ideal"], "ports.buffer": ["64 KB", "128 KB"]},
    "figure": [
        {"title": "bars", "y": "energy_j.total", "x": "ports.buffer", "series": "eee.policy", "relative_to": "eee.policy=legacy"},
        {"title": "lines", "y": "runtime_s", "x": "ports.buffer", "series": "eee.policy", "kind": "line"},
        {"title": "dots", "y": "latency_s_p99", "x": "eee.policy", "series": "ports.buffer", "facet": "ports.buffer", "kind": "dot"},
    ],
}


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return joulepath.simulate(PLAN, tmp_path_factory.mktemp("record"))


def test_figures_are_relative_to_the_right_run(record):
    rows = figure_rows(record, {**record.plan["figures"][0]})
    energy = {run.label: run.metrics["energy_j"]["total"] for run in record.runs}
    assert len(rows) == 6
    for row in rows:
        base = energy[f"legacy · {row['x']}"]
        assert row["y"] == pytest.approx(energy[f"{row['series']} · {row['x']}"] / base)


def test_the_page_needs_nothing_else(record, tmp_path):
    text = write_report([record], tmp_path / "r.html").read_text()
    assert "default-src 'none'" in text and "<b>title</b>" not in text.replace("\\u003cb>", "")
    assert not re.search(r'(src|href)\s*=\s*"(https?:)?//', text)
    assert text.count("</script>") == 4, "data and three scripts, closed by nothing else"


def browse(page, *flags):
    if not BROWSER:
        if os.environ.get("JOULEPATH_NOTHING_SKIPPED"):
            pytest.fail("chromium is missing: apt install chromium")
        pytest.skip("chromium is missing: apt install chromium")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=6000"]
    run = subprocess.run(
        [*command, "--window-size=1100,1600", "--enable-logging=stderr", "--v=0", *flags, page.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    complaints = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    assert not complaints, complaints
    return run.stdout


def test_charts_are_drawn_in_a_browser(record, tmp_path):
    page = write_report([record], tmp_path / "r.html")
    dom = browse(page, "--dump-dom")
    drawn = dom[: dom.index('<script type="application/json"')]
    assert drawn.count('class="card"') == 1 + 3 + 4 + 4, (
        "a table, three figures of the plan, four of every record; probes, losses, two of queues"
    )
    for title in (
        "bars",
        "lines",
        "dots",
        "Energy of all ports, by class",
        "What is saved against what it costs",
        "How long packets take",
        "Buffers over time",
    ):
        assert f"<h2>{title}</h2>" in drawn
    bars = re.findall(r"<rect[^>]*height", drawn)
    assert len(bars) >= 6 * 4 + 6, "a bar for each run and class, and for each run of the plan's figure"
    assert len(re.findall(r'<path[^>]*d="M', drawn)) > 20
    assert "simulated time" in drawn and "modelled power" in drawn
    assert "NaN" not in drawn and "undefined" not in drawn
    assert "&lt;b&gt;title" in drawn


def test_a_screenshot_has_ink_in_light_and_dark(record, tmp_path):
    page = write_report([record], tmp_path / "r.html")
    sizes = {}
    for name, flag in (("light", "--blink-settings=preferredColorScheme=1"), ("dark", "--blink-settings=preferredColorScheme=0")):
        shot = tmp_path / f"{name}.png"
        browse(page, f"--screenshot={shot}", flag)
        sizes[name] = shot.stat().st_size
    assert all(size > 60_000 for size in sizes.values()), sizes


def test_bad_records_get_one_sentence(cli, tmp_path, record):
    assert "no plan.json in it" in cli.refusal("report", tmp_path, code=1)
    (tmp_path / "plan.json").write_text("{")
    assert "damaged" in cli.refusal("report", tmp_path, code=1)
    (tmp_path / "plan.json").write_text('{"format": 2, "runs": ["../../etc"]}')
    assert "a run outside the record" in cli.refusal("report", tmp_path, code=1)
    (tmp_path / "plan.json").write_text('{"format": 99, "runs": []}')
    assert "found a record of format 99; expected 2" in cli.refusal("report", tmp_path, code=1)
    assert "usage" in cli("report", code=2).stderr.lower()
    page = cli("report", record.folder, "--out", "x/y.html").stdout
    assert page.strip() == "report: x/y.html" and (tmp_path / "x" / "y.html").is_file()
