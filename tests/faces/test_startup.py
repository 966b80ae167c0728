"""What nobody is made to wait for: modules that a help text or `profile` does not need, a measurement that is known."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import click
import pytest
from support import ROOT

import tierloom
import tierloom.pmem
from tierloom.commands import SECTIONS, main
from tierloom.commands.groups import WHOLE

pytestmark = pytest.mark.smoke

SLOW_TO_LOAD = ["numpy", "pandas", "polars", "pyarrow", "scipy", "vl_convert", "jinja2", "importlib.metadata", "xml"]
ENGINES = [
    "tierloom.migration_simulator",
    "tierloom.machine_formats",
    "tierloom.policy_search",
    "tierloom.sweeps",
    "tierloom.validation",
]
VERBS = [name for verbs in SECTIONS.values() for name in verbs]

STARTED = """
import json, sys
from tierloom.commands import main
try:
    main(sys.argv[1:], prog_name="tierloom")
finally:
    print(json.dumps(sorted(sys.modules)))
"""


def loaded(*words: str) -> set[str]:
    """Modules that `tierloom WORDS…` had loaded when it ended."""
    done = subprocess.run([sys.executable, "-c", STARTED, *words], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_profile_loads_what_it_needs(tmp_path: Path) -> None:
    modules = loaded("profile", "-o", str(tmp_path / "true.profile"), "--", "true")
    assert "tierloom.profiler" in modules
    assert modules.isdisjoint([*SLOW_TO_LOAD, *ENGINES, "tierloom.exporters"])


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_what_needs_no_verb_loads_none(word: str) -> None:
    modules = loaded(word)
    assert modules.isdisjoint([*SLOW_TO_LOAD, "rich", "tierloom._core"])
    assert modules.isdisjoint(f"tierloom.commands.{verb}" for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_help_loads_nothing_that_computes_or_draws(verb: str) -> None:
    modules = loaded(verb, "--help")
    assert f"tierloom.commands.{verb}" in modules
    assert modules.isdisjoint([*SLOW_TO_LOAD, *ENGINES, "rich", "tierloom.report"])


@pytest.mark.parametrize("verb", VERBS)
def test_the_list_of_verbs_says_what_each_says_of_itself(verb: str) -> None:
    [listed] = [verbs[verb] for verbs in SECTIONS.values() if verb in verbs]
    command = main.get_command(click.Context(main), verb)
    assert command
    assert listed == command.get_short_help_str(WHOLE)


VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_version_is_that_of_the_project() -> None:
    assert tierloom.__version__ == VERSION


@pytest.mark.parametrize(
    ("file", "written"),
    [
        ("Cargo.toml", r'(?m)^version = "(.+)"$'),
        ("CITATION.cff", r"(?m)^version: (.+)$"),
        ("docs/setup.md", r"tierloom-([\d.]+)-cp\d+"),
    ],
)
def test_every_file_that_names_the_version_names_this_one(file: str, written: str) -> None:
    assert set(re.findall(written, (ROOT / file).read_text(encoding="utf-8"))) == {VERSION}


@pytest.mark.parametrize(
    ("package", "itself"), [(tierloom, {"TierloomError"}), (tierloom.offload, set()), (tierloom.pmem, set())]
)
def test_a_package_offers_what_the_type_checker_is_told(package: ModuleType, itself: set[str]) -> None:
    source = ast.parse(inspect.getsource(package))
    [told] = [node for node in source.body if isinstance(node, ast.If)]
    imports = [node for node in told.body if isinstance(node, ast.ImportFrom)]
    homes = {node.module: tuple(name.name for name in node.names) for node in imports}
    told_of = {f"{package.__name__}.{home}": names for home, names in package.HOMES.items()}
    rooms = getattr(package, "ROOMS", ())
    assert homes == {**({"tierloom": rooms} if rooms else {}), **told_of}
    assert {name for names in homes.values() for name in names} | itself == set(package.__all__)
    for name in package.__all__:
        found = getattr(package, name)
        assert (found.__name__ if name in rooms else found.__module__).startswith("tierloom."), name
        assert name in dir(package)
    with pytest.raises(AttributeError, match="no attribute `plans`"):
        _ = package.plans


FRESH = """
import json, sys
import tierloom
before = sorted(sys.modules)
for room in ("offload", "pmem", "capacity"):
    assert getattr(tierloom, room).__all__
print(json.dumps(before))
"""


def test_rooms_are_attributes_and_loaded_when_they_are_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    loaded = {name for name in json.loads(done.stdout) if name.startswith("tierloom")}
    assert loaded == {"tierloom", "tierloom.errors"}


@pytest.mark.live
def test_skid_is_measured_once_a_start_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = tierloom.record(["true"])
    notes = list((tmp_path / "tierloom").glob("skid-*"))
    if not notes:
        pytest.skip("samples of this machine are too blurred for a note")
    [note] = notes
    machine, figures = note.read_text().splitlines()
    assert float(figures.split()[1]) == first.profile.data["sampling"]["skid_purity"]
    note.write_text(f"{machine}\n1 0.8125 16\n")
    assert tierloom.record(["true"]).profile.data["sampling"]["skid_purity"] == 0.8125
