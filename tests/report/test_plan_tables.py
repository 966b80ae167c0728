"""The table of policies: which one is chosen, why, and what keeps others from being used."""

from __future__ import annotations

import copy
import re

import pytest
from support import Tierloom

import tierloom as package
from tierloom.policy_search import Comparison
from tierloom.report.tables import plans

TIED = ("preferred:ldram", "local", "bind:ldram")
"""Where all data fit in `ldram`, one placement by three names."""


@pytest.fixture(scope="module")
def tied() -> Comparison:
    return package.plan("mg-e", "liu-a", threads=32, policies=TIED)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("columns", [60, 160])
def test_the_chosen_policy_is_marked_where_there_are_no_colours(
    tierloom: Tierloom, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = tierloom("plan", "mg-e", "-m", "liu-a", "-t", "32", "--fast-memory", "64GiB").stdout
    assert re.findall(r"^ \* (\S+)", shown, re.MULTILINE) == ["tierloom"]
    assert "* chosen." in shown
    assert "   local  " in shown, "the others stand as far from the edge"


@pytest.mark.usefixtures("folder")
def test_in_a_block_the_mark_stands_at_its_head(tierloom: Tierloom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "34")
    shown = tierloom("plan", "mg-e", "-m", "liu-a", "--policies", "local,soar").stdout
    assert re.findall(r"^\* policy: (\S+)", shown, re.MULTILINE) == ["local"]
    assert re.findall(r"^policy: (\S+)", shown, re.MULTILINE) == ["soar"]


@pytest.mark.usefixtures("folder")
def test_the_range_of_a_time_outlives_the_memory_that_is_used(
    tierloom: Tierloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = tierloom("plan", "mg-e", "-m", "liu-a", "-t", "32", "--fast-memory", "64GiB").stdout
    left_out = shown[shown.index("Left out at 60 columns:") :].split("A wider")[0]
    assert "used" in left_out
    assert "range" not in left_out
    assert re.search(r"\* tierloom +\d+ s +\d+ s to \d+ s", shown)


@pytest.mark.usefixtures("folder")
def test_what_a_memory_waits_outlives_what_it_moved(tierloom: Tierloom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = tierloom("plan", "mg-e", "-m", "liu-a", "-t", "32", "--fast-memory", "64GiB").stdout
    [left_out] = re.findall(r"What each memory does.*?Left out at 60 columns: (.*?)\. A wider", shown, re.DOTALL)
    assert left_out.split(", ") == ["read", "written"]


def test_of_the_runs_of_a_simulation_the_fastest_stand_first(tierloom: Tierloom) -> None:
    ask = ("-w", "silo", "-m", "bytedance-spr-a1000", "--nodes", "ldram,cxl", "--fast-memory", "50%")
    shown = tierloom("simulate", *ask, "--evaluator", "cohort", "--policy", "none,tiering,tierloom").stdout
    assert "tierloom is fastest" in shown
    assert re.search(r"^ counter +tierloom +tiering +none$", shown, re.MULTILINE), "the last ones go first"
    assert "What each memory did under tiering" in shown, "tierloom moves no page here"


def test_of_policies_that_take_as_long_the_first_is_chosen_and_why_is_said(tied: Comparison) -> None:
    assert tied.brief["chosen"] == TIED[0]
    note = plans.policies(tied.brief).note
    assert "preferred:ldram is chosen over local, bind:ldram, as fast to 0.1 %: it comes before them" in note


def test_one_that_takes_less_fast_memory_is_chosen_for_that(tied: Comparison) -> None:
    data = copy.deepcopy(tied.brief)
    data["chosen"] = "local"
    assert "local is chosen over preferred:ldram, bind:ldram" in plans.policies(data).note
    assert "it takes less ldram" in plans.policies(data).note


def test_nothing_is_said_of_one_that_is_faster_than_all() -> None:
    answer = package.plan("mg-e", "liu-a", threads=32, policies=["local", "preferred:cxl"])
    assert "is chosen over" not in plans.policies(answer.brief).note


def test_data_that_fit_nowhere_are_all_of_them_and_not_one_object() -> None:
    answer = package.plan("mg-e", "liu-a", threads=32, fast_memory="64GiB", policies=["local", "bind:ldram"])
    [reason] = plans.policies(answer.brief).reasons
    assert reason == "not possible: 211.0GiB of data do not fit in ldram: 147.0GiB too much, room ended at `u`"
