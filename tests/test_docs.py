"""Documentation is executed: console and Python blocks run, plans in it are valid, generated pages are current."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import joulepath
from joulepath.plan import load_plan
from joulepath.report.figures import conditions

ROOT = Path(__file__).parent.parent
OUTSIDE = {".venv", "target", "records", ".git", "report"}
PAGES = [p for p in sorted(ROOT.rglob("*.md")) if not OUTSIDE & set(p.relative_to(ROOT).parts)]


def blocks(language):
    found = []
    for page in PAGES:
        for i, match in enumerate(re.finditer(rf"```{language}\n(.*?)```", page.read_text(), re.S)):
            found.append(pytest.param(match.group(1), id=f"{page.relative_to(ROOT)}-{i}"))
    return found


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A folder with the repository's data, and `joulepath` on the path."""
    for name in ("data", "experiments"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
    return tmp_path


def agrees(expected: str, found: str) -> bool:
    """Lines are equal up to runs of blanks; `...` stands for any lines."""
    norm = lambda text: [" ".join(line.split()) for line in text.strip().splitlines()]  # noqa: E731
    pattern = "\n".join(norm(expected))
    regex = r"(?:.*\n)*?".join(re.escape(part) for part in re.split(r"(?m)^\.\.\.(?:\n|$)", pattern))
    return re.fullmatch(regex + r"\s*", "\n".join(norm(found)) + "\n", re.S) is not None


@pytest.mark.parametrize("block", blocks("console"))
def test_console_blocks(block, workspace):
    steps = re.split(r"(?m)^\$ ", block)[1:]
    for step in steps:
        command, _, expected = step.partition("\n")
        run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
        output = run.stdout + "".join(line + "\n" for line in run.stderr.splitlines() if not line.startswith("["))
        if run.stderr.startswith("joulepath:"):
            output = run.stderr + run.stdout
        assert run.returncode == 0, output
        assert agrees(expected, output), f"$ {command}\nexpected:\n{expected}\nfound:\n{output}"


@pytest.mark.parametrize("block", blocks("python"))
def test_python_blocks(block, workspace):
    exec(compile(block, "documentation", "exec"), {})


@pytest.mark.parametrize("block", blocks("toml"))
def test_plans_in_the_documentation(block):
    assert load_plan(tomllib.loads(block)).runs


def test_generated_pages_are_current():
    run = subprocess.run([sys.executable, ROOT / "scripts" / "docs.py", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_readme_shows_what_the_demo_prints(workspace):
    text = (ROOT / "README.md").read_text()
    shown = re.findall(r"<!-- output of: joulepath (.*?) -->\n```text\n(.*?)```", text, re.S)
    assert len(shown) == 3
    for command, expected in shown:
        run = subprocess.run([sys.executable, "-m", "joulepath", *command.split()], capture_output=True, text=True, timeout=300)
        assert agrees(expected, run.stdout), f"renew the README:\n{run.stdout}"


def test_every_claim_is_on_the_page():
    page = (ROOT / "docs" / "claims.md").read_text()
    for path in sorted((ROOT / "claims").glob("*.toml")):
        for claim in tomllib.loads(path.read_text())["claim"]:
            assert f"`{claim['id']}`" in page and claim["says"] in page, f"{claim['id']}: run make claims"
            assert claim["expected"][0] < claim["expected"][1]
            if "link" in claim:
                continue
            plan = load_plan(ROOT / "experiments" / "cluster" / f"{claim['experiment']}.toml")
            keys = plan.runs[0].settings
            assert set(claim["select"]) <= set(keys) and set(conditions(claim.get("relative_to", ""))) <= set(keys), claim["id"]


def test_links_of_the_documentation_exist():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_version_is_one():
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert joulepath.__version__ == manifest["workspace"]["package"]["version"]
