"""Joulepath shows where the joules go when data centres move, store and shrink big data.

>>> import joulepath
>>> result = joulepath.link(phy="10GBASE-T", policy="eee", load=0.1, method="analytic", overhead="0 B", frame="1500 B")
>>> round(result["energy_ratio"], 2)
0.54
"""

from joulepath._core import PlanError, TraceFileError, __version__
from joulepath.link import link
from joulepath.recommend import Recommendation, recommend
from joulepath.record import Record
from joulepath.sweep import Stopped, simulate
from joulepath.workload import inspect_workload

__all__ = [
    "PlanError",
    "Recommendation",
    "Record",
    "Stopped",
    "TraceFileError",
    "__version__",
    "inspect_workload",
    "link",
    "recommend",
    "simulate",
]
