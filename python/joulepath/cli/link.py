"""`joulepath link`: one link under an Energy Efficient Ethernet policy."""

from typing import Any

import click

from joulepath._core import phy_names
from joulepath.cli.output import count, digits, percent, print_json, print_table, quantity
from joulepath.link import link as run_link


@click.command(
    epilog="Examples: joulepath link --phy 10GBASE-T --policy coalesce:12us/10 --load 0.2 · "
    "joulepath link --trace capture.pcap --policy eee:50us --departures out.txt"
)
@click.option("--phy", type=click.Choice(phy_names()), default="1000BASE-T", show_default=True, help="Physical layer.")
@click.option(
    "--policy",
    default="eee",
    show_default=True,
    help="legacy, ideal, eee[:STALL], coalesce:TIMER/TRIGGER (coalesce:12us/10).",
)
@click.option(
    "--arrivals",
    type=click.Choice(("poisson", "pareto")),
    default="poisson",
    show_default=True,
    help="Random arrivals.",
)
@click.option("--load", type=float, default=0.1, show_default=True, help="Offered share of line rate, in wire bytes.")
@click.option("--frame", default="1500 B", show_default=True, help="Length of each frame.")
@click.option("--overhead", help="Wire bytes beyond the frame.  [default: 38 B; 24 B for Ethernet captures]")
@click.option("--frames", type=int, default=1_000_000, show_default=True, help="How many frames.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, help="Seed of the arrivals.")
@click.option("--trace", type=click.Path(), help='Arrivals from a file instead: pcap, pcapng, or lines of "seconds bytes".')
@click.option("--departures", type=click.Path(dir_okay=False), help='Write "arrival_s bytes departure_s" of every frame.')
@click.option(
    "--lpi",
    type=click.Choice(("independent", "both")),
    default="independent",
    show_default=True,
    help="Whether the two directions sleep one by one or together.",
)
@click.option("--lpi-power", type=float, default=0.1, show_default=True, help="Power in low-power idle as a share of full power.")
@click.option(
    "--method",
    type=click.Choice(("simulate", "analytic")),
    default="simulate",
    show_default=True,
    help="Packet by packet, or the exact closed form.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def link(as_json: bool, **flags: Any) -> None:
    """Simulate one link: what a policy saves, and how long frames wait.

    Frames arrive at random or from a packet trace. The rules are exact (see docs/models/eee.md); with Poisson arrivals
    `--method analytic` gives the closed form instead.
    """
    result = run_link(**flags)
    if as_json:
        print_json(result)
        return
    basis = "simulated" if result["method"] == "simulate" else "exact means"
    title = f"{result['phy']} · {result['policy']} · load {percent(result['load_ratio'])} · {basis} over {count(result['frames'])} frames"
    rows = [
        ["energy against legacy", percent(result["energy_ratio"]), ""],
        [
            "energy",
            quantity(result["energy_j"], "J"),
            f"{result['evidence']}: {quantity(result['power_w'], 'W')} port, {percent(result['lpi_power_ratio'])} of it in low-power idle",
        ],
        ["wait, mean", quantity(result["wait_s_mean"], "s"), "from arrival to start of transmission"],
        ["wait, median", quantity(result["wait_s_p50"], "s"), ""],
        ["wait, 99 of 100", quantity(result["wait_s_p99"], "s"), ""],
        ["sleeps", f"{count(round(result['sleeps_per_s']))} /s", ""],
        ["frames per burst", digits(result["frames_per_burst_mean"]) if result["frames_per_burst_mean"] else "n/a", ""],
    ]
    for state, seconds in result["time_s"].items():
        rows.append([f"time {state}", percent(seconds / result["duration_s"]), quantity(seconds, "s")])
    print_table(title, ("", "value", ""), rows)
    for warning in result["warnings"]:
        click.echo(f"joulepath: {warning}", err=True)
