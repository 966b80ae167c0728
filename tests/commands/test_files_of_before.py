"""Files of the version before, which did not say what they are, are read; what is written says it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from support import Run

import tierloom
from tierloom import Machine, Plan, Profile, Study, Workload
from tierloom.errors import StudyError, TierloomError

BEFORE = Path(__file__).parents[1] / "files_of_before"
CATALOG = Path(tierloom.__file__).parent / "catalog"


def test_a_machine(tmp_path: Path) -> None:
    machine = Machine.from_data(Machine.load(BEFORE / "machine.toml").data)
    machine.save(tmp_path / "machine.toml")
    written = (tmp_path / "machine.toml").read_text()
    assert tomllib.loads(written) == {"kind": "machine", **tomllib.loads((BEFORE / "machine.toml").read_text())}
    assert written.startswith('kind = "machine"\nversion = 1\n')


def test_a_profile(tmp_path: Path) -> None:
    profile = Profile.load(BEFORE / "app")
    profile.save(tmp_path / "app.profile")
    before = json.loads((BEFORE / "app/profile.json").read_text())
    assert json.loads((tmp_path / "app.profile/profile.json").read_text()) == {"kind": "profile", **before}


def test_a_plan() -> None:
    before = tomllib.loads((BEFORE / "app.plan.toml").read_text())
    assert Plan.load(BEFORE / "app.plan.toml").data == {"kind": "plan", **before}


def test_a_workload() -> None:
    before = Workload.load(BEFORE / "silo.toml")
    assert before.data == Workload.load("silo").data
    assert before.data["kind"] == "workload"


def test_a_study() -> None:
    assert Study.load(BEFORE / "cxl-share.toml").axes == Study.load("cxl-share").axes


@pytest.mark.parametrize("file", ["machine.toml", "app", "app.plan.toml"])
def test_the_report_shows_them(file: str, run: Run, tmp_path: Path) -> None:
    result = run("report", BEFORE / file, "-o", tmp_path / "page.html")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("noun", "file", "told"),
    [
        (Machine, "workloads/silo.toml", "this is a workload, not a machine"),
        (Plan, "machines/liu-a.toml", "this is a machine, not a plan"),
        (Workload, "studies/cxl-share.toml", "this is a study, not a workload"),
    ],
)
def test_one_in_the_place_of_another_is_told_from_it(
    noun: type[Machine | Plan | Workload], file: str, told: str
) -> None:
    with pytest.raises(TierloomError, match=told):
        noun.load(CATALOG / file)


def test_a_study_is_no_other_file() -> None:
    with pytest.raises(StudyError, match="this is a machine, not a study"):
        Study.load(CATALOG / "machines/liu-a.toml")
