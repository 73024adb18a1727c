"""The rows behind a plan's figure: which runs give which point."""

import re
from typing import Any

from joulepath.record import Record


def metric(metrics: dict[str, Any], path: str) -> float | None:
    """A metric by its dotted name; `None` when the run does not have it."""
    value: Any = metrics
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, int | float) else None


def _setting(run: Any, key: str) -> str:
    return run.label if key == "label" else run.run["settings"].get(key, "n/a")


def figure_rows(record: Record, figure: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each run: x, y, series, facet; y divided by that of the `relative_to` run with the same other settings.

    `relative_to` is `key=value`. Repetitions are averaged, with the smallest and largest kept as `low` and `high`.
    """
    groups: dict[tuple[Any, ...], list[float]] = {}
    base: dict[tuple[Any, ...], list[float]] = {}
    key, _, reference = (figure.get("relative_to") or "").partition("=")
    for run in record.runs:
        y = metric(run.metrics, figure["y"])
        if y is None:
            continue
        settings = run.run["settings"]
        point = (_setting(run, figure["x"]), *(settings.get(figure.get(k) or "", "") for k in ("series", "facet")))
        rest = tuple(sorted((k, v) for k, v in settings.items() if k not in (key, "repeat", "seed")))
        if key and settings.get(key) == reference:
            base.setdefault(rest, []).append(y)
        groups.setdefault((*point, rest), []).append(y)
    merged: dict[tuple[str, str, str], list[float]] = {}
    for (x, series, facet, rest), values in groups.items():
        if key:
            reference_values = base.get(rest)
            if not reference_values:
                continue
            mean = sum(reference_values) / len(reference_values)
            values = [v / mean if mean else float("nan") for v in values]
        merged.setdefault((x, series, facet), []).extend(values)
    rows = []
    for (x, series, facet), values in merged.items():
        row: dict[str, Any] = {"x": _number(x), "y": sum(values) / len(values), "series": series, "facet": facet}
        if len(values) > 1:
            row |= {"low": min(values), "high": max(values)}
        rows.append(row)
    return rows


def _number(text: str) -> float | str:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text
