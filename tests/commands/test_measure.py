"""`tierloom machine measure`: what is written, what is said, and how it ends.

The probe's own tests measure; here it is replaced by one that answers at once. The examples of the
help text, which other tests run, measure for real.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Tierloom

import tierloom as package
from tierloom.errors import MeasurementError

WARNING = {"what": "other programs kept 1.50 CPUs busy", "cause": "they share caches", "remedy": "end them"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """A probe that finds a machine of the catalog; what it was asked, call by call."""
    calls: list[tuple] = []

    def measure_machine(*request: object) -> tuple[str, dict]:
        name, date, full, tell = request
        calls.append((name, date, full))
        if tell:
            tell(0.5, 3.0, "latency")
        text = package.Machine.load("liu-a").text.replace('name = "liu-a"', f'name = "{name}"', 1)
        return text, {"name": name, "date": date, "warnings": [WARNING]}

    monkeypatch.setattr("tierloom.measurement._core.measure_machine", measure_machine)
    return calls


def test_the_machine_is_written_shown_and_the_next_step_told(tierloom: Tierloom, asked: list, folder: Path) -> None:
    result = tierloom("machine", "measure", "--name", "here")
    assert result.exit_code == 0
    assert result.stdout.startswith("here: ")
    assert package.Machine.load(folder / "here.toml").name == "here"
    assert "here.toml" in result.stderr
    assert "next: tierloom machine show here.toml\n" in result.stderr
    (folder / "my app.profile").mkdir()
    (folder / "my app.profile" / "profile.json").write_text("{}")
    again = tierloom("machine", "measure", "--name", "here")
    assert "next: tierloom plan 'my app.profile' --machine here.toml\n" in again.stderr, "it is there to be planned"
    asked.pop()
    assert [(name, full) for name, _, full in asked] == [("here", True)]


def test_a_warning_comes_with_its_cause_and_remedy(tierloom: Tierloom, asked: list, folder: Path) -> None:
    words = " ".join(tierloom("machine", "measure", "--name", "here").stderr.split())
    assert "warning: other programs kept 1.50 CPUs busy: they share caches; end them" in words
    assert asked
    assert folder.exists()


def test_json_is_the_report_and_nothing_else(tierloom: Tierloom, asked: list, folder: Path) -> None:
    result = tierloom("machine", "measure", "--quick", "-o", "mine.toml", "--name", "here", "--json")
    report = json.loads(result.stdout)
    assert report["warnings"] == [WARNING]
    assert (report["name"], asked[0][2]) == ("here", False)
    assert (folder / "mine.toml").exists()


def test_the_date_is_todays(tierloom: Tierloom, asked: list, folder: Path) -> None:
    tierloom("machine", "measure", "--name", "here")
    year, month, day = asked[0][1].split("-")
    assert (len(year), len(month), len(day)) == (4, 2, 2)
    assert folder.exists()


def test_what_cannot_be_measured_ends_with_1_and_a_hint(
    tierloom: Tierloom, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> tuple[str, str]:
        message = "no CPU of this machine may be used\nhint: widen the CPU set"
        raise MeasurementError(message)

    monkeypatch.setattr("tierloom.measurement._core.measure_machine", refuse)
    result = tierloom("machine", "measure", "--name", "here")
    assert result.exit_code == 1
    assert "hint: widen the CPU set" in result.stderr
    assert not (folder / "here.toml").exists()
