"""Fitting gives back what made the runs, and says how far it is from them; the measured study holds."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import works_or_explains

from tierloom.capacity import Run, Spill, fit, held_out, load_runs, run_files
from tierloom.capacity.fit import solve
from tierloom.capacity.runs import medians
from tierloom.errors import RequestError

MIB = 2**20
SIZES = [int(128 * MIB * 1.4**step) for step in range(9)]


def made(job: Spill, streams: tuple[int, ...] = (1,)) -> list[Run]:
    """Runs that a job would have."""
    return [
        Run(memory_bytes=size, streams=count, seconds=job.seconds(size, count)) for size in SIZES for count in streams
    ]


@pytest.mark.parametrize(
    ("exponent", "working"),
    [(-1.0, 700 * MIB), *((power, size) for power in (0.7, 1.6, 3.0) for size in (700 * MIB, math.inf))],
)
def test_a_curve_is_found_again(exponent: float, working: float) -> None:
    job = Spill(compute_s=40, storage_s=60, exponent=exponent, reference_bytes=128 * MIB, working_set_bytes=working)
    found = fit(made(job))
    for size in SIZES:
        assert found.spill.seconds(size) == pytest.approx(job.seconds(size), rel=0.03)
    assert found.spread < 0.06


def test_nothing_is_said_of_the_scatter_of_runs_that_nobody_repeated() -> None:
    job = Spill(compute_s=40, storage_s=60, exponent=1.0, reference_bytes=128 * MIB, working_set_bytes=math.inf)
    assert fit(made(job)).scatter is None
    assert fit([*made(job), *made(job)]).scatter == 0.0


def test_streams_are_found_again() -> None:
    job = Spill(compute_s=20, storage_s=3, exponent=1.6, reference_bytes=128 * MIB, alone=0.4, sharing=0.6)
    found = solve(medians(made(job, (1, 2, 4))))
    for size in SIZES:
        for streams in (1, 2, 4, 6):
            assert found.seconds(size, streams) == pytest.approx(job.seconds(size, streams), rel=0.08)


def test_what_is_held_out_is_not_seen() -> None:
    job = Spill(compute_s=40, storage_s=60, exponent=1.5, reference_bytes=128 * MIB)
    runs = made(job)
    changed = [
        Run(memory_bytes=run.memory_bytes, seconds=run.seconds * 3) if run.memory_bytes == SIZES[4] else run
        for run in runs
    ]
    one, other = (held_out(each, [SIZES[4]]).points[0] for each in (runs, changed))
    assert one.model_s == other.model_s
    assert (one.seconds, other.seconds) == (runs[4].seconds, runs[4].seconds * 3)


def test_repeats_become_medians() -> None:
    runs = [Run(memory_bytes=MIB, seconds=seconds) for seconds in (3.0, 100.0, 4.0)]
    assert [run.seconds for run in medians(runs)] == [4.0]


def test_two_points_are_no_curve() -> None:
    with pytest.raises(RequestError, match="hint: give runs with at least 3"):
        fit([Run(memory_bytes=size, seconds=1.0) for size in SIZES[:2]])


def test_a_memory_that_was_not_run_cannot_be_held_out() -> None:
    with pytest.raises(RequestError, match="no run has 5B of memory"):
        held_out([Run(memory_bytes=size, seconds=1.0) for size in SIZES], [5])


def test_a_file_is_read_back(tmp_path: Path) -> None:
    runs = [Run(memory_bytes=256 * MIB, streams=2, seconds=1.5, read_bytes=1e9, written_bytes=2e6)]
    path = tmp_path / "runs.csv"
    path.write_text(run_files.write(runs, ["a note"]))
    assert run_files.read(path) == runs


def test_people_write_memory_with_units() -> None:
    assert run_files.parse("memory,seconds\n256MiB,3\n1GiB,2\n", "mine")[1].memory_bytes == 2**30


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column"),
        ("memory,seconds\n", "no run"),
        ("memory\n1GiB\n", "no column `seconds`"),
        ("seconds\n1\n", "no column `memory`"),
        ("memory,seconds\n1GiB,soon\n", "run 1: `seconds` is `soon`"),
        ("memory,seconds\n0,1\n", "above 0"),
        ("memory,seconds,streams\n1GiB,1,0.5\n", "no number of streams"),
    ],
)
def test_a_file_that_makes_no_sense_is_explained(text: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        run_files.parse(text, "mine")


@given(st.text(alphabet='memory,seconds\n0123456789.GiBe-"#x', max_size=60))
def test_any_text_is_read_or_explained(text: str) -> None:
    works_or_explains(lambda: run_files.parse(f"memory,seconds\n{text}", "mine"))


# --- the study of docs/capacity.md --------------------------------------------------------------

WITHIN = 0.15
HELD = (200, 320, 512, 800)
"""Every second memory size in MiB, without the ends: what docs/capacity.md holds out."""


def test_the_measured_study_is_predicted_where_it_was_not_seen() -> None:
    apart = held_out(load_runs("duckdb-tpch"), [size * MIB for size in HELD])
    assert [point.memory_bytes for point in apart.points] == [size * MIB for size in HELD]
    assert apart.spread <= WITHIN


def test_the_measured_study_spills_at_its_small_end_only() -> None:
    middle = medians(load_runs("duckdb-tpch"))
    assert middle[0].spilled_bytes > 100e6
    assert middle[-1].spilled_bytes < 1e6
    assert middle[0].seconds > 1.3 * middle[-1].seconds
