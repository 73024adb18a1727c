"""The rows behind a plan's figure: which runs give which point."""

import re
from typing import Any

from joulepath.record import Record, read_metric


def metric(metrics: dict[str, Any], path: str) -> float | None:
    """A metric by its dotted name, or a sum `a + b` of metrics; `None` when the run does not have it."""
    values = [read_metric(metrics, name.strip()) for name in path.split("+")]
    return None if None in values else sum(values)


def conditions(text: str) -> dict[str, str]:
    """`key=value & key=value` as a dictionary."""
    return dict(part.strip().partition("=")[::2] for part in text.split(" & ")) if text else {}


def _setting(run: Any, key: str) -> str:
    return run.label if key == "label" else run.run["settings"].get(key, "n/a")


def _rest(settings: dict[str, str], without: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((k, v) for k, v in settings.items() if k not in without and k not in ("repeat", "seed")))


def figure_rows(record: Record, figure: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each point: x, y, series, facet; y divided by that of the `relative_to` run with the same other settings.

    `relative_to` and `dashed` are `key=value`, several joined by ` & `. The runs that `dashed` selects are also drawn as
    a line across (rows with `dashed`). Repetitions are averaged, with the smallest and largest kept as `low` and `high`.
    """
    reference = conditions(figure.get("relative_to") or "")
    dashed = conditions(figure.get("dashed") or "")
    only = conditions(figure.get("where") or "")
    groups: dict[tuple[Any, ...], list[float]] = {}
    base: dict[tuple[Any, ...], list[float]] = {}
    for run in record.runs:
        y = metric(run.metrics, figure["y"])
        if y is None:
            continue
        settings = run.run["settings"]
        rest = _rest(settings, reference)
        if reference and all(settings.get(k) == v for k, v in reference.items()):
            base.setdefault(rest, []).append(y)
        point = (_setting(run, figure["x"]), *(settings.get(figure.get(k) or "", "") for k in ("series", "facet")))
        if dashed and all(settings.get(k) == v for k, v in dashed.items()):
            groups.setdefault((*point, True, rest), []).append(y)
        if all(settings.get(k) == v for k, v in only.items()):
            groups.setdefault((*point, False, rest), []).append(y)
    merged: dict[tuple[str, str, str, bool], list[float]] = {}
    for (x, series, facet, across, rest), values in groups.items():
        if reference:
            if rest not in base:
                continue
            mean = sum(base[rest]) / len(base[rest])
            values = [v / mean if mean else float("nan") for v in values]
        merged.setdefault((x, series, facet, across), []).extend(values)
    rows = []
    for (x, series, facet, across), values in merged.items():
        row: dict[str, Any] = {"x": _number(x), "y": sum(values) / len(values), "series": series, "facet": facet}
        if len(values) > 1:
            row |= {"low": min(values), "high": max(values)}
        rows.append(row | ({"dashed": True} if across else {}))
    return rows


def _number(text: str) -> float | str:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text
