"""`joulepath workload`: logs of real clusters."""

import click

from joulepath._core import TraceFileError
from joulepath.cli.output import count, print_json, print_table, quantity
from joulepath.workload import inspect_workload

MATRIX_SHOWN = 12


@click.group()
def workload() -> None:
    """Logs of real clusters: SWIM traces, Spark event logs, Hadoop job history."""


@workload.command(epilog="Example: joulepath workload inspect data/spark/nds_q72_dataproc_2_2.zstd")
@click.argument("file", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def inspect(file: str, as_json: bool) -> None:
    """Show what is understood of a log, and what in it is damaged, missing or inferred.

    The kind and the compression (plain, gzip, lz4, zstd) are found by content. Logs of any size are streamed.
    """
    try:
        found = inspect_workload(file)
    except TraceFileError as error:
        raise TraceFileError(f"{file}: {error}") from None
    if as_json:
        print_json(found)
        return
    bytes_ = [
        ("read from files", "input_bytes"),
        ("shuffle, written", "shuffle_write_bytes"),
        ("shuffle, read from other executors", "shuffle_read_remote_bytes"),
        ("shuffle, read from the own executor", "shuffle_read_local_bytes"),
        ("written to files", "output_bytes"),
    ]
    rows = [
        [name, count(found[key]), ""]
        for name, key in (
            ("jobs", "jobs"),
            ("of these failed", "jobs_failed"),
            ("tasks", "tasks"),
            ("hosts", "hosts"),
            ("executors", "executors"),
        )
    ]
    rows += [
        [
            name,
            f"{count(found[key])} B" if found[key] is not None else "n/a",
            quantity(found[key], "B") if found[key] else "",
        ]
        for name, key in bytes_
    ]
    compression = "" if found["compression"] == "none" else f", {found['compression']}"
    print_table(f"{file}: {found['kind']} log{compression}", ("", "value", ""), rows)
    matrix = found["matrix"]
    if matrix and len(matrix["places"]) <= MATRIX_SHOWN:
        click.echo()
        title = "shuffle from (row) to (column)"
        short = [f"{i}" for i in range(len(matrix["places"]))]
        rows = [
            [f"{i}  {place}", *(quantity(b, "B") for b in row)]
            for i, (place, row) in enumerate(zip(matrix["places"], matrix["bytes"], strict=True))
        ]
        print_table(title, ("", *short), rows, caption=matrix["basis"])
    for warning in found["warnings"]:
        where = f"line {warning['line']}: " if warning["line"] else ""
        click.echo(f"joulepath: {file}: {where}{warning['what']}", err=True)
