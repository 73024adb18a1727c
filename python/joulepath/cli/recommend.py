"""`joulepath recommend`: search the free settings of a plan, choose under limits, print the commands."""

import contextlib
import statistics
from collections.abc import Iterator
from typing import Any

import click

from joulepath.cli.output import digits, percent, print_json, print_table, progress_bar, quantity
from joulepath.cli.simulate import parse_setting, plan_options
from joulepath.recommend import Recommendation
from joulepath.recommend import recommend as search
from joulepath.recommend.goals import unit_of, word_of


@click.command(epilog="Example: joulepath recommend experiments/recommend/two_racks.toml")
@plan_options("records/<plan>.recommend")
def recommend(plan: str, out: str | None, jobs: int | None, settings: tuple[str, ...], with_report: bool, as_json: bool) -> None:
    """Find the settings of a plan that serve an objective best and keep its limits.

    Every value that the plan's [recommend] table gives as a list or a range is free. Many candidates run on a quarter of the
    job, the best on half of it, a few on all of it with several seeds. A stopped command goes on where it was.
    """
    found = search(plan, out, jobs=jobs, overrides=dict(parse_setting(s) for s in settings), stage=_stage)
    page = found.record.report() if with_report else None
    if as_json:
        print_json(found.as_dict())
        return
    print_recommendation(found)
    if page:
        click.echo(f"report: {page}")


@contextlib.contextmanager
def _stage(name: str, runs: int) -> Iterator[Any]:
    if not runs:
        yield lambda label, share, hops: None
        return
    with progress_bar(runs, name) as tell:
        yield tell


def _value(metric: str, value: float) -> str:
    unit = unit_of(metric)
    return quantity(value, unit) if unit else digits(value)


def print_recommendation(found: Recommendation) -> None:
    """Print the finalists, the choice, what it rests on, and the commands."""
    names = list(found.choice.metrics)
    rows = []
    for f in found.finalists:
        low, high = f.as_dict()["objective_ratio_interval95"]
        mark = "chosen" if f is found.choice else "" if f.holds else "breaks a limit"
        rows.append(
            [
                f.name,
                percent(statistics.fmean(f.objective) - 1, signed=True),
                "" if f.name == "baseline" else f"±{(high - low) / 2 * 100:.1f}",
                *(_value(n, f.metrics[n]) for n in names),
                "yes" if f.name in found.pareto else "",
                mark,
            ]
        )
    seeds = len(found.choice.objective)
    columns = ["", f"{found.objective.text}, change", "95 %", *map(word_of, names), "Pareto", ""]
    caption = f"Whole job, means over {seeds} seeds; {found.objective.text}: change against the baseline, paired by seed. {found.runs} runs in all. Simulated times, modelled energy."
    print_table(found.plan.title, columns, rows, caption=caption)
    for f in found.finalists:
        if f.name != "baseline" and f.candidate.settings:
            click.echo(f"{f.name}: {f.candidate.label}")
    click.echo()
    click.secho(f"Choice: {found.choice.name}", bold=True)
    for key, value in found.choice.candidate.settings.items():
        click.echo(f"  {key} = {_toml(value)}")
    data = found.as_dict()
    for limit in data["limits"]:
        margin, interval = -limit["excess_ratio"], limit["excess_ratio_interval95"]
        click.echo(
            f"  keeps {limit['limit']}: {_value(limit['metric'], limit['value'])}, {percent(margin)} inside (95 %: {percent(-interval[1])} to {percent(-interval[0])})"
        )
    for note in found.notes:
        click.echo(f"  {note}")
    if found.sensitivity:
        click.echo()
        rows = [
            [s["key"], _toml(s["value"]), percent(s["objective_change_ratio"], signed=True), ", ".join(s["breaks"]) or ""]
            for s in found.sensitivity
        ]
        print_table(
            "How sensitive the choice is",
            ("setting", "moved to", found.objective.text, "breaks"),
            rows,
            "One setting moved, the rest as chosen; one seed.",
            labels=2,
        )
    if found.applied.snippets or found.applied.words:
        click.echo()
        click.secho(f"To apply it (also in {found.record.folder / 'settings.txt'})", bold=True)
        click.echo(found.applied.as_text().rstrip())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }" if value else "as it is"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else f"{value:g}"
