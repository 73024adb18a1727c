"""`joulepath simulate`: run a plan."""

from collections import Counter
from collections.abc import Callable
from functools import reduce
from typing import Any

import click

from joulepath.cli.output import count, digits, percent, print_json, print_table, progress_bar, quantity
from joulepath.plan import Plan, PlanFileError, load_plan
from joulepath.record import Record
from joulepath.sweep import simulate as run_plan


def plan_options(folder: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The argument and the options of every verb that runs a plan; `folder` is where its record goes by default."""
    options = (
        click.argument("plan", type=click.Path()),
        click.option("--out", type=click.Path(file_okay=False), help=f"Folder of the record.  [default: {folder}]"),
        click.option("--jobs", type=click.IntRange(1), help="Runs at once.  [default: all cores]"),
        click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of the plan; may be repeated."),
        click.option("--report/--no-report", "with_report", default=True, help="Write report.html into the record.  [default: yes]"),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
    )
    return lambda command: reduce(lambda f, option: option(f), reversed(options), command)


@click.command(epilog="Example: joulepath simulate experiments/cluster/terasort.toml --set seed=7")
@plan_options("records/<plan>")
@click.option("--check", is_flag=True, help="Only check the plan and list its runs.")
def simulate(
    plan: str,
    out: str | None,
    jobs: int | None,
    settings: tuple[str, ...],
    check: bool,
    with_report: bool,
    as_json: bool,
) -> None:
    """Run every run of a plan, record it, and show a table and a report.

    Runs go in parallel. Those whose record exists are not run again, so a stopped command goes on where it was.
    """
    loaded = load_plan(plan, dict(parse_setting(s) for s in settings))
    if check:
        _print_check(loaded)
        return
    _warn(loaded)
    with progress_bar(len(loaded.runs)) as tell:
        record = run_plan(loaded, out, jobs=jobs, progress=tell)
    page = record.report() if with_report else None
    if as_json:
        print_json(record.as_dict())
        return
    print_record(record)
    if page:
        click.echo(f"report: {page}")


def _print_check(plan: Plan) -> None:
    classes = list(dict.fromkeys(q["class"] for run in plan.runs for q in run.queues))
    rows = []
    for run in plan.runs:
        queues = {q["class"]: _queue(q) for q in run.queues}
        rows.append([run.label, str(run.seed), run.resolved["workload"]["kind"], *(queues.get(c, "n/a") for c in classes)])
    warned = sum(bool(run.warnings) for run in plan.runs)
    verdict = f"{warned} of them with warnings" if warned else "nothing wrong with them"
    columns = ("run", "seed", "workload", *(f"{c} queue" for c in classes))
    print_table(f"{plan.title}: {len(rows)} runs, {verdict}", columns, rows)
    _warn(plan)


def _queue(queue: dict[str, Any]) -> str:
    """A discipline and its thresholds: `red 12.5-37.5 packets`."""
    if queue["min"] is None:
        return queue["kind"]
    ends = dict.fromkeys(f"{queue[end]:g}" for end in ("min", "max"))
    return f"{queue['kind']} {'-'.join(ends)} {'B' if queue['unit'] == 'bytes' else queue['unit']}"


def _warn(plan: Plan) -> None:
    """Say on standard error what the runs ask for that cannot happen, each thing once."""
    count = Counter(w for run in plan.runs for w in run.warnings)
    for warning, runs in count.items():
        where = f" ({runs} of {len(plan.runs)} runs)" if len(plan.runs) > 1 else ""
        click.echo(f"warning: {warning}{where}", err=True)


def print_record(record: Record) -> None:
    """Print the table of a record; changes are against its first run with the same other settings."""
    runs = record.runs
    probed = any(r.metrics["probes"] for r in runs)
    # With probes the table is about latency: their percentiles take the place of the joules of each class.
    classes = [] if probed else [c for c in dict.fromkeys(c for r in runs for c in r.metrics["energy_j"]) if c != "total"]
    columns = [
        "run",
        "runtime",
        "change",
        "latency",
        "p99",
        *(("probe p50", "probe p99", "p99.9") if probed else ()),
        *(f"{c} J" for c in classes),
        "energy",
        "of first",
        "energy-delay",
        "LPI",
        "drops",
    ]
    first = runs[0].metrics
    rows = []
    for run in runs:
        m = run.metrics
        energy = m["energy_j"]
        lpi = [s["lpi"] for s in m["state_ratio"].values()]
        rows.append(
            [
                run.label,
                quantity(m["runtime_s"], "s"),
                percent(m["runtime_s"] / first["runtime_s"] - 1, signed=True),
                quantity(m["latency_s_mean"], "s"),
                quantity(m["latency_s_p99"], "s"),
                *(_probe(m["probes"]) if probed else ()),
                *(_joules(energy.get(c)) for c in classes),
                quantity(energy["total"], "J"),
                percent(energy["total"] / first["energy_j"]["total"]),
                percent(m["energy_delay_js"] / first["energy_delay_js"]),
                percent(sum(lpi) / len(lpi)) if lpi else "n/a",
                count(m["drops"]),
            ]
        )
    known = f"simulated times, {first['evidence']} energy (transmitting side of every port)"
    caption = f"{known} · change, of first and energy-delay: against {runs[0].label}"
    print_table(record.title, columns, rows, caption=caption)
    _print_packets(record)


def _print_packets(record: Record) -> None:
    """Which packets queues dropped and marked, as shares of those that reached them."""
    signals = ("early_drops", "marks")
    if not any(kind[signal] for r in record.runs for kind in r.metrics["packets"].values() for signal in signals):
        return  # Full buffers alone are in the first table.
    runs = [r for r in record.runs if r.metrics["drops"] or r.metrics["packets"]["data"]["marks"]]
    kinds = {"data": "data", "retransmission": "retrans.", "ack": "ACK", "syn": "SYN"}
    columns = ["run", *(f"{name} {reason}" for name in kinds.values() for reason in ("early", "full")), "data marked"]
    rows = []
    for run in runs:
        packets = run.metrics["packets"]
        cells = [_share(packets[kind][reason], packets[kind]["offered"]) for kind in kinds for reason in ("early_drops", "overflows")]
        rows.append([run.label, *cells, _share(packets["data"]["marks"], packets["data"]["offered"])])
    caption = "Of the packets of each kind that reached a queue: dropped early by the discipline, dropped by a full buffer, marked."
    print_table("Drops and marks by kind of packet", columns, rows, caption=caption)


def _share(part: int, whole: int) -> str:
    return "n/a" if not whole else "0" if not part else percent(part / whole) if part / whole >= 0.001 else f"{part / whole * 100:.1g} %"


def _probe(probes: dict[str, Any] | None) -> list[str]:
    return [quantity(probes[f"latency_s_{p}"] if probes else None, "s") for p in ("p50", "p99", "p999")]


def _joules(value: float | None) -> str:
    """Joules for a column whose head names the unit: a tenth of a joule, or three digits of less than ten."""
    return "n/a" if value is None else f"{value:.1f}" if value >= 9.995 else digits(value)


def parse_setting(text: str) -> tuple[str, Any]:
    """`KEY=VALUE` of the option --set."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise PlanFileError(f"--set: found {text!r}; expected KEY=VALUE, for example --set tcp.receive_window='1 MB'")
    for convert in (int, float):
        try:
            return key.strip(), convert(value)
        except ValueError:
            continue
    return key.strip(), {"true": True, "false": False}.get(value, value)
