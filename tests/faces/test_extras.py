"""What works without the extras, and how a verb that needs one says so: in a process that cannot import them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support import ROOT

from tierloom.extras import EXTRAS

pytestmark = pytest.mark.smoke

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

BARE = """
import importlib.metadata, sys

LACKING = {"duckdb", "gguf", "jinja2", "optuna", "pandas", "polars", "pyarrow", "redis", "scipy"}
LACKING |= {"vl_convert", "vl-convert-python"}

def distribution(name, found=importlib.metadata.distribution):
    if name in LACKING:
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)

sys.modules.update(dict.fromkeys(LACKING))
importlib.metadata.distribution = distribution
from tierloom.commands import main
main()
"""


def without_extras(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BARE, *words], capture_output=True, text=True, check=False)


def test_each_extra_of_the_package_is_told_of() -> None:
    assert set(PROJECT["optional-dependencies"]) == set(EXTRAS)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        "profile -o app.profile -- true",
        "plan mg-e --machine liu-a --threads 32",
        "machine show liu-a",
        "simulate -w zipf --size 16MiB --seconds 1 -m liu-a --nodes ldram,cxl --fast-memory 8MiB --policy none",
        "expand --workload vadd --config cxl --passes 0.001",
        "diff mg-e mg-e",
    ],
)
def test_verbs_that_need_no_extra_do_without(words: str) -> None:
    done = without_extras(*words.split())
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("folder")
def test_the_demo_does_without_its_pictures_and_says_so() -> None:
    done = without_extras("demo")
    assert done.returncode == 0, done.stderr
    assert "no page and no picture: jinja2, vl-convert-python not installed" in done.stderr
    assert "pip install '.[report]'" in done.stderr
    assert {path.name for path in Path("demo").iterdir()} == {"mg.profile", "mg.plan.toml"}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("plan mg-e --machine liu-a --html x.html", "report"),
        ("plan mg-e --machine liu-a --plot x.png", "report"),
        ("machine show liu-a --plot x.png", "report"),
        ("report liu-a -o x.html", "report"),
        ("offload infer --model opt-30b --gpu a10 -m liu-a", "offload"),
        ("capacity published", "capacity"),
        ("reproduce --only liu24.gpu", "capacity"),
        ("capacity measure duckdb --memory 1GiB", "capacity"),
    ],
)
def test_a_verb_that_needs_one_names_it(words: str, extra: str) -> None:
    done = without_extras(*words.split())
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert "not installed" in done.stderr
    assert done.stderr.endswith(f"hint: pip install '.[{extra}]'\n")
    assert not list(Path.cwd().iterdir()), "it is refused before anything is written"
