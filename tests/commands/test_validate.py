"""`tierloom validate`: a program runs several times, and what it took stands beside what was predicted."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from support import Run, Tierloom

import tierloom
from tierloom import timed_runs, validation
from tierloom.report.tables import validations
from tierloom.schema import ValidationDoc, ValidationRowDoc

pytestmark = pytest.mark.smoke

BUSY = ("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done")


@pytest.fixture
def here(folder: Path) -> Path:
    """A machine file that passes for this machine's: any processor, and memory as anybody may have it."""
    path = folder / "here.toml"
    tierloom.Machine.of("dram 64GiB 100ns 100GB/s").save(path)
    return path


def test_a_program_does_not_see_that_nobody_keeps_its_output() -> None:
    is_lost = "import os, sys; sys.exit(os.path.samestat(os.fstat(1), os.stat(os.devnull)))"
    assert timed_runs.timed([sys.executable, "-c", is_lost]).exit_code == 0
    assert timed_runs.timed(["sh", "-c", "yes | head -c 1000000"]).seconds > 0.0, "more than a pipe holds"


def test_what_a_program_leaves_running_is_not_waited_for(folder: Path) -> None:
    timed_runs.timed(["sh", "-c", "sleep 1000 & echo $! > left"])
    left = int((folder / "left").read_text())
    os.kill(left, signal.SIGKILL)  # An error if it has ended.


@pytest.mark.live
def test_what_was_predicted_stands_beside_what_was_measured(run: Run, here: Path) -> None:
    result = run("validate", "--machine", here, "--runs", "2", "--json", "--", *BUSY)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    [row] = found["rows"]
    assert (found["runs"], len(row["measured_s"])) == (2, 2)
    middle_s = sum(row["measured_s"]) / 2
    assert row["error"] == pytest.approx(row["predicted_s"] / middle_s - 1)
    assert row["residual"] == pytest.approx(row["modelled_s"] / middle_s - 1)
    assert row["inside"] is (row["low_s"] <= middle_s <= row["high_s"])
    assert abs(row["error"]) < 0.5, "it computes, on whatever machine"
    assert "done" in result.stderr, "its output is not lost in the run that is profiled"


@pytest.mark.live
def test_a_serial_program_takes_as_long_with_more_threads(run: Run, here: Path) -> None:
    result = run("validate", "--machine", here, "--runs", "1", "--threads", "1,4", "--json", "--", *BUSY)
    one, four = json.loads(result.stdout)["rows"]
    assert (one["threads"], four["threads"]) == (1, 4)
    assert one["predicted_s"] == pytest.approx(four["predicted_s"])


@pytest.mark.live
def test_a_file_of_programs_is_a_table_and_a_sentence(run: Run, here: Path, folder: Path) -> None:
    (folder / "programs.txt").write_text("# two of them\n\necho 1  # short\nno-such-program\nsh -c 'exit 2'\n")
    result = run("validate", "--machine", here, "--runs", "1", "--programs", "programs.txt")
    assert result.returncode == 0, result.stderr
    assert "of the measured times are inside the range" in " ".join(result.stdout.split())
    assert "echo 1" in result.stdout
    assert "sh -c 'exit 2'" in result.stdout, "it ends so every time"
    assert "left out" in result.stderr
    assert "no such program" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--threads", "1,x", "--", "true"), 2, "`x` is no number of threads"),
        (("--neighbours", "5", "--", "true"), 2, "--neighbours 5: write traffic as 5GB/s"),
        (("--", "sh", "-c", "test -e once && exit 3; touch once"), 1, "ended with 0, and with 3 under the profiler"),
        (("--", "no-such-program"), 127, "no such program"),
        (("--programs", "broken.txt"), 2, "broken.txt:1:"),
        (("--programs", "binary.txt"), 2, "binary.txt"),
        (("--programs", "none.txt"), 2, "none.txt"),
        ((), 2, "CMD"),
    ],
)
def test_what_cannot_be_validated_is_said(
    run: Run, here: Path, folder: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    (folder / "broken.txt").write_text("echo 'open\n")
    (folder / "binary.txt").write_bytes(b"\xff\xfe\x00" * 9)
    result = run("validate", "--machine", here, *words)
    assert result.returncode == code, result.stderr
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_a_machine_that_was_never_measured_has_to_be(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    result = run("validate", "--runs", "1", "--", "true")
    assert result.returncode == 2
    assert "tierloom machine measure" in result.stderr


def test_how_far_a_run_is_from_the_others() -> None:
    assert validation.repeat([1.0]) is None, "nothing to compare with"
    assert validation.repeat([2.0, 2.0, 2.0]) == 0.0
    assert validation.repeat([1.0, 2.0]) == pytest.approx((0.5 + 1.0) / 2), "each of the other"
    assert validation.repeat([1.0, 1.1, 0.9]) == pytest.approx(0.15 / 1.05), "between 0 and 15.8 %"


def test_half_of_the_runs_come_before_the_profiled_one(
    here: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a program appends shows who ran it: the profiler preloads a library, and nobody else does."""
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    word = 'case "$LD_PRELOAD" in *tierloom*) echo profiled;; *) echo "$OMP_NUM_THREADS";; esac >> order'
    answer = tierloom.validate([["sh", "-c", word]], machine=here, threads=[1, 2], runs=3)
    assert (folder / "order").read_text().split() == ["1", "profiled", "1", "1", "2", "2", "2"]
    assert [len(row["measured_s"]) for row in answer.data["rows"]] == [3, 3]


def test_a_program_that_does_not_go_by_what_it_is_told_is_predicted_as_it_is() -> None:
    profile = tierloom.Profile.load("cg-e")
    has = profile.data["program"]["threads"]

    def threads(told: int | None, told_first: int | None) -> int:
        return validation._threads(profile, told, told_first)

    assert threads(has, has + 1) == has
    assert threads(1, has) == 1
    assert threads(None, None) == has
    assert [threads(told, has - 1) for told in (1, has, 99)] == [has] * 3, "it had more than it was told"


def test_neighbours_traffic_is_in_what_is_predicted() -> None:
    profile = tierloom.Profile.load("cg-e")
    machine = tierloom.Machine.of("dram 640GiB 100ns 100GB/s")
    ran = timed_runs.Timed(1000.0, 0.0, 0)

    def predicted_s(gb_s: float) -> tuple[float, float]:
        row = validation.row(["cg"], profile, machine, validation.Condition(4, gb_s), 4, [ran])
        assert row["neighbours_gb_s"] == gb_s
        return row["predicted_s"], row["modelled_s"]

    quiet, some, much = predicted_s(0.0), predicted_s(20.0), predicted_s(70.0)
    assert quiet[0] < some[0] < much[0]
    assert quiet[1] < some[1] < much[1]


@pytest.mark.live
def test_a_program_runs_beside_neighbours(run: Run, here: Path) -> None:
    words = ("--runs", "1", "--neighbours", "1GB/s", "--json", "--", *BUSY)
    result = run("validate", "--machine", here, *words)
    if "none is left for neighbours" in result.stderr:
        pytest.skip("this machine has one core")
    quiet, loaded = json.loads(result.stdout)["rows"]
    assert quiet["neighbours_gb_s"] == 0.0
    assert 0.4 < loaded["neighbours_gb_s"] < 2.0
    assert loaded["others"] < quiet["others"] + 0.5 / (os.cpu_count() or 1), "neighbours are none of them"
    assert loaded["measured_s"][0] < 2 * quiet["measured_s"][0], "it has a core of its own"


def validated(*errors: float) -> ValidationDoc:
    """A validation whose rows are off by as much."""
    rows: list[ValidationRowDoc] = [
        {
            "command": ["it"],
            "told": None,
            "threads": 1,
            "profiled_threads": 1,
            "neighbours_gb_s": 0.0,
            "measured_s": [0.9, 1.0, 1.1],
            "repeat": validation.repeat([0.9, 1.0, 1.1]),
            "others": 0.0,
            "predicted_s": 1.0 + error,
            "low_s": 0.9 * (1.0 + error),
            "high_s": 1.1 * (1.0 + error),
            "error": error,
            "inside": abs(error) < 0.1,
            "modelled_s": 2.0,
            "residual": 1.0,
        }
        for error in errors
    ]
    return {"machine": "here", "runs": 3, "rows": rows, "failures": [], "summary": validation.summary(rows)}


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_picture_has_a_point_a_row_and_a_line_a_predictor(folder: Path, ending: str) -> None:
    charts = pytest.importorskip("tierloom.report.charts.validation")
    picture = pytest.importorskip("tierloom.report.charts.picture")
    figure = charts.errors(validated(0.02, -0.05, 0.3))
    times, shares = figure.axes
    drawn = [len(container.lines[0].get_xdata()) for container in times.containers]
    assert drawn == [2, 1], "inside, outside"
    assert [line.get_label() for line in shares.lines] == ["a prediction", "one run, of the others", "the model alone"]
    heights = dict(zip(*shares.lines[0].get_data(), strict=True))
    assert heights[0.05] == pytest.approx(2 / 3)
    picture.save(figure, folder / f"errors.{ending}")
    assert (folder / f"errors.{ending}").stat().st_size > 1000
    picture.save(charts.errors(validated()), folder / f"none.{ending}")


def test_without_programs_there_is_no_median(here: Path) -> None:
    found = tierloom.validate([["no-such-program"], ["nor-this-one"]], machine=here)
    assert found.data["summary"]["rows"] == 0
    assert found.data["summary"]["median_error"] is None
    assert validations.verdict(found) == "No program was validated."


def test_the_environment_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with timed_runs.telling("OMP_NUM_THREADS", 2):
        assert os.environ["OMP_NUM_THREADS"] == "2"
    assert os.environ["OMP_NUM_THREADS"] == "3"
    with timed_runs.telling("OMP_NUM_THREADS", None):
        assert os.environ["OMP_NUM_THREADS"] == "3"


def test_what_others_had_of_the_machine_is_told_from_what_the_program_had(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("cpu  300 20 100 90000 70 5 15 60 999 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert timed_runs.machine_busy_s(tmp_path) == 500 / os.sysconf("SC_CLK_TCK"), "neither idle, nor a guest's twice"


def test_times_that_tell_of_others_are_said_to(here: Path, monkeypatch: pytest.MonkeyPatch, tierloom: Tierloom) -> None:
    def beside(others: float) -> str:
        monkeypatch.setattr(validation, "timed", lambda *_: timed_runs.Timed(1.0, others, 0))
        return " ".join(tierloom("validate", "--machine", here, "--runs", "1", "--", "true").stderr.split())

    assert "others had 30 % of this machine's processors while true ran" in beside(0.3)
    assert "others had" not in beside(0.02)
