"""Recordings that are kept, analysed again: the estimator's figures are those of the table, on every machine.

Recording is left out, so nothing here is luck: a figure that moves was moved by a change of the code.
"""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path

import pytest
from recordings.estimates import KEPT, analysed, bench, estimate, intervals, names, of_workloads, profile, table, truth

MARGIN = 0.1
"""Percent points by which a figure may differ from the table's: another C library rounds a logarithm otherwise."""

TURNED = "rewrite the table with `make estimates` and read the difference"


def test_every_recording_has_its_line() -> None:
    assert sorted(table()) == names()


@pytest.mark.parametrize("name", names())
def test_the_estimate_is_what_the_table_says(name: str) -> None:
    found, expected = estimate(name), table()[name]
    assert found.samples == expected.samples
    assert found.tvd == pytest.approx(expected.tvd, abs=MARGIN), TURNED
    assert found.total == pytest.approx(expected.total, abs=MARGIN), TURNED


@pytest.mark.parametrize("name", of_workloads())
def test_a_workload_is_within_its_promise(name: str) -> None:
    found = table()[name]
    assert bench().Found(found.tvd, found.total, found.samples).within(name.rpartition("-")[0])


@pytest.mark.timeout(900)  # It analyses all of them.
def test_counts_lie_in_their_intervals_and_these_are_narrow() -> None:
    found = [one for name in names() for one in intervals(name)]
    outside = [one for one in found if not one.holds]
    assert len(found) > 150
    assert len(outside) <= 0.1 * len(found), outside
    assert statistics.median(one.half for one in found) < 0.15


def test_who_guesses_says_so() -> None:
    sure, guessed = (intervals(name) for name in ("nbody-O2", "search_tree-O2"))
    assert max(one.half for one in sure) < 0.15
    assert min(one.half for one in guessed) > 0.5
    assert "counts_rough" in {one["kind"] for one in profile("search_tree-O2")["sampling"]["warnings"]}


@pytest.mark.parametrize("name", names())
def test_every_object_of_the_truth_is_found(name: str) -> None:
    assert [one["name"] for one in truth(name)["objects"] if not bench().find(profile(name), one)] == []


@pytest.mark.parametrize("name", ["cg-O3", "hash_join-O2", "stencil-O2"])
def test_the_profile_is_the_same_bytes_again_and_in_another_folder(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / name
    shutil.copytree(KEPT / name, copy)
    for number, folder in enumerate([KEPT / name, KEPT / name, copy]):
        analysed(folder).save(tmp_path / f"{number}.profile")
    for file in ("profile.json", "samples.npy"):
        first, again, moved = ((tmp_path / f"{number}.profile" / file).read_bytes() for number in range(3))
        assert first == again
        assert first == moved
