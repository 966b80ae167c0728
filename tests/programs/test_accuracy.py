"""The sampler's referee: access counts of live runs against the exact counts that a workload writes.

The bounds are those that we publish. At the usual rate a recording may lie outside of one by chance: a loop that takes
3 % of five seconds has 300 samples, which tell its time to 6 %. So these take twice as many, and the verdict is the
median of three; two that agree are enough. What recorded runs give, to the digit, is tested in `tests/recordings`.
Programs with looser bounds run in the long job, one at a time.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from recordings.estimates import bench

pytestmark = pytest.mark.slow

#: Samples a second: twice the usual rate.
HZ = 3989


def most_of_three(once: Callable[[], bool]) -> bool:
    """What two of three tries say."""
    first, second = once(), once()
    return first if first == second else once()


def is_within(executable: Path, folder: Path, program: Path, threads: int) -> bool:
    """Whether a recording keeps the bounds of its program; what was found is printed."""
    # So many rounds, not so many seconds: on a busy machine a run lasts longer and has as many samples.
    command = [program, "--threads", str(threads), "--truth", "truth.json"]
    profiled = [executable, "profile", "--hz", HZ, "-o", "it.profile", "--", *command]
    subprocess.run([*map(str, profiled)], check=True, capture_output=True, cwd=folder)
    profile = json.loads((folder / "it.profile" / "profile.json").read_text())
    truth = json.loads((folder / "truth.json").read_text())
    found = bench().Found(*bench().compare(profile, truth, verbose=True), profile["sampling"]["samples"])
    print(found)  # noqa: T201 (comes back when it fails)
    return found.within(program.name)


@pytest.mark.live
@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize(
    ("program", "threads"),
    [("stream", 1), ("stream", 2), ("gather", 1), ("gather", 2), ("phases", 1), ("phases", 2), ("cg", 1)],
)
def test_programs_whose_loops_count(
    executable: Path, folder: Path, workloads: Path, program: str, level: str, threads: int
) -> None:
    path = workloads.parent / level / program
    assert most_of_three(lambda: is_within(executable, folder, path, threads))


@pytest.mark.live
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", bench().OTHERS)
def test_programs_with_loops_that_do_not(executable: Path, folder: Path, workloads: Path, program: str) -> None:
    assert most_of_three(lambda: is_within(executable, folder, workloads / program, 1))


@pytest.mark.parametrize(
    ("tries", "verdict", "used"),
    [
        ([True, True], True, 2),
        ([False, False], False, 2),
        ([True, False, True], True, 3),
        ([False, True, False], False, 3),
    ],
)
def test_two_that_agree_are_enough(tries: list[bool], verdict: bool, used: int) -> None:  # noqa: FBT001
    left = iter(tries)
    assert most_of_three(lambda: next(left)) == verdict
    assert len(tries) - len(list(left)) == used
