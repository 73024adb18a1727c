"""`joulepath report`: HTML from records."""

from pathlib import Path

import click

from joulepath.record import Record
from joulepath.report import write_report


@click.command(epilog="Example: joulepath report records/terasort records/nds_q72 --out comparison.html")
@click.argument("records", nargs=-1, required=True, type=click.Path())
@click.option("--out", default="report.html", show_default=True, type=click.Path(dir_okay=False), help="The page to write.")
def report(records: tuple[str, ...], out: str) -> None:
    """Write one self-contained page over one or more records: charts, and the table behind each.

    The page needs no network and no server; it can be mailed, archived and printed.
    """
    page = write_report([Record(r) for r in records], Path(out))
    click.echo(f"report: {page}")
