"""The one rule of the house: which room may use which. ARCHITECTURE.md draws the same arrows."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from functools import cache

import pytest
from support import ROOT

ARROWS: dict[str, set[str]] = {
    "model": set(),
    "fixtures": {"model"},
    "wire": set(),
    "contention": {"model"},
    "predict": {"model", "contention"},
    "place": {"model", "predict"},
    "tiering": {"model", "contention"},
    "expander": {"model", "contention"},
    "linux": {"model"},
    "preload": {"wire"},
    "probe": {"model", "linux"},
    "pmem": {"linux"},
    "recording": {"wire"},
    "binary": set(),
    "launch": {"binary", "linux", "wire"},
    "record": {"launch", "binary", "linux", "model", "recording", "wire"},
    "perfdata": {"model", "linux", "recording"},
    "analysis": {"model", "recording", "binary"},
    "runner": {"launch", "binary", "linux", "model", "recording", "wire"},
    "fuzzed": {"model", "analysis", "binary", "expander", "linux", "perfdata", "pmem", "recording", "tiering", "wire"},
    "python": {
        *("model", "contention", "predict", "place", "tiering", "expander", "linux", "pmem", "probe"),
        *("recording", "binary", "launch", "record", "perfdata", "analysis", "runner"),
    },
}
"""What each crate may use of the others; everyone may use the nouns."""

UNSAFE_ROOMS = {"linux", "pmem", "preload", "probe"}
LICENCES = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "LLVM-exception",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}


@cache
def packages() -> list[dict]:
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(output.stdout)["packages"]


def rooms() -> dict[str, dict]:
    return {p["name"].removeprefix("tierloom-"): p for p in packages() if p["name"].startswith("tierloom-")}


def uses(package: dict) -> set[str]:
    """What ships in a crate; tests and benches may use more."""
    return {dependency["name"] for dependency in package["dependencies"] if dependency["kind"] is None}


def test_every_crate_uses_only_what_the_house_allows() -> None:
    for name, package in rooms().items():
        assert name in ARROWS, f"say in ARROWS what the new crate `{name}` may use"
        used = {other.removeprefix("tierloom-") for other in uses(package) if other.startswith("tierloom-")}
        assert used <= ARROWS[name], f"{name} uses {used - ARROWS[name]}"


def test_the_preload_library_brings_nothing_else_into_the_process() -> None:
    assert uses(rooms()["preload"]) <= {"tierloom-wire", "libc"}


def test_engines_never_touch_the_outside_world() -> None:
    outside = re.compile(r"std::(fs|env|net|process|time|thread)\b|Instant::now|SystemTime")
    for room in ("model", "contention", "predict", "place", "tiering", "expander", "analysis"):
        for path in (ROOT / "crates" / room / "src").rglob("*.rs"):
            found = outside.search(path.read_text(encoding="utf-8").split("#[cfg(test)]")[0])
            assert not found, f"{path.relative_to(ROOT)} uses {found[0]}"


def test_unsafe_is_a_room() -> None:
    opened = re.compile(r"^\s*#!\[allow\(unsafe_code\)\]", re.MULTILINE)
    for path in (ROOT / "crates").glob("*/src/**/*.rs"):
        room = path.relative_to(ROOT / "crates").parts[0]
        if opened.search(path.read_text(encoding="utf-8")):
            assert room in UNSAFE_ROOMS, f"{path.relative_to(ROOT)} opens a room for unsafe code"


def test_every_dependency_may_be_shipped_under_apache_2() -> None:
    for package in packages():
        terms = (package["license"] or "").replace("(", "").replace(")", "")
        choices = [set(re.split(r" AND | WITH ", choice)) for choice in re.split(r" OR |/", terms)]
        assert any(choice <= LICENCES for choice in choices), f"{package['name']}: {package['license']}"


def test_python_wraps_all_of_the_core() -> None:
    core = pytest.importorskip("tierloom._core")
    exposed = {name for name in vars(core) if not name.startswith("_")}
    stub = ast.parse((ROOT / "python/tierloom/_core.pyi").read_text(encoding="utf-8"))
    typed = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert exposed == typed
    sources = [p.read_text(encoding="utf-8") for p in (ROOT / "python/tierloom").rglob("*.py")]
    unused = {name for name in exposed if not any(f"_core.{name}" in source for source in sources)}
    assert not unused, "the core has what no Python function offers"


def test_only_the_api_speaks_to_the_core() -> None:
    """The import contract for modules in `pyproject.toml` cannot see a compiled one."""
    speakers = {
        "expanding.py",
        "measuring.py",
        "nouns.py",
        "planning.py",
        "pool_files.py",
        "pools.py",
        "profile_folder.py",
        "quantities.py",
        "recording.py",
        "simulating.py",
        "streaming.py",
    }
    for path in (ROOT / "python/tierloom").rglob("*.py"):
        if path.name not in speakers:
            assert "tierloom._core" not in path.read_text(encoding="utf-8"), f"{path.relative_to(ROOT)} knows the core"


def test_no_file_outgrows_its_reader() -> None:
    for pattern in ("crates/*/src/**/*.rs", "python/tierloom/**/*.py", "workloads/*.cpp"):
        for path in ROOT.glob(pattern):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            assert lines <= 600, f"{path.relative_to(ROOT)} has {lines} lines: one idea a file"
