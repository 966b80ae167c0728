"""The sampler's referee: access counts of live runs against the exact counts that a workload writes.

The bounds are those that we publish. At the usual rate a recording may lie outside of one by chance: a loop that takes
3 % of five seconds has 300 samples, which tell its time to 6 %. So these take twice as many, and two of three
recordings decide. What recorded runs give, to the digit, is tested in `tests/recordings`.
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


Figures = Callable[[str, object], None]


def is_within(executable: Path, folder: Path, program: Path, threads: int, figures: Figures) -> bool:
    """Whether a recording keeps the bounds of its program; what was found is written down."""
    # So many rounds, not so many seconds: on a busy machine a run lasts longer and has as many samples.
    command = [program, "--threads", str(threads), "--truth", "truth.json"]
    profiled = [executable, "profile", "--hz", HZ, "-o", "it.profile", "--", *command]
    subprocess.run([*map(str, profiled)], check=True, capture_output=True, cwd=folder)
    profile = json.loads((folder / "it.profile" / "profile.json").read_text())
    truth = json.loads((folder / "truth.json").read_text())
    found = bench().Found(*bench().compare(profile, truth, verbose=True), profile["sampling"]["samples"])
    for name in ("tvd", "total"):
        figures(name, getattr(found, name))
    return found.within(program.name)


@pytest.mark.live(measures=True)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize(
    ("program", "threads"),
    [("stream", 1), ("stream", 2), ("gather", 1), ("gather", 2), ("phases", 1), ("phases", 2), ("cg", 1)],
)
def test_programs_whose_loops_count(
    executable: Path, folder: Path, workloads: Path, program: str, level: str, threads: int, record_property: Figures
) -> None:
    path = workloads.parent / level / program
    assert is_within(executable, folder, path, threads, record_property)


@pytest.mark.live(measures=True)
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", bench().OTHERS)
def test_programs_with_loops_that_do_not(
    executable: Path, folder: Path, workloads: Path, program: str, record_property: Figures
) -> None:
    assert is_within(executable, folder, workloads / program, 1, record_property)
