"""Successive halving: many candidates on a quarter of the job, some on half of it, a few on all of it with several seeds.

Optuna's TPE proposes candidates from those seen so far; every run is recorded, so a stopped search goes on where it was, and
the same plan gives the same recommendation whatever the number of workers.
"""

import contextlib
import json
import math
import statistics
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from joulepath._core import PlanError, bytes_of, picoseconds_of
from joulepath.plan import Figure, Plan, PlanFileError, Run, load_plan, with_settings
from joulepath.recommend.apply import Applied, applied
from joulepath.recommend.goals import Limit, Objective, word_of
from joulepath.recommend.space import Space
from joulepath.record import Record, read_metric
from joulepath.record.record import write_whole
from joulepath.sweep import simulate

KEYS = ("objective", "limits", "free", "baseline", "known", "candidates", "finalists", "seeds")
# Shares of the job in the three rounds, and how many go on from one to the next.
ROUNDS = ((0.25, "quarter of the job"), (0.5, "half of the job"), (1.0, "whole job"))
KEEP = 4
BATCH = 8
# Finalists whose objectives differ by less than this are alike: the one farthest inside its limits is chosen.
ALIKE = 0.01
# Two-sided 95 % quantiles of Student's t by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}

Stage = Callable[[str, int], AbstractContextManager[Callable[[str, float, int], None]]]


class InfeasibleError(ValueError):
    """No setting keeps every limit; the message names the limit and the nearest setting."""


@dataclass(frozen=True)
class Candidate:
    """Values of the free settings."""

    settings: dict[str, Any]

    @property
    def label(self) -> str:
        """The values in words; what equals the baseline is not in it."""
        return " · ".join(f"{k} {_words(v)}" for k, v in self.settings.items()) or "baseline"


@dataclass
class Finalist:
    """A candidate on the whole job: ratios to the baseline for each seed, and means of metrics."""

    name: str
    candidate: Candidate
    objective: list[float]
    metrics: dict[str, float]
    excess: dict[str, list[float]]
    first: dict[str, float]

    @property
    def holds(self) -> bool:
        """Whether every limit holds on the mean over seeds."""
        return all(statistics.fmean(e) <= 0 for e in self.excess.values())

    @property
    def margin(self) -> float:
        """The mean excess over the limit that is nearest; negative inside."""
        return max((statistics.fmean(e) for e in self.excess.values()), default=0.0)

    def as_dict(self) -> dict[str, Any]:
        """JSON with the names of the reference."""
        return {
            "name": self.name,
            "settings": self.candidate.settings,
            "objective_ratio": statistics.fmean(self.objective),
            "objective_ratio_interval95": _interval(self.objective),
            "holds": self.holds,
            "limit_excess_ratio": {k: statistics.fmean(v) for k, v in self.excess.items()},
            "limit_excess_ratio_interval95": {k: _interval(v) for k, v in self.excess.items()},
            "metrics": self.metrics,
        }


@dataclass
class Recommendation:
    """What was found."""

    plan: Plan
    record: Record
    objective: Objective
    limits: tuple[Limit, ...]
    baseline: dict[str, float]
    finalists: list[Finalist]
    choice: Finalist
    pareto: list[str]
    sensitivity: list[dict[str, Any]]
    searched: list[dict[str, Any]]
    applied: Applied
    runs: int
    refused: int
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """JSON with the names of the reference."""
        return {
            "title": self.plan.title,
            "record": str(self.record.folder),
            "evidence": "simulated",
            "objective": self.objective.text,
            "limits": [
                {
                    "limit": limit.text,
                    "metric": limit.metric,
                    "allowed": limit.allowed(self.baseline),
                    "value": self.choice.metrics[limit.metric],
                    "excess_ratio": statistics.fmean(self.choice.excess[limit.text]),
                    "excess_ratio_interval95": _interval(self.choice.excess[limit.text]),
                }
                for limit in self.limits
            ],
            "baseline": self.baseline,
            "choice": self.choice.as_dict(),
            "finalists": [f.as_dict() for f in self.finalists],
            "pareto": self.pareto,
            "sensitivity": self.sensitivity,
            "searched": self.searched,
            "runs": self.runs,
            "seeds": len(self.choice.objective),
            "refused_candidates": self.refused,
            "notes": self.notes,
            **self.applied.as_dict(),
        }


def recommend(
    source: str | Path | dict[str, Any],
    out: str | Path | None = None,
    *,
    jobs: int | None = None,
    overrides: dict[str, Any] | None = None,
    stage: Stage | None = None,
    stop: threading.Event | None = None,
) -> Recommendation:
    """Search the free settings of a plan's `[recommend]` table and return the best that keeps its limits.

    `out` is the folder of the record (default `records/<plan>.recommend`). `stage(name, runs)` opens a progress display.

    Raises `PlanFileError` for a bad plan, `InfeasibleError` when no setting keeps the limits, and `Stopped` after Ctrl-C.
    """
    search = _Search(load_plan(source, overrides), out, jobs, stage or _silent, stop)
    return search.run()


@contextlib.contextmanager
def _silent(name: str, runs: int):
    yield lambda label, share, hops: None


class _Search:
    def __init__(self, plan: Plan, out: str | Path | None, jobs: int | None, stage: Stage, stop: threading.Event | None) -> None:
        self.plan = plan
        fail = self.fail
        table = plan.recommend
        if not table:
            raise fail("recommend", "nothing", "a table with objective, limits and free settings (docs/howto/recommend.md)")
        for key in table:
            if key not in KEYS:
                raise fail(f"recommend.{key}", "an unknown key", f"one of {', '.join(KEYS)}")
        if len({json.dumps(run.body, sort_keys=True) for run in plan.runs}) > 1:
            raise fail(
                "grid",
                f"{len(plan.runs)} runs",
                "one set of values in a plan for recommend: recommend.free takes the place of grid and zip",
            )
        self.candidates = self._whole("candidates", 64, 4, 10_000)
        self.finalist_count = self._whole("finalists", 4, 1, 100)
        self.seeds = self._whole("seeds", 3, 2, 100)
        self.objective = Objective.parse(table.get("objective", "energy"), fail)
        limits = table.get("limits", [])
        if not isinstance(limits, list):
            raise fail("recommend.limits", repr(limits), 'a list of texts like "runtime <= +2 %"')
        self.limits = tuple(Limit.parse(text, i, fail) for i, text in enumerate(limits))
        free, baseline = table.get("free", {}), table.get("baseline", {})
        known = table.get("known", {})
        for name, value in (("free", free), ("baseline", baseline), ("known", known)):
            if not isinstance(value, dict):
                raise fail(f"recommend.{name}", repr(value), "a table of keys of the plan and values")
        self.space = Space(free, fail)
        self.body = with_settings(plan.runs[0].body, baseline, plan.path)
        self.names = list(dict.fromkeys([n for n, _ in self.objective.weights] + [limit.metric for limit in self.limits]))
        if any(n.startswith("probes.") for n in self.names) and not self.body.get("probes"):
            raise fail("probes", "nothing", "a table of probes, whose latency the objective or a limit names")
        self.seed = plan.runs[0].seed
        self.folder = Path(out) if out else Path("records") / f"{plan.name}.recommend"
        self.jobs, self.stage, self.stop = jobs, stage, stop or threading.Event()
        # The runs of the two records so far, by label: of the search, and of the whole jobs.
        self.runs: dict[str, dict[str, Run]] = {"search": {}, ".": {}}
        self.refused, self.last_refusal = 0, ""
        self.searched: list[dict[str, Any]] = []
        self.check(Candidate({}), "recommend.baseline")
        # Settings that somebody has already: they run on the whole job beside the finalists.
        self.known: dict[str, Candidate] = {}
        for name, settings in known.items():
            if not isinstance(settings, dict) or name == "baseline" or name.startswith("finalist "):
                raise fail(f"recommend.known.{name}", repr(settings), "a table of keys of the plan and values, under a name of its own")
            self.known[name] = Candidate(settings)
            self.check(self.known[name], f"recommend.known.{name}")

    def fail(self, key: str, found: str, expected: str) -> PlanFileError:
        return PlanFileError(f"{self.plan.path}: {key}: found {found}; expected {expected}")

    def _whole(self, key: str, default: int, low: int, high: int) -> int:
        value = self.plan.recommend.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.fail(f"recommend.{key}", repr(value), f"a whole number from {low} to {high}")
        return value

    def check(self, candidate: Candidate, where: str) -> None:
        """Raise what the core has against a candidate."""
        try:
            _ = self.run_of(candidate, 1.0, 0).resolved
        except PlanError as error:
            raise PlanFileError(f"{self.plan.path}: {': '.join(str(a) for a in error.args if a)} (in {where})") from None

    def run_of(self, candidate: Candidate, share: float, repetition: int, name: str = "") -> Run:
        body = _shortened(with_settings(self.body, candidate.settings, self.plan.path), share)
        part = f"{share:g} of the job" if share < 1 else f"seed {repetition + 1}"
        settings = {"setting": name or candidate.label, "share": f"{share:g}", "repeat": str(repetition + 1)}
        return Run(f"{name or candidate.label} · {part}", settings, self.seed, repetition, body)

    def simulate(self, runs: list[Run], stage: str, record: str = "search") -> list[dict[str, float]]:
        """What matters of runs, in order. Each is kept in a record, the search's own by default, and is run only once."""
        known = self.runs[record]
        new = {run.label: run for run in runs if run.label not in known}
        known |= new
        plan = replace(self.plan, runs=tuple(known.values()), figures=(), verb="recommend")
        with self.stage(stage, len(new)) as tell:
            quiet = lambda label, share, hops: tell(label, share, hops) if label in new else None  # noqa: E731
            made = simulate(plan, self.folder / record, jobs=self.jobs, progress=quiet, stop=self.stop)
        metrics = {run.label: run.metrics for run in made.runs}
        return [self.values(metrics[run.label]) for run in runs]

    def values(self, metrics: dict[str, Any]) -> dict[str, float]:
        out = {}
        for name in self.names:
            value = read_metric(metrics, name)
            if value is None:
                raise self.fail("recommend", f"no {name} in a run", "a metric that the workload has")
            out[name] = value
        return out

    def score(self, values: dict[str, float], baseline: dict[str, float]) -> tuple[float, float, dict[str, float]]:
        """Total excess over limits, objective, and the excess of each limit."""
        for name, _ in self.objective.weights:
            if baseline[name] == 0:
                raise self.fail("recommend.objective", f"{name}, which is 0 in the baseline", "something that can become less")
        excess = {limit.text: limit.excess(values, baseline) for limit in self.limits}
        return sum(max(0.0, e) for e in excess.values()), self.objective.of(values, baseline), excess

    def run(self) -> Recommendation:
        first = self.propose()
        ranked = self.next_round(first, 1)
        return self.confirm(ranked)

    def propose(self) -> list[tuple[tuple[float, float], Candidate]]:
        """The first round: Optuna proposes, in batches of fixed size so that the number of workers changes nothing."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import optuna

            optuna.logging.set_verbosity(optuna.logging.ERROR)
            sampler = optuna.samplers.TPESampler(
                seed=self.seed % 2**32,
                multivariate=True,
                group=True,
                constant_liar=True,
                n_startup_trials=max(BATCH, self.candidates // 4),
                constraints_func=lambda trial: trial.user_attrs.get("excess", [0.0]),
            )
            study = optuna.create_study(sampler=sampler)
            share, stage = ROUNDS[0]
            seen: dict[str, tuple[float, float]] = {}
            found: list[tuple[tuple[float, float], Candidate]] = []
            for start in range(0, self.candidates, BATCH):
                asked = []
                for _ in range(min(BATCH, self.candidates - start)):
                    trial = study.ask()
                    candidate = Candidate(self.space.sample(trial))
                    try:
                        self.check(candidate, "recommend.free")
                        asked.append((trial, candidate))
                    except PlanFileError as error:
                        self.refused += 1
                        self.last_refusal = str(error)
                        study.tell(trial, state=optuna.trial.TrialState.FAIL)
                new = list({c.label: c for _, c in asked if c.label not in seen}.values())
                runs = [self.run_of(c, share, 0) for c in (Candidate({}), *new)]
                base, *others = self.simulate(runs, f"{stage}, {start + 1} to {start + BATCH} of {self.candidates}")
                for candidate, values in zip(new, others, strict=True):
                    over, objective, _ = self.score(values, base)
                    seen[candidate.label] = (over, objective)
                    found.append(((over, objective), candidate))
                    self.searched.append(
                        {
                            "settings": candidate.settings,
                            "excess_ratio": over,
                            "objective_ratio": objective,
                            "metrics_ratio": _ratios(values, base),
                        }
                    )
                for trial, candidate in asked:
                    over, objective = seen[candidate.label]
                    trial.set_user_attr("excess", [over])
                    study.tell(trial, objective)
        if not found:
            raise PlanFileError(f"{self.last_refusal}; every candidate of the first round was refused for this or the like")
        return found

    def next_round(self, found: list[tuple[tuple[float, float], Candidate]], index: int) -> list[Candidate]:
        """The best of a round again, on more of the job; returns them in the order of that."""
        share, stage = ROUNDS[index]
        keep = max(2 * self.finalist_count, math.ceil(len(found) / KEEP))
        best = [c for _, c in sorted(found, key=lambda f: f[0])[:keep]]
        base, *others = self.simulate([self.run_of(c, share, 0) for c in (Candidate({}), *best)], stage)
        scored = [(self.score(values, base)[:2], candidate) for candidate, values in zip(best, others, strict=True)]
        return [c for _, c in sorted(scored, key=lambda s: s[0])]

    def confirm(self, ranked: list[Candidate]) -> Recommendation:
        """The last round; when none of the first finalists keeps the limits, the next ones get their turn."""
        seeds = range(self.seeds)
        whole = ROUNDS[2][0]
        base = self.simulate([self.run_of(Candidate({}), whole, s, "baseline") for s in seeds], "baseline", ".")
        finalists = self.whole_job(list(self.known.items()), base, "known settings")
        tried = 0
        while ranked and (not tried or not any(f.holds for f in finalists)):
            group, ranked = ranked[: self.finalist_count], ranked[self.finalist_count :]
            named = [(f"finalist {tried + i + 1}", c) for i, c in enumerate(group)]
            finalists += self.whole_job(named, base, ROUNDS[2][1])
            tried += len(group)
        baseline = Finalist(
            "baseline",
            Candidate({}),
            [1.0] * self.seeds,
            _means(base),
            {limit.text: [limit.excess(b, b) for b in base] for limit in self.limits},
            base[0],
        )
        feasible = [f for f in [*finalists, baseline] if f.holds]
        if not feasible:
            raise self.infeasible([*finalists, baseline])
        best = min(statistics.fmean(f.objective) for f in feasible)
        alike = [f for f in feasible if statistics.fmean(f.objective) <= (1 + ALIKE) * best]
        choice = min(alike, key=lambda f: (f.margin, statistics.fmean(f.objective)))
        everyone = [baseline, *sorted(finalists, key=lambda f: (not f.holds, statistics.fmean(f.objective)))]
        sensitivity = self.sensitivity(choice, base[0]) if choice is not baseline else []
        record = self.final_record(everyone)
        body = self.run_of(choice.candidate, whole, 0)
        found = Recommendation(
            plan=self.plan,
            record=record,
            objective=self.objective,
            limits=self.limits,
            baseline=baseline.metrics,
            finalists=everyone,
            choice=choice,
            pareto=self.pareto(everyone),
            sensitivity=sensitivity,
            searched=self.searched,
            applied=applied(self.run_of(Candidate({}), whole, 0), body),
            runs=sum(map(len, self.runs.values())),
            refused=self.refused,
            notes=self.notes(choice),
        )
        self.store(found)
        return found

    def whole_job(self, named: list[tuple[str, Candidate]], base: list[dict[str, float]], stage: str) -> list[Finalist]:
        """Candidates on the whole job with every seed, against the baseline's run of the same seed."""
        seeds = range(self.seeds)
        values = self.simulate([self.run_of(c, 1.0, s, name) for name, c in named for s in seeds], f"{stage}, {self.seeds} seeds", ".")
        out = []
        for i, (name, candidate) in enumerate(named):
            own = values[i * self.seeds : (i + 1) * self.seeds]
            scores = [self.score(v, b) for v, b in zip(own, base, strict=True)]
            excess = {limit.text: [s[2][limit.text] for s in scores] for limit in self.limits}
            out.append(Finalist(name, candidate, [s[1] for s in scores], _means(own), excess, own[0]))
        return out

    def infeasible(self, finalists: list[Finalist]) -> InfeasibleError:
        """Which limit cannot be kept, and by how much the nearest setting misses it."""
        over = lambda f: sum(max(0.0, statistics.fmean(e)) for e in f.excess.values())  # noqa: E731
        nearest = min(finalists, key=over)
        worst = max(self.limits, key=lambda limit: statistics.fmean(nearest.excess[limit.text]))
        value, excess = nearest.metrics[worst.metric], statistics.fmean(nearest.excess[worst.text])
        return InfeasibleError(
            f"{self.plan.path}: recommend.limits: found no setting that keeps every limit; the nearest ({nearest.candidate.label}) breaks"
            f" {worst.text!r}: {worst.metric} = {value:.4g}, {excess:.1%} beyond it; loosen this limit or free more settings"
        )

    def notes(self, choice: Finalist) -> list[str]:
        notes = []
        if self.refused:
            notes.append(f"{self.refused} of {self.candidates} candidates are no plan, the last for this reason: {self.last_refusal}")
        low, high = _interval(choice.objective)
        if choice.name != "baseline" and low < 1 < high:
            notes.append("The gain is not certain: with these seeds the interval of the objective includes the baseline.")
        for limit in self.limits:
            if _interval(choice.excess[limit.text])[1] > 0:
                notes.append(f"The limit {limit.text!r} holds on the mean, but its interval reaches beyond.")
        notes += [f"Warning: {w}." for w in self.run_of(choice.candidate, 1.0, 0).warnings]
        if choice.name == "baseline":
            notes.append("No finalist is better than the baseline within the limits.")
        return notes

    def pareto(self, finalists: list[Finalist]) -> list[str]:
        """Names of the finalists that no other one beats in the objective and every limited metric at once."""

        def point(f: Finalist) -> list[float]:
            signs = [f.metrics[limit.metric] * (1 if limit.upper else -1) for limit in self.limits]
            return [statistics.fmean(f.objective), *signs]

        points = {f.name: point(f) for f in finalists}
        beaten = lambda a: any(b != a and all(x <= y for x, y in zip(b, a, strict=True)) for b in points.values())  # noqa: E731
        return [name for name, p in points.items() if not beaten(p)]

    def sensitivity(self, choice: Finalist, base: dict[str, float]) -> list[dict[str, Any]]:
        """Each free setting moved to its neighbours, the rest as chosen: one seed on the whole job, against the choice's."""
        moves = []
        for key, value in choice.candidate.settings.items():
            for other in self.space.neighbours(key, value):
                candidate = Candidate({**choice.candidate.settings, key: other})
                with contextlib.suppress(PlanFileError):
                    self.check(candidate, key)
                    moves.append((key, other, candidate))
        others = self.simulate([self.run_of(c, 1.0, 0) for _, _, c in moves], "sensitivity") if moves else []
        chosen = self.objective.of(choice.first, base)
        rows = []
        for (key, other, _), values in zip(moves, others, strict=True):
            broken = [limit.text for limit in self.limits if limit.excess(values, base) > 0]
            rows.append(
                {"key": key, "value": other, "objective_change_ratio": self.objective.of(values, base) / chosen - 1, "breaks": broken}
            )
        return sorted(rows, key=lambda r: -abs(r["objective_change_ratio"]))

    def final_record(self, finalists: list[Finalist]) -> Record:
        """A record of the baseline and the finalists, which reports like any other."""
        runs = [self.run_of(f.candidate, 1.0, s, f.name) for f in finalists for s in range(self.seeds)]
        figures = [
            Figure(f"{word_of(name).capitalize()}, relative to the baseline", name, "setting", kind="bar", relative_to="setting=baseline")
            for name in self.names
            if not name.startswith("probes.")
        ]
        figures += [Figure(word_of(name).capitalize(), name, "setting", kind="bar") for name in self.names if name.startswith("probes.")]
        plan = replace(
            self.plan,
            title=f"Recommended settings: {self.plan.title}",
            description=f"Objective: {self.objective.text}. Limits: {', '.join(limit.text for limit in self.limits) or 'none'}. {self.plan.description}",
            runs=tuple(runs),
            figures=tuple(figures),
            verb="recommend",
        )
        return simulate(plan, self.folder, jobs=self.jobs, stop=self.stop)

    def store(self, found: Recommendation) -> None:
        """Beside the record: the whole recommendation as JSON, and the commands as text."""
        text = json.dumps(found.as_dict(), ensure_ascii=False, indent=1)
        write_whole(self.folder / "recommendation.json", text + "\n")
        write_whole(self.folder / "settings.txt", found.applied.as_text())


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(_words(v) if k == "kind" else f"{k} {_words(v)}" for k, v in value.items()) or "as it is"
    return value if isinstance(value, str) else json.dumps(value)


def _means(values: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.fmean(v[name] for v in values) for name in values[0]}


def _ratios(values: dict[str, float], base: dict[str, float]) -> dict[str, float | None]:
    return {name: value / base[name] if base[name] else None for name, value in values.items()}


def _interval(values: list[float]) -> tuple[float, float]:
    """95 % confidence interval of the mean over seeds (Student's t)."""
    mean, n = statistics.fmean(values), len(values)
    half = STUDENT.get(n - 1, 1.96) * statistics.stdev(values) / math.sqrt(n) if n > 1 else math.inf
    return mean - half, mean + half


def _scaled(text: str, share: float) -> str:
    """A share of a size or of a time, in whole bytes or picoseconds and at least one."""
    try:
        return f"{max(1, round(bytes_of(text) * share))} B"
    except PlanError:
        return f"{max(1, round(picoseconds_of(text) * share))} ps"


def _shortened(body: dict[str, Any], share: float) -> dict[str, Any]:
    """The same plan with less work: fewer maps with as much each, fewer jobs, less time. Flows keep their sizes."""
    if share == 1:
        return body
    body = deepcopy(body)
    work = body.get("workload", {})
    fewer = lambda n, least: max(least, math.ceil(n * share))  # noqa: E731
    match work.get("kind"):
        case "jobs":
            for job in work["jobs"]:
                maps = fewer(job["maps"], 1)
                job["input"] = _scaled(job["input"], maps / job["maps"])
                job["maps"] = maps
        case "mix":
            work["jobs"] = fewer(work["jobs"], 2)
        case "log":
            work["scale"] = work.get("scale", 1.0) * share
            work["compute"] = work.get("compute", 1.0) * share
        case "shuffle":
            work["bytes"] = _scaled(work["bytes"], share)
        case "idle":
            work["duration"] = _scaled(work["duration"], share)
    return body
