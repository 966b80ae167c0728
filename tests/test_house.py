"""The one rule of the house: which room may use which. ARCHITECTURE.md draws the same arrows."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import architecture
import documents
import file_reference
import modules
import pytest
from modules import Crate
from rooms import LAYERS, ROOMS
from support import ROOT

CRATES = sorted(path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml"))
OUTSIDE = {"fs", "env", "net", "process", "thread", "time"}
"""Modules of `std` that lead out of a program."""

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


ONCE = {
    r"\bconst \w*PAGE\w*: \w+ = 4096;": {"model/src/units.rs", "wire/src/layout.rs", "bursts/src/area.rs"},
    r"\bconst \w*LINE\w*: \w+ = 64;": {"model/src/units.rs", "bursts/src/area.rs"},
    "(?i)0x9e37_?79b9_?7f4a_?7c15": {"model/src/hash.rs", "wire/src/scatter.rs", "binary/src/dataflow/emulator.rs"},
}
"""What may stand in these files alone: `wire` uses nothing of ours, `binary` and `bursts` know nothing of it."""

DECODER = "iced_x86"
MEET_THE_DECODER = ("binary/src/x86/", "bursts/", "interpreter/")
"""What reads x86-64 machine code, what makes some, and what does as it says; everyone else has the instructions of
`binary`."""

SEAM = "binary/src/arch.rs"
"""All of an architecture that the rest of `binary` may name."""


@cache
def packages() -> list[dict]:
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(output.stdout)["packages"]


def rooms() -> dict[str, dict]:
    return {p["name"].removeprefix("tierloom-"): p for p in packages() if p["name"].startswith("tierloom-")}


@cache
def crate(name: str) -> Crate:
    return Crate(ROOT / "crates" / name)


def uses(package: dict) -> set[str]:
    """What ships in a crate; tests and benches may use more."""
    return {dependency["name"] for dependency in package["dependencies"] if dependency["kind"] is None}


def test_every_crate_uses_only_what_the_house_allows() -> None:
    for name, package in rooms().items():
        assert name in ROOMS, f"say in tests/house/rooms.py what the new crate `{name}` is and may use"
        used = {other.removeprefix("tierloom-") for other in uses(package) if other.startswith("tierloom-")}
        assert used <= ROOMS[name].uses, f"{name} uses {used - ROOMS[name].uses}"


def test_no_room_is_allowed_one_above_it() -> None:
    for name, room in ROOMS.items():
        for used in room.uses:
            above = LAYERS.index(ROOMS[used].kind) > LAYERS.index(room.kind)
            assert not above, f"{name}, of the kind {room.kind}, must not use {used}"


@pytest.mark.parametrize("name", CRATES)
def test_no_circle_runs_between_the_files_of_a_crate(name: str) -> None:
    uses = crate(name).uses
    circles = [line for circle in modules.circles(uses) for line in modules.told(modules.inside(uses, circle))]
    assert not circles, "\n".join(["a circle: what both need belongs into a file below them", *circles])


def test_an_architecture_stays_behind_its_seam() -> None:
    files = {str(path.relative_to(ROOT / "crates")): path for path in (ROOT / "crates").glob("*/*/**/*.rs")}
    code = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    decoding = {name for name, text in code.items() if DECODER in text}
    strangers = {name for name in decoding if not name.startswith(MEET_THE_DECODER)}
    assert decoding, f"nothing names {DECODER}: is it still the decoder?"
    assert strangers == set(), "ask `binary::instruction`, or let the folder of the architecture say what is missing"
    named = {name for name, text in code.items() if name.startswith("binary/src/") and "crate::x86" in text}
    assert {name for name in named if not name.startswith("binary/src/x86/")} == {SEAM}, f"{SEAM} is the seam"


def test_the_preload_library_brings_nothing_else_into_the_process() -> None:
    assert uses(rooms()["preload"]) <= {"tierloom-wire", "libc"}


@pytest.mark.parametrize("name", [name for name in CRATES if name in ROOMS and ROOMS[name].is_pure])
def test_engines_never_touch_the_outside_world(name: str) -> None:
    for path, place in crate(name).outward():
        assert path[0] != "std" or path[1] not in OUTSIDE, f"crates/{name}/src/{place} uses {'::'.join(path)}"


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
    named = {node for path in python() for node in core_names(path)}
    assert exposed <= named, f"the core has what no Python function offers: {exposed - named}"
    assert named <= exposed, f"Python asks the core for what it has not: {named - exposed}"


def python() -> list[Path]:
    return sorted((ROOT / "python/tierloom").rglob("*.py"))


def core_names(path: Path) -> set[str]:
    """What a file takes from the core, by its syntax: the text `_core.look` is in `_core.look_at_pool`, too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {
        each.asname or "tierloom"
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for each in node.names
        if each.name == "tierloom._core"
    }
    own = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "tierloom")
    called |= {each.asname or each.name for node in own for each in node.names if each.name == "_core"}
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in called
    }


SPEAKERS = {
    *(
        "gpu_expansion.py",
        "measured_hosts.py",
        "measurement.py",
        "node_match.py",
        "migration_simulator.py",
        "policy_search.py",
        "units.py",
    ),
    *("plan_runner.py", "profile_folder.py", "profiler.py", "recordings.py", "timed_runs.py"),
    *("nouns/machine.py", "nouns/plan.py", "nouns/profile.py", "nouns/workload.py"),
    *("pmem/pool_files.py", "pmem/pools.py", "pmem/stream.py"),
}
"""Modules that speak to the core."""


def test_the_types_of_documents_are_those_of_their_schemas() -> None:
    """A test of `crates/model` holds the schemas to the Rust nouns."""
    assert documents.TYPES.read_text(encoding="utf-8") == documents.written(json.loads(documents.SCHEMAS.read_text()))


def test_the_reference_of_files_is_that_of_their_schemas() -> None:
    files = file_reference.written()
    assert {path: path.read_text(encoding="utf-8") for path in files} == files


def test_only_the_api_speaks_to_the_core() -> None:
    """The import contract for modules in `pyproject.toml` cannot see a compiled one."""
    speaking = {str(path.relative_to(ROOT / "python/tierloom")) for path in python() if core_names(path)}
    assert speaking == SPEAKERS


def test_no_file_outgrows_its_reader() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    long = {path for path, lines in lengths.items() if lines > (500 if path.suffix == ".rs" else 600)}
    assert {str(path.relative_to(ROOT)) for path in long} == set(), "one idea a file"


def sources() -> list[Path]:
    patterns = ("crates/*/*/**/*.rs", "python/tierloom/**/*.py", "workloads/*.cpp")
    return [path for pattern in patterns for path in ROOT.glob(pattern) if path != documents.TYPES]


@pytest.mark.parametrize("what", ONCE)
def test_it_is_written_once(what: str) -> None:
    pattern = re.compile(what)
    paths = (ROOT / "crates").glob("*/src/**/*.rs")
    found = {path for path in paths if pattern.search(path.read_text(encoding="utf-8").split("#[cfg(test)]")[0])}
    found = {str(path.relative_to(ROOT / "crates")) for path in found}
    assert found == ONCE[what], "use the one of `model`; the preload library has that of `wire`"


def test_no_folder_is_a_heap() -> None:
    files = Counter(path.parent for path in (ROOT / "crates").glob("*/src/**/*.rs"))
    crowded = {str(folder.relative_to(ROOT / "crates")) for folder, count in files.items() if count > 25}
    assert crowded == set(), "files of one subject belong into a folder of its name"


def test_functions_take_one_step() -> None:
    lengths = sorted(length for name in CRATES for length in crate(name).lengths())
    assert lengths[len(lengths) * 9 // 10] <= 20, "nine functions of ten do with so many lines"


def test_the_page_of_the_house_says_what_the_code_says() -> None:
    page = architecture.PAGE.read_text(encoding="utf-8")
    assert architecture.written(page) == page, "write the tables anew: python tests/house/architecture.py"


def test_every_module_of_python_has_its_row() -> None:
    page = architecture.PAGE.read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `python/tierloom/")]
    named = {name.removeprefix("python/tierloom/").rstrip("/") for row in rows for name in re.findall("`(.*?)`", row)}
    package = ROOT / "python" / "tierloom"
    there = {path.name for path in package.glob("[!_]*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    assert named == there


def test_every_room_has_a_page_of_its_own() -> None:
    assert [name for name in ROOMS if not (ROOT / "crates" / name / "README.md").exists()] == []
