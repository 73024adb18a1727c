"""What a recommendation aims at, and what it must keep: objective and limits relative to a baseline."""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Fail = Callable[[str, str, str], Exception]

# Words for metrics; any other metric goes by its name in metrics.json.
METRICS = {
    "energy": "energy_j.total",
    "runtime": "runtime_s",
    "job runtime": "job_runtime_s_mean",
    "energy-delay": "energy_delay_js",
    "latency": "latency_s_mean",
    "latency p99": "latency_s_p99",
    "latency p99.9": "latency_s_p999",
    "probe p50": "probes.latency_s_p50",
    "probe p99": "probes.latency_s_p99",
    "probe p99.9": "probes.latency_s_p999",
    "throughput": "throughput_bps_node_mean",
    "drops": "drops",
}
UNITS = {
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "J": 1.0, "kJ": 1e3, "MJ": 1e6, "mJ": 1e-3,
    "b/s": 1.0, "Mb/s": 1e6, "Gb/s": 1e9, "": 1.0,
}  # fmt: skip


def word_of(metric: str) -> str:
    """The word for a metric, or its name when there is none."""
    return next((word for word, name in METRICS.items() if name == metric), metric)


def unit_of(path: str) -> str:
    """The unit that a metric's name carries."""
    for unit in ("_bps", "_js", "_j", "_s"):
        if re.search(rf"{unit}([_.]|$)", path):
            return {"_bps": "b/s", "_js": "J·s", "_j": "J", "_s": "s"}[unit]
    return ""


def _metric(key: str, word: str, fail: Fail) -> str:
    """The metric's name in metrics.json: a word of the table, or a dotted name, which the first run will check."""
    name = METRICS.get(word, word)
    if name in METRICS.values() or ("." in name and " " not in name) or "_" in name:
        return name
    near = difflib.get_close_matches(word, METRICS, 1, 0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise fail(key, repr(word), f"one of {', '.join(METRICS)}, or the name of a metric{hint}")


@dataclass(frozen=True)
class Objective:
    """A weighted mean of ratios to the baseline; smaller is better."""

    text: str
    weights: tuple[tuple[str, float], ...]

    @staticmethod
    def parse(value: Any, fail: Fail) -> "Objective":
        """From a word, or a table of words and weights."""
        table = {value: 1} if isinstance(value, str) else value
        if not isinstance(table, dict) or not table:
            raise fail("recommend.objective", repr(value), f"one of {', '.join(METRICS)}, or a table of weights")
        weights = []
        for word, weight in table.items():
            if not isinstance(weight, int | float) or isinstance(weight, bool) or weight <= 0:
                raise fail(f"recommend.objective.{word}", repr(weight), "a positive weight")
            name = _metric("recommend.objective", word, fail)
            if name == METRICS["throughput"]:
                raise fail("recommend.objective", repr(word), "something to make small, such as runtime")
            weights.append((name, float(weight)))
        text = value if isinstance(value, str) else ", ".join(f"{w:g} x {k}" for k, w in value.items())
        return Objective(text, tuple(weights))

    def of(self, metrics: dict[str, float], baseline: dict[str, float]) -> float:
        """The objective relative to the baseline's."""
        total = sum(w for _, w in self.weights)
        return sum(w * metrics[name] / baseline[name] for name, w in self.weights) / total


@dataclass(frozen=True)
class Limit:
    """A bound on a metric, absolute or relative to the baseline."""

    text: str
    metric: str
    upper: bool
    bound: float
    relative: bool

    @staticmethod
    def parse(text: Any, index: int, fail: Fail) -> "Limit":
        """From a sentence like `runtime <= +2 %` or `probe p99 <= 1 ms`."""
        key = f"recommend.limits[{index}]"
        example = 'a text like "runtime <= +2 %" or "probe p99 <= 1 ms"'
        match = re.fullmatch(r"\s*(.+?)\s*(<=|>=)\s*([+-]?[0-9.]+)\s*(%|[A-Za-z/]*)\s*", text) if isinstance(text, str) else None
        if not match:
            raise fail(key, repr(text), example)
        word, sign, number, unit = match.groups()
        metric = _metric(key, word, fail)
        try:
            value = float(number)
        except ValueError:
            raise fail(key, repr(text), example) from None
        if unit == "%":
            return Limit(text.strip(), metric, sign == "<=", 1 + value / 100, True)
        if unit not in UNITS or (unit and unit_of(metric) not in unit):
            raise fail(key, repr(text), f"% of the baseline, or a number in {unit_of(metric) or 'no unit'}")
        return Limit(text.strip(), metric, sign == "<=", value * UNITS[unit], False)

    def allowed(self, baseline: dict[str, float]) -> float:
        """The bound in the metric's own unit."""
        return self.bound * baseline[self.metric] if self.relative else self.bound

    def excess(self, metrics: dict[str, float], baseline: dict[str, float]) -> float:
        """How far beyond the bound, as a share of it; negative within it."""
        allowed, value = self.allowed(baseline), metrics[self.metric]
        if allowed == 0:
            # Nothing is a share of nothing: all of it is too much.
            return float(value > 0) if self.upper else 0.0
        return (value / allowed - 1) if self.upper else (1 - value / allowed)
