"""The free settings of a plan: any value given as a list of choices or as a range, also inside a choice."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Fail = Callable[[str, str, str], Exception]
RANGE = {"from", "to", "log"}
MOST_VALUES = 1000


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, whole or not, on a linear or a logarithmic scale, with a unit or none."""

    low: float
    high: float
    unit: str
    whole: bool
    log: bool

    def value(self, number: float) -> Any:
        """The value of a plan for a number: rounded to three digits, with the unit."""
        if self.whole:
            number = round(number)
        else:
            number = round(number, 2 - math.floor(math.log10(abs(number)))) if number else 0.0
            number = min(max(number, self.low), self.high)
        if not self.unit:
            return int(number) if self.whole else number
        return f"{number:.10g} {self.unit}"


@dataclass(frozen=True)
class Choice:
    """One of several values; tables among them may hold lists and ranges of their own."""

    options: tuple[Any, ...]


class Space:
    """The free settings by key."""

    def __init__(self, free: dict[str, Any], fail: Fail) -> None:
        self.settings: dict[str, Range | Choice] = {}
        for key, value in _keys(free):
            node = _node(key, value, fail)
            if not isinstance(node, Range | Choice):
                raise fail(f"recommend.free.{key}", repr(value), 'a list of choices, or a range like {from = "50 us", to = "2000 us"}')
            self.settings[key] = node
        if not self.settings:
            raise fail("recommend.free", "nothing", "at least one setting to choose, as a list or a range")

    def sample(self, trial: Any) -> dict[str, Any]:
        """A value for each key, asked of an Optuna trial."""
        return {key: _sample(key, node, trial) for key, node in self.settings.items()}

    def neighbours(self, key: str, value: Any) -> list[Any]:
        """Values next to `value` of a setting: the other choices, or a quarter less and a quarter more of a range."""
        return [v for v in _neighbours(self.settings[key], value) if v != value]


def _keys(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and not set(value) <= RANGE:
            yield from _keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _node(key: str, value: Any, fail: Fail) -> Any:
    if isinstance(value, list):
        if not value:
            raise fail(f"recommend.free.{key}", "an empty list", "at least one choice")
        return Choice(tuple(_node(f"{key}[{i}]", v, fail) for i, v in enumerate(value)))
    if isinstance(value, dict) and set(value) <= RANGE and value:
        return _range(key, value, fail)
    if isinstance(value, dict):
        return {k: _node(f"{key}.{k}", v, fail) for k, v in value.items()}
    return value


def _range(key: str, value: dict[str, Any], fail: Fail) -> Range:
    where = f"recommend.free.{key}"
    if not {"from", "to"} <= set(value):
        raise fail(where, repr(value), 'a range with both ends, like {from = "50 us", to = "2000 us"}')
    ends = []
    for end in ("from", "to"):
        match = re.fullmatch(r"\s*(-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([A-Za-z/%]*)\s*", str(value[end]))
        if isinstance(value[end], bool) or not match:
            raise fail(f"{where}.{end}", repr(value[end]), 'a number, or a number and a unit, like "50 us"')
        ends.append((float(match[1]), match[2], "." not in match[1] and "e" not in match[1]))
    (low, unit, whole_low), (high, other, whole_high) = ends
    if unit != other:
        raise fail(f"{where}.to", repr(value["to"]), f"the unit of the other end, {unit or 'none'}")
    if low >= high:
        raise fail(f"{where}.from", repr(value["from"]), f"less than the other end, {value['to']!r}")
    log = value.get("log", low > 0 and high / low >= 10)
    if not isinstance(log, bool) or (log and low <= 0):
        raise fail(f"{where}.log", repr(log), "true (with a positive range) or false")
    # Packets, frames and bare whole numbers are counted; quantities are measured.
    whole = whole_low and whole_high and unit in ("", "packets", "packet", "B")
    return Range(low, high, unit, whole, log)


def _sample(name: str, node: Any, trial: Any) -> Any:
    if isinstance(node, Range):
        if node.whole:
            return node.value(trial.suggest_int(name, int(node.low), int(node.high), log=node.log))
        return node.value(trial.suggest_float(name, node.low, node.high, log=node.log))
    if isinstance(node, Choice):
        index = trial.suggest_categorical(name, tuple(range(len(node.options)))) if len(node.options) > 1 else 0
        return _sample(f"{name}[{index}]", node.options[index], trial)
    if isinstance(node, dict):
        return {k: _sample(f"{name}.{k}", v, trial) for k, v in node.items()}
    return node


def _neighbours(node: Any, value: Any) -> Iterator[Any]:
    if isinstance(node, Range):
        number = float(re.match(r"-?[0-9.e+-]+", str(value))[0])
        for factor in (0.75, 1.25):
            moved = min(max(number * factor, node.low), node.high)
            yield node.value(moved)
    elif isinstance(node, Choice):
        for option in node.options:
            if isinstance(option, dict) and isinstance(value, dict) and _fits(option, value):
                for key, inner in option.items():
                    for other in _neighbours(inner, value[key]):
                        yield {**value, key: other}
            elif not _has_range(option):
                yield option
    elif isinstance(node, dict) and isinstance(value, dict):
        for key, inner in node.items():
            for other in _neighbours(inner, value[key]):
                yield {**value, key: other}


def _fits(option: dict[str, Any], value: dict[str, Any]) -> bool:
    """Whether a value came from this option: same keys, same fixed values."""
    return set(option) == set(value) and all(isinstance(o, Range | Choice | dict) or o == value[k] for k, o in option.items())


def _has_range(node: Any) -> bool:
    return isinstance(node, Range | Choice) or (isinstance(node, dict) and any(_has_range(v) for v in node.values()))
