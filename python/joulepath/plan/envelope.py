"""The envelope of a plan: model, title, seed, grid and figures. What is inside belongs to the model.

The parameters of a model are defined once, in Rust; this module only expands the grid and passes every run's values on.
"""

import difflib
import itertools
import json
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from joulepath import _core
from joulepath._core import PlanError

MODELS = ("cluster",)
ENVELOPE = ("model", "title", "description", "source", "seed", "repeat", "grid", "zip", "figure", "recommend")
FIGURE = ("title", "x", "y", "series", "facet", "relative_to", "dashed", "where", "kind", "note")
FIGURE_KINDS = ("bar", "line", "dot")
MAX_RUNS = 10_000
# A list under "label.NAME" names the values that are zipped with it and changes nothing itself.
LABEL = "label."


class PlanFileError(ValueError):
    """A plan cannot be run; the message says where, what was found and what to do."""


@dataclass(frozen=True)
class Figure:
    """A chart of a plan's runs: `y` is a metric (dots for nesting) or a sum of some, `x`, `series` and `facet` are grid keys or label names.

    `relative_to`, `dashed` and `where` are `key=value`, several joined by ` & `. Each y is divided by that of the run which
    differs from its own in the keys of `relative_to` alone; runs that `dashed` selects become a line across; `where` keeps
    only some runs.
    """

    title: str
    y: str
    x: str = "label"
    series: str | None = None
    facet: str | None = None
    relative_to: str | None = None
    dashed: str | None = None
    where: str | None = None
    kind: str = "bar"
    note: str = ""


@dataclass(frozen=True)
class Dimension:
    """A dimension of the grid: keys that advance together, one list of values each."""

    keys: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Run:
    """One run of a plan: its label, its value in each dimension, and its resolved body."""

    label: str
    settings: dict[str, str]
    seed: int
    repetition: int
    body: dict[str, Any]

    @cached_property
    def resolved(self) -> dict[str, Any]:
        """The body with every default of the model filled in."""
        return json.loads(_core.resolve_cluster_plan(json.dumps(self.body)))

    @cached_property
    def queues(self) -> list[dict[str, Any]]:
        """The queue discipline of each class of switch ports: class, rate_bps, kind, min and max in `unit`, warning."""
        return json.loads(_core.cluster_plan_queues(json.dumps(self.body)))

    @property
    def warnings(self) -> list[str]:
        """What the body asks for that cannot happen, such as thresholds that a buffer never reaches."""
        found: dict[str, list[str]] = {}
        for queue in self.queues:
            if queue["warning"]:
                found.setdefault(queue["warning"].replace(f" at {queue['class']} ports ", " at {} ports "), []).append(queue["class"])
        return [text.format(" and ".join(classes)) for text, classes in found.items()]

    @property
    def log_path(self) -> str | None:
        """The log that the workload replays, if any."""
        return self.body.get("workload", {}).get("file")


@dataclass(frozen=True)
class Plan:
    """A plan file, checked and expanded."""

    path: Path
    title: str
    source: str
    description: str
    runs: tuple[Run, ...]
    figures: tuple[Figure, ...] = field(default=())
    overrides: dict[str, Any] = field(default_factory=dict)
    recommend: dict[str, Any] = field(default_factory=dict)
    verb: str = "simulate"

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem


def load_plan(source: str | Path | dict[str, Any], overrides: dict[str, Any] | None = None) -> Plan:
    """Read, check and expand a plan: a TOML file, or a dictionary with the same keys.

    Raises `PlanFileError` with one sentence: file, key, what was found, what was expected.
    """
    if isinstance(source, dict):
        path, table = Path("plan"), deepcopy(source)
    else:
        path = Path(source)
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            near = difflib.get_close_matches(path.name, [p.name for p in _siblings(path)], 1, 0.5)
            hint = f"; did you mean {path.parent / near[0]}?" if near else ""
            raise PlanFileError(f"{path}: no such plan; expected a TOML file{hint}") from None
        except IsADirectoryError:
            raise PlanFileError(f"{path}: found a directory; expected a TOML file in it") from None
        except UnicodeDecodeError as error:
            raise PlanFileError(f"{path}: found bytes that are not UTF-8 at offset {error.start}; expected TOML") from None
        except tomllib.TOMLDecodeError as error:
            raise PlanFileError(f"{path}: not valid TOML: {error}") from None
        except OSError as error:
            raise PlanFileError(f"{path}: cannot be read: {error.strerror}") from None
    for key, value in (overrides or {}).items():
        _set(table, key, value, path)
    return _expand(path, table, overrides or {})


def _siblings(path: Path) -> Iterator[Path]:
    return path.parent.glob("*.toml") if path.parent.is_dir() else iter(())


def _fail(path: Path, key: str, found: str, expected: str) -> PlanFileError:
    return PlanFileError(f"{path}: {key}: found {found}; expected {expected}")


def _integer(path: Path, table: dict[str, Any], key: str, default: int, low: int, high: int) -> int:
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _fail(path, key, repr(value), f"a whole number from {low} to {high}")
    return value


def _text(path: Path, table: dict[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise _fail(path, key, repr(value), "a text")
    return " ".join(value.split())


def _expand(path: Path, table: dict[str, Any], overrides: dict[str, Any]) -> Plan:
    model = table.get("model", "cluster")
    if model not in MODELS:
        raise _fail(path, "model", repr(model), f"one of {', '.join(MODELS)}")
    base = {key: value for key, value in table.items() if key not in ENVELOPE}
    seed = _integer(path, table, "seed", 1, 0, 2**63 - 1)
    repeat = _integer(path, table, "repeat", 1, 1, 1000)
    dimensions = _dimensions(path, table)
    count = repeat
    for dimension in dimensions:
        count *= len(dimension.values)
    if count > MAX_RUNS:
        raise _fail(path, "grid", f"{count} runs", f"at most {MAX_RUNS}")
    runs = []
    for choice in itertools.product(*(d.values for d in dimensions)):
        body, settings, run_seed = deepcopy(base), {}, seed
        for dimension, values in zip(dimensions, choice, strict=True):
            for key, value in zip(dimension.keys, values, strict=True):
                if key.startswith(LABEL):
                    settings[key.removeprefix(LABEL)] = _label_of(value)
                    continue
                if not any(k.startswith(LABEL) for k in dimension.keys):
                    settings[key] = _label_of(value)
                if key == "seed":
                    run_seed = _integer(path, {"grid.seed": value}, "grid.seed", 1, 0, 2**63 - 1)
                else:
                    _set(body, key, _without_label(value), path)
        label = " · ".join(settings.values()) or path.stem
        _relative_files(path, body)
        for repetition in range(repeat):
            name = f"{label} · repetition {repetition + 1}" if repeat > 1 else label
            runs.append(Run(name, settings | ({"repeat": str(repetition + 1)} if repeat > 1 else {}), run_seed, repetition, body))
    for run in runs:
        _check(path, run)
    if len({run.label for run in runs}) < len(runs):
        raise _fail(path, "grid", "two runs with the same label", "values, or labels, that differ")
    recommend = table.get("recommend", {})
    if not isinstance(recommend, dict):
        raise _fail(path, "recommend", repr(recommend), "a table with objective, limits and free settings")
    figures = tuple(_figure(path, i, f) for i, f in enumerate(table.get("figure", [])))
    title = _text(path, table, "title") or path.stem.replace("_", " ").replace("-", " ")
    return Plan(path, title, _text(path, table, "source"), _text(path, table, "description"), tuple(runs), figures, overrides, recommend)


def _check(path: Path, run: Run) -> None:
    try:
        _ = run.resolved
    except PlanError as error:
        key, sentence = error.args
        in_grid = [k for k in run.settings if key and (k == key or key.startswith(k + ".") or k.startswith(key + "."))]
        where = f" (in the grid, run {run.label!r})" if in_grid else ""
        top = key.split(".")[0].split("[")[0]
        if "unknown key" in sentence and top == key:
            near = difflib.get_close_matches(key, ENVELOPE, 1, 0.7)
            sentence = f"{sentence.split('; did you mean')[0]}; did you mean {near[0]!r}?" if near else sentence
        raise PlanFileError(f"{path}: {key or 'plan'}: {sentence}{where}") from None
    if run.log_path is not None and not Path(run.log_path).is_file():
        raise _fail(path, "workload.file", repr(run.log_path), "an existing file (relative to the plan)")


def _relative_files(path: Path, body: dict[str, Any]) -> None:
    workload = body.get("workload")
    if isinstance(workload, dict) and isinstance(workload.get("file"), str):
        workload["file"] = str((path.parent / workload["file"]).resolve())


def _dimensions(path: Path, table: dict[str, Any]) -> tuple[Dimension, ...]:
    dimensions = []
    grid = table.get("grid", {})
    if not isinstance(grid, dict):
        raise _fail(path, "grid", repr(grid), 'a table like {"eee.policy" = ["legacy", "eee"]}')
    for key, values in _flatten(grid):
        if not isinstance(values, list) or not values:
            raise _fail(path, f"grid.{key}", repr(values), "a list of at least one value")
        dimensions.append(Dimension((key,), tuple((value,) for value in values)))
    groups = table.get("zip", [])
    for i, group in enumerate([groups] if isinstance(groups, dict) else groups):
        lists = dict(_flatten(group)) if isinstance(group, dict) else {}
        if not lists or not all(isinstance(v, list) and v for v in lists.values()):
            raise _fail(path, f"zip[{i}]", repr(group), "a table of lists")
        if len({len(v) for v in lists.values()}) > 1:
            lengths = ", ".join(f"{k} has {len(v)}" for k, v in lists.items())
            raise _fail(path, f"zip[{i}]", f"lists of different lengths ({lengths})", "the same length for all")
        dimensions.append(Dimension(tuple(lists), tuple(zip(*lists.values(), strict=True))))
    return tuple(dimensions)


def _flatten(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _label_of(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("label") or ", ".join(f"{k} {_label_of(v)}" for k, v in value.items()))
    return value if isinstance(value, str) else json.dumps(value)


def _without_label(value: Any) -> Any:
    return {k: v for k, v in value.items() if k != "label"} if isinstance(value, dict) else value


def _set(table: dict[str, Any], key: str, value: Any, path: Path) -> None:
    """Set a dotted key; a table is merged into what is there, unless it says of which kind it is: then it replaces it."""
    *parents, last = key.split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise _fail(path, key, f"{parent!r}, which is not a table", "a key of the plan")
    if isinstance(value, dict) and isinstance(table.get(last), dict) and "kind" not in value:
        table[last] = {**table[last], **value}
    else:
        table[last] = value


def with_settings(body: dict[str, Any], settings: dict[str, Any], path: Path) -> dict[str, Any]:
    """A copy of a plan's body with other values; keys have dots, tables are merged as in a grid."""
    body = deepcopy(body)
    for key, value in settings.items():
        _set(body, key, deepcopy(value), path)
    return body


def _figure(path: Path, index: int, table: Any) -> Figure:
    where = f"figure[{index}]"
    if not isinstance(table, dict):
        raise _fail(path, where, repr(table), "a table with title, x and y")
    for key, value in table.items():
        if key not in FIGURE:
            near = difflib.get_close_matches(key, FIGURE, 1, 0.4)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise _fail(path, f"{where}.{key}", "an unknown key", f"one of {', '.join(FIGURE)}{hint}")
        if not isinstance(value, str):
            raise _fail(path, f"{where}.{key}", repr(value), "a text")
    for key in ("title", "y"):
        if key not in table:
            raise _fail(path, f"{where}.{key}", "nothing", "this key")
    if table.get("kind", "bar") not in FIGURE_KINDS:
        raise _fail(path, f"{where}.kind", repr(table["kind"]), f"one of {', '.join(FIGURE_KINDS)}")
    return Figure(**table)
