"""The arrows of the house (ARCHITECTURE.md), and what the suffix of a room permits."""

import ast
import json
import re
import subprocess

ARROWS = {
    "joulepath-units": set(),
    "joulepath-engine": {"units"},
    "joulepath-energy": {"units"},
    "joulepath-net": {"units", "engine", "energy"},
    "joulepath-mapreduce": {"units", "engine", "energy", "net"},
    "joulepath-py": {"units", "engine", "energy", "net", "mapreduce"},
}
# What a room without suffix may not touch, and what to use instead.
IMPURE = {
    r"std::time::|SystemTime|Instant::now": "take `now` as an argument",
    r"std::(fs|net|process|env|os)\b|\bFile::": "take a byte stream; the border opens files",
    r"std::thread|std::sync::(Mutex|atomic)": "a run is one value on one thread",
    r"\bHash(Map|Set)\b": "use BTreeMap or a vector: hash order differs between runs",
    r"f64::(exp|ln|powf|cbrt|sin|cos)\b|\.(exp|ln|powf|cbrt)\(": "use libm: the same bits on every machine",
    r"\bprintln!|\beprintln!|\bdbg!": "return values; the command line prints",
}
PYTHON_ARROWS = {
    "record": {"record", "_core", "report"},  # Record.report() is a convenience that imports the report lazily
    "report": {"record", "report"},
    "plan": {"plan", "_core"},
    "recommend": {"plan", "record", "sweep", "_core", "recommend"},
    "sweep": {"plan", "record", "_core", "sweep"},
}


def test_rust_arrows(root):
    out = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"], cwd=root, capture_output=True, text=True, check=True
    )
    packages = json.loads(out.stdout)["packages"]
    assert {p["name"] for p in packages} == set(ARROWS), "a new room needs its arrows here and in ARCHITECTURE.md"
    for package in packages:
        used = {d["name"].removeprefix("joulepath-") for d in package["dependencies"] if d["name"].startswith("joulepath-")}
        assert used <= ARROWS[package["name"]], f"{package['name']} must not use {used - ARROWS[package['name']]}"


def test_pure_rooms_touch_no_machine(root):
    found = []
    for file in sorted((root / "crates").glob("*/src/**/*.rs")):
        if file.parts[-3] == "py" or "/py/" in file.as_posix():
            continue
        code = file.read_text().split("#[cfg(test)]")[0]
        code = "\n".join(line.split("//")[0] for line in code.splitlines())
        for pattern, instead in IMPURE.items():
            if match := re.search(pattern, code):
                found.append(f"{file.relative_to(root)}: {match.group(0)!r}: {instead}")
    assert not found, "\n".join(found)


def test_only_the_energy_room_multiplies_watts_by_time(root):
    for file in (root / "crates" / "net" / "src").rglob("*.rs"):
        code = file.read_text().split("#[cfg(test)]")[0]
        assert "Energy::from_base" not in code and "joules()" not in code, file


def test_python_arrows(root):
    package = root / "python" / "joulepath"
    for room, allowed in PYTHON_ARROWS.items():
        for file in (package / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
                names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                for name in names:
                    if name.startswith("joulepath."):
                        assert name.split(".")[1] in allowed, f"{file.name} of {room} must not import {name}"
