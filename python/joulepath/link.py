"""One link under an Energy Efficient Ethernet policy."""

import json
import math
from pathlib import Path
from typing import Any

from joulepath import _core


def link(
    *,
    phy: str = "1000BASE-T",
    policy: str = "eee",
    arrivals: str = "poisson",
    load: float = 0.1,
    frame: str = "1500 B",
    overhead: str | None = None,
    frames: int = 1_000_000,
    seed: int = 1,
    trace: str | Path | None = None,
    departures: str | Path | None = None,
    lpi: str = "independent",
    lpi_power: float = 0.1,
    method: str = "simulate",
) -> dict[str, Any]:
    """Simulate (or solve exactly) one link and return its energy, waits and time in each state.

    Rules of the policies: seed 000, sections II and III; IEEE 802.3az. Keys carry their units; `None` is n/a.

    Raises `PlanError` for impossible values, `TraceFileError` for a damaged trace, `OSError` for files.

    >>> run = link(phy="10GBASE-T", policy="coalesce:12us/10", load=0.2, overhead="0 B", frames=200_000)
    >>> exact = link(phy="10GBASE-T", policy="coalesce:12us/10", load=0.2, overhead="0 B", method="analytic")
    >>> abs(run["energy_ratio"] / exact["energy_ratio"] - 1) < 0.01
    True
    """
    for flag, value in (("--load", load), ("--lpi-power", lpi_power)):
        if not math.isfinite(value):
            raise _core.PlanError(flag, f"found {value}; expected a number from 0 to 1")
    request = {
        "phy": phy,
        "policy": policy,
        "arrivals": arrivals,
        "load": load,
        "frame": frame,
        "overhead": overhead,
        "frames": frames,
        "seed": seed,
        "trace": None if trace is None else str(trace),
        "departures": None if departures is None else str(departures),
        "lpi": lpi,
        "lpi_power": lpi_power,
        "method": method,
    }
    return json.loads(_core.run_link(json.dumps(request)))
