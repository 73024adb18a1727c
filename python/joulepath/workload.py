"""Logs of real clusters: what was understood of them."""

import json
from pathlib import Path
from typing import Any

from joulepath import _core


def inspect_workload(path: str | Path) -> dict[str, Any]:
    """Read a SWIM, Spark or Hadoop log and return what was understood; `None` is what the log does not have.

    Raises `TraceFileError` for a file that is no such log or is damaged from the start, `OSError` when it cannot be opened.
    """
    return json.loads(_core.read_workload_log(str(path)).summary())
