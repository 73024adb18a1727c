"""Reading and writing run records."""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from joulepath._core import __version__, bytes_of
from joulepath.record.capture import pcapng

FORMAT = 2
BODY = ("run.json", "metrics.json", "ledger.json")


class RecordError(ValueError):
    """A folder is no record, or a damaged one."""


def digest_of(*parts: Any) -> str:
    """A short digest of JSON values: the same values give the same digest everywhere."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def run_folder_name(label: str, digest: str) -> str:
    """A folder name that people can read and that no two runs share."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-.")[:60]
    return f"{slug or 'run'}-{digest}"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def write_whole(path: Path, text: str) -> None:
    """Write a file that is either there completely or not at all."""
    partial = path.with_name(path.name + ".partial")
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@dataclass(frozen=True)
class RunRecord:
    """One run of a record."""

    folder: Path

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RecordError(f"{self.folder / name}: cannot be read ({error}); run the plan again") from None

    @cached_property
    def run(self) -> dict[str, Any]:
        """Label, settings, seed, version and resolved plan."""
        return self._read("run.json")

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """The metrics by name."""
        return self._read("metrics.json")

    @property
    def ledger(self) -> list[dict[str, Any]]:
        """One row for each account and state."""
        return self._read("ledger.json")

    @cached_property
    def observed(self) -> dict[str, Any] | None:
        """Queue lengths over time and packets of one connection; `None` when the plan did not ask for them."""
        return self._read("observed.json") if (self.folder / "observed.json").is_file() else None

    @cached_property
    def environment(self) -> dict[str, Any]:
        """What may differ from machine to machine: CPU seconds, wall seconds."""
        return self._read("environment.json")

    @property
    def label(self) -> str:
        """The label of the run."""
        return self.run["label"]

    @staticmethod
    def is_complete(folder: Path) -> bool:
        """Whether a folder holds a whole run (it is moved into place only when it does)."""
        return all((folder / name).is_file() for name in BODY)

    @staticmethod
    def write(folder: Path, run: dict[str, Any], result: dict[str, Any], environment: dict[str, Any]) -> "RunRecord":
        """Write a run beside its final place and move it there when it is complete."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder.parent))
        try:
            files = {
                "run.json": run,
                "metrics.json": result["metrics"],
                "ledger.json": result["ledger"],
                "environment.json": environment,
            }
            contents = {name: _dump(value).encode() for name, value in files.items()}
            if observed := result.get("observed"):
                contents["observed.json"] = _dump(observed).encode()
                if observed["connection"]:
                    plan = run["plan"]
                    contents["connection.pcapng"] = pcapng(
                        observed["connection"], bytes_of(plan["tcp"]["mss"]), bytes_of(plan["ports"]["overhead"])
                    )
            for name, content in contents.items():
                with open(partial / name, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            partial.chmod(0o755)
            # What lies there is incomplete, or it would not have been run again.
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(partial, folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return RunRecord(folder)


class Record:
    """The record of a plan: its runs in order, as tables and as a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.plan: dict[str, Any] = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))
            if self.plan["format"] != FORMAT:
                raise RecordError(f"{self.folder}: found a record of format {self.plan['format']}; expected {FORMAT}: run the plan again")
            names = list(self.plan["runs"])
        except FileNotFoundError:
            raise RecordError(
                f"{self.folder}: found no record (no plan.json in it); expected a folder made by joulepath simulate"
            ) from None
        except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise RecordError(f"{self.folder / 'plan.json'}: damaged ({error}); run the plan again") from None
        except OSError as error:
            raise RecordError(f"{self.folder}: cannot be read: {error.strerror}") from None
        if any("/" in n or n.startswith(".") for n in names):
            raise RecordError(f"{self.folder / 'plan.json'}: damaged (a run outside the record); run the plan again")
        self.runs = [RunRecord(self.folder / "runs" / name) for name in names if RunRecord.is_complete(self.folder / "runs" / name)]
        self.missing = len(names) - len(self.runs)

    @property
    def title(self) -> str:
        """The title of the plan."""
        return self.plan["title"]

    @property
    def recommendation(self) -> dict[str, Any] | None:
        """What `joulepath recommend` found, for its records."""
        path = self.folder / "recommendation.json"
        try:
            return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        except (OSError, ValueError) as error:
            raise RecordError(f"{path}: damaged ({error}); run the plan again") from None

    def as_dict(self) -> dict[str, Any]:
        """What `joulepath simulate --json` prints: the runs with their metrics under the names of the reference."""
        runs = []
        for run in self.runs:
            metrics = without_histograms(run.metrics)
            runs.append(
                {
                    "label": run.label,
                    "settings": run.run["settings"],
                    "seed": run.run["seed"],
                    **metrics,
                    "warnings": run.run["warnings"],
                    "cpu_s": run.environment["cpu_s"],
                }
            )
        return {
            "title": self.title,
            "record": str(self.folder),
            "evidence": "simulated",
            "missing_runs": self.missing,
            "runs": runs,
        }

    def table(self) -> pa.Table:
        """One row for each run: label, settings, and every single-valued metric (nested names joined by dots).

        Seconds, joules, bits per second and ratios as the names say. `to_pandas()` gives a data frame.
        """
        rows = []
        for run in self.runs:
            row = {"label": run.label, "seed": run.run["seed"], "repetition": run.run["repetition"]}
            row |= {f"setting.{k}": v for k, v in run.run["settings"].items()}
            row |= dict(_scalars(run.metrics))
            rows.append(row)
        return _table(rows)

    def ledger(self) -> pa.Table:
        """Every account and state of every run: time_s, entries, energy_j, evidence."""
        return _table([{"label": run.label, **row} for run in self.runs for row in run.ledger])

    def report(self, path: str | Path | None = None) -> Path:
        """Write the HTML report (by default `report.html` in the record) and return where it is."""
        from joulepath.report import write_report

        return write_report([self], Path(path) if path else self.folder / "report.html")

    def _repr_html_(self) -> str:
        from joulepath.report import notebook_table

        return notebook_table(self)

    def __repr__(self) -> str:
        return f"Record({str(self.folder)!r}: {self.title}, {len(self.runs)} runs)"

    @staticmethod
    def write_plan(folder: Path, plan: dict[str, Any], command: str) -> None:
        """Write what belongs to the whole record before its runs."""
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "plan.json", _dump({"format": FORMAT, "version": __version__, **plan}))
        write_whole(
            folder / "README.txt",
            f"{plan['title']}\n\nMade by joulepath {__version__}. To make it again:\n\n    {command}\n",
        )

    def write_tables(self) -> None:
        """Write the Parquet files over all runs."""
        for name, table in (("metrics", self.table()), ("ledger", self.ledger())):
            partial = self.folder / f"{name}.parquet.partial"
            try:
                pq.write_table(table, partial, compression="zstd")
                os.replace(partial, self.folder / f"{name}.parquet")
            except BaseException:
                partial.unlink(missing_ok=True)
                raise


def read_metric(metrics: dict[str, Any], path: str) -> float | None:
    """A metric by its dotted name; `None` when the run does not have it."""
    value: Any = metrics
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def without_histograms(metrics: dict[str, Any]) -> dict[str, Any]:
    """The metrics that people and tables read."""
    return {
        key: without_histograms(value) if isinstance(value, dict) else value for key, value in metrics.items() if key != "latency_histogram"
    }


def _scalars(value: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, dict):
            yield from _scalars(item, f"{prefix}{key}.")
        elif not isinstance(item, list):
            yield f"{prefix}{key}", item


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
