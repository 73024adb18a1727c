"""The runs of a plan over threads: the core releases the interpreter, so threads use all cores."""

import hashlib
import json
import os
import shlex
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from joulepath import _core
from joulepath._core import PlanError, __version__
from joulepath.plan import Plan, PlanFileError, Run, load_plan
from joulepath.record import FORMAT, Record, RunRecord, digest_of, run_folder_name

Progress = Callable[[str, float, int], None]


class Stopped(RuntimeError):
    """The sweep was interrupted; what had ended is kept in `record`."""

    def __init__(self, record: Record, left: int) -> None:
        total = len(record.runs) + left
        super().__init__(
            f"stopped: {len(record.runs)} of {total} runs are recorded in {record.folder}; the same command goes on from there"
        )
        self.record = record


def simulate(
    plan: str | Path | dict[str, Any] | Plan,
    out: str | Path | None = None,
    *,
    jobs: int | None = None,
    overrides: dict[str, Any] | None = None,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Record:
    """Run every run of a plan and return its record.

    `out` is the folder of the record (default `records/<plan>`). Runs whose record is there already are not run again.
    `jobs` is how many run at once (default: all cores). `progress(label, share, packet_hops)` is called from worker threads.

    Raises `PlanFileError` for a bad plan, `TraceFileError` for a bad log, `OSError` when recording fails, and `Stopped`
    after Ctrl-C or when `stop` is set; everything that had ended by then is kept.
    """
    if not isinstance(plan, Plan):
        plan = load_plan(plan, overrides)
    folder = Path(out) if out else Path("records") / plan.name
    logs = _Logs()
    names = []
    todo: list[tuple[Run, Path]] = []
    for run in plan.runs:
        pinned = logs.pin(run)
        name = run_folder_name(run.label, digest_of(FORMAT, __version__, pinned, run.seed, run.repetition, run.settings))
        names.append(name)
        target = folder / "runs" / name
        if not RunRecord.is_complete(target):
            todo.append((run, target))
        elif progress:
            progress(run.label, 1.0, 0)
    changed = "".join(f" --set {shlex.quote(f'{key}={value}')}" for key, value in plan.overrides.items())
    command = f"joulepath {plan.verb} {shlex.quote(plan.path.as_posix())}{changed}"
    figures = [vars(f) for f in plan.figures]
    envelope = {"name": plan.name, "title": plan.title, "source": plan.source, "description": plan.description}
    Record.write_plan(folder, {**envelope, "runs": names, "figures": figures}, command)
    stop = stop or threading.Event()
    workers = max(1, min(jobs or os.cpu_count() or 1, len(todo)))
    if todo:
        _run_all(todo, workers, logs, progress, stop)
    record = Record(folder)
    if record.missing:
        raise Stopped(record, record.missing)
    record.write_tables()
    return record


def _run_all(todo: list[tuple[Run, Path]], workers: int, logs: "_Logs", progress: Progress | None, stop: threading.Event) -> None:
    with ThreadPoolExecutor(workers) as pool:
        pending = {pool.submit(_run_one, run, target, logs, progress, stop) for run, target in todo}
        try:
            while pending:
                done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        except KeyboardInterrupt:
            stop.set()
        except BaseException:
            stop.set()
            raise
        finally:
            if stop.is_set():
                for future in pending:
                    future.cancel()


def _run_one(run: Run, target: Path, logs: "_Logs", progress: Progress | None, stop: threading.Event) -> None:
    if stop.is_set():
        return
    log = logs.read(run.log_path) if run.log_path else None

    def tell(share: float, hops: int) -> bool:
        if progress:
            progress(run.label, share, hops)
        return not stop.is_set()

    started, cpu = time.monotonic(), time.thread_time()
    try:
        result = json.loads(_core.simulate_cluster(json.dumps(run.body), run.seed, run.repetition, log, tell))
    except PlanError as error:
        if stop.is_set():
            return
        raise PlanFileError(f"{run.label}: {error.args[0]}: {error.args[1]}") from None
    environment = {"cpu_s": round(time.thread_time() - cpu, 6), "wall_s": round(time.monotonic() - started, 6)}
    about = {
        "label": run.label,
        "settings": run.settings,
        "seed": run.seed,
        "repetition": run.repetition,
        "version": __version__,
        "plan": logs.pin(run),
        "warnings": run.warnings,
    }
    RunRecord.write(target, about, result, environment)
    if progress:
        progress(run.label, 1.0, result["metrics"]["packet_hops"])


class _Logs:
    """Logs that were read, shared by the runs that replay them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: dict[str, Any] = {}
        self._digest: dict[str, str] = {}

    def read(self, path: str) -> Any:
        with self._lock:
            if path not in self._read:
                try:
                    self._read[path] = _core.read_workload_log(path)
                except _core.TraceFileError as error:
                    raise _core.TraceFileError(f"{path}: {error}") from None
            return self._read[path]

    def pin(self, run: Run) -> dict[str, Any]:
        """The resolved plan with its log named by content, so that a record does not depend on where the log lies."""
        if not run.log_path:
            return run.resolved
        pinned = f"{Path(run.log_path).name} sha256:{self.digest(run.log_path)}"
        return {**run.resolved, "workload": {**run.resolved["workload"], "file": pinned}}

    def digest(self, path: str) -> str:
        if path not in self._digest:
            with open(path, "rb") as file:
                self._digest[path] = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        return self._digest[path]
