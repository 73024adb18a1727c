"""`joulepath simulate`: run a plan."""

from typing import Any

import click

from joulepath.cli.output import count, digits, percent, print_json, print_table, progress_bar, quantity
from joulepath.plan import PlanFileError, load_plan
from joulepath.record import Record
from joulepath.sweep import simulate as run_plan


@click.command(epilog="Example: joulepath simulate experiments/cluster/terasort.toml --set seed=7")
@click.argument("plan", type=click.Path())
@click.option("--out", type=click.Path(file_okay=False), help="Folder of the record.  [default: records/<plan>]")
@click.option("--jobs", type=click.IntRange(1), help="Runs at once.  [default: all cores]")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of the plan; may be repeated.")
@click.option("--check", is_flag=True, help="Only check the plan and list its runs.")
@click.option("--report/--no-report", "with_report", default=True, help="Write report.html into the record.  [default: yes]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
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
    loaded = load_plan(plan, dict(_setting(s) for s in settings))
    if check:
        rows = [[run.label, str(run.seed), run.resolved["workload"]["kind"]] for run in loaded.runs]
        print_table(f"{loaded.title}: {len(rows)} runs, nothing wrong with them", ("run", "seed", "workload"), rows)
        return
    with progress_bar(len(loaded.runs)) as tell:
        record = run_plan(loaded, out, jobs=jobs, progress=tell)
    page = record.report() if with_report else None
    if as_json:
        print_json(record.as_dict())
        return
    print_record(record)
    if page:
        click.echo(f"report: {page}")


def print_record(record: Record) -> None:
    """Print the table of a record; changes are against its first run with the same other settings."""
    runs = record.runs
    classes = [c for c in dict.fromkeys(c for r in runs for c in r.metrics["energy_j"]) if c != "total"]
    columns = [
        "run",
        "runtime",
        "change",
        "latency",
        "p99",
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


def _joules(value: float | None) -> str:
    """Joules for a column whose head names the unit: a tenth of a joule, or three digits of less than ten."""
    return "n/a" if value is None else f"{value:.1f}" if value >= 9.995 else digits(value)


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise PlanFileError(f"--set: found {text!r}; expected KEY=VALUE, for example --set tcp.receive_window='1 MB'")
    for convert in (int, float):
        try:
            return key.strip(), convert(value)
        except ValueError:
            continue
    return key.strip(), {"true": True, "false": False}.get(value, value)
