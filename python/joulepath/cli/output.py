"""Tables, numbers and progress for people."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

PREFIXES = (
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
    (1e-12, "p"),
)


def quantity(value: float | None, unit: str) -> str:
    """A number with three or four significant digits and an SI prefix.

    >>> quantity(0.00012345, "s"), quantity(20593218111, "B"), quantity(None, "J"), quantity(0, "s")
    ('123 µs', '20.6 GB', 'n/a', '0 s')
    """
    if value is None:
        return "n/a"
    if value == 0:
        return f"0 {unit}"
    for size, prefix in PREFIXES:
        if abs(value) >= size * 0.9995:
            return f"{digits(value / size)} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def digits(value: float) -> str:
    """Three significant digits without an exponent.

    >>> digits(1234.5), digits(12.345), digits(0.12345)
    ('1234', '12.3', '0.123')
    """
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}" if size >= 0.9995 else f"{value:.3f}"


def percent(value: float | None, signed: bool = False) -> str:
    """A ratio as a percentage.

    >>> percent(0.1234), percent(-0.05, signed=True), percent(None)
    ('12.3 %', '-5.0 %', 'n/a')
    """
    if value is None:
        return "n/a"
    return f"{value * 100:+.1f} %" if signed else f"{value * 100:.1f} %"


def count(value: int | None) -> str:
    """A count with thousands separated."""
    return "n/a" if value is None else f"{value:,}"


def print_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", labels: int = 1) -> None:
    """Print a table; all but the first `labels` columns are numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i < labels else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    click.secho(title, bold=True)
    # As wide as it needs: a number that is cut off is worse than a line that wraps.
    wide = Console(width=10_000)
    width = max(1, wide.measure(table).maximum)
    Console(width=width, highlight=False, emoji=False, markup=False).print(table)
    if caption:
        click.secho(caption, dim=True)


@contextmanager
def progress_bar(runs: int, what: str = "simulating") -> Iterator[Any]:
    """A bar over all runs on standard error; yields the callback of `joulepath.simulate`."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[hops]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    shares: dict[str, tuple[float, int]] = {}
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=runs, hops="")

        def tell(label: str, share: float, hops: int) -> None:
            shares[label] = (share, hops)
            done = sum(s for s, _ in list(shares.values()))
            bar.update(task, completed=done, hops=quantity(sum(h for _, h in list(shares.values())), " packet hops"))
            # Runs that were recorded before count as done, with no hops of now.
            if share >= 1 and hops and not console.is_terminal:
                ended = sum(1 for s, _ in list(shares.values()) if s >= 1)
                click.echo(f"[{ended}/{runs}] {label}", err=True)

        yield tell
