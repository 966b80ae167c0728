"""Live tests are decided by two of three attempts, and every attempt is in the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from live_judging import undecided
from support import ROOT

INSIDE = """
import itertools
import pytest

counts = {}

def nth(name):
    counts[name] = counts.get(name, 0) + 1
    return counts[name]

@pytest.mark.live
def test_right_at_once():
    assert nth("right") == 1

@pytest.mark.live
def test_wrong_once():
    assert nth("once") != 1

@pytest.mark.live
def test_wrong_twice(tmp_path):
    assert nth("twice") == 2

@pytest.mark.live(measures=True)
def test_measures(record_property):
    record_property("seconds", 1.5 * nth("measures"))
    assert counts["measures"] != 2

@pytest.mark.live
def test_has_nothing_to_try():
    pytest.skip("pyspark is not installed")

def test_is_no_live_test():
    assert nth("plain") == 1
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["here", "workers"])
def test_two_of_three_attempts_decide_and_all_are_written_down(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_inside.py").write_text(INSIDE)
    (tmp_path / "conftest.py").write_text(
        "import live_judging\ndef pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'live')\n    config.pluginmanager.register(live_judging)\n"
        "    config.pluginmanager.register(live_judging.Table())\n"
    )
    words = [sys.executable, "-m", "pytest", "-c", "/dev/null", "-p", "no:cacheprovider", *workers, "."]
    table = tmp_path / "live.json"
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "TIERLOOM_LIVE_TABLE": str(table)}
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert "1 failed, 4 passed, 1 skipped" in done.stdout, done.stdout
    rows = {row["test"].split("::")[1]: row for row in json.loads(table.read_text())["tests"]}
    outcomes = {test: (row["verdict"], [each["outcome"] for each in row["attempts"]]) for test, row in rows.items()}
    assert outcomes == {
        "test_right_at_once": ("passed", ["passed"]),
        "test_wrong_once": ("passed", ["failed", "passed", "passed"]),
        "test_wrong_twice": ("failed", ["failed", "passed", "failed"]),
        "test_measures": ("passed", ["passed", "failed", "passed"]),
        "test_has_nothing_to_try": ("skipped", ["skipped"]),
    }
    assert [each["figures"]["seconds"] for each in rows["test_measures"]["attempts"]] == [1.5, 3.0, 4.5]
    assert "seconds 1.5 to 4.5" in done.stdout


@pytest.mark.parametrize(
    ("outcomes", "measures", "more"),
    [
        ([], False, True),
        (["passed"], False, False),
        (["passed"], True, True),
        (["failed"], False, True),
        (["failed", "failed"], False, False),
        (["failed", "passed"], True, True),
        (["failed", "passed", "passed"], True, False),
        (["skipped"], True, False),
    ],
)
def test_attempts_end_when_it_is_decided(outcomes: list[str], measures: bool, more: bool) -> None:  # noqa: FBT001
    assert undecided(outcomes, measures=measures) == more
