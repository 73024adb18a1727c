import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests" / "data"


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def data() -> Path:
    return DATA


class Cli:
    """Runs the command line in a process of its own, as a user does."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd

    def __call__(self, *arguments: object, code: int = 0, **options) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "joulepath", *map(str, arguments)]
        environment = {**os.environ, "PYTHONUTF8": "1"}
        run = subprocess.run(command, capture_output=True, text=True, cwd=self.cwd, env=environment, timeout=300, **options)
        assert run.returncode == code, f"{command}: exit {run.returncode}\n{run.stdout}\n{run.stderr}"
        for word in ("Traceback", "panicked", "RUST_BACKTRACE", "Err(", "Some("):
            assert word not in run.stdout + run.stderr, run.stdout + run.stderr
        return run

    def json(self, *arguments: object, **options) -> dict:
        return json.loads(self(*arguments, "--json", **options).stdout)

    def refusal(self, *arguments: object, code: int = 2) -> str:
        """The one sentence that a refused command prints; nothing goes to standard output."""
        run = self(*arguments, code=code)
        assert run.stdout == ""
        return run.stderr.strip()


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)
