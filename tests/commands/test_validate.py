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
from tierloom import validation
from tierloom.report.tables import validations

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
    assert validation.timed([sys.executable, "-c", is_lost]).exit_code == 0
    assert validation.timed(["sh", "-c", "yes | head -c 1000000"]).seconds > 0.0, "more than a pipe holds"


def test_what_a_program_leaves_running_is_not_waited_for(folder: Path) -> None:
    validation.timed(["sh", "-c", "sleep 1000 & echo $! > left"])
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
    ran = validation.Timed(1.0, 0.0, 0)
    machine = tierloom.Machine.of("dram 640GiB 100ns 100GB/s")

    def threads(told: int, told_first: int) -> int:
        return validation.row(["cg"], profile, machine, told, told_first, [ran])["threads"]

    assert threads(has, has + 1) == has
    assert threads(1, has) == 1
    assert [threads(told, has - 1) for told in (1, has, 99)] == [has] * 3, "it had more than it was told"


def test_without_programs_there_is_no_median(here: Path) -> None:
    found = tierloom.validate([["no-such-program"], ["nor-this-one"]], machine=here)
    assert found.data["summary"]["rows"] == 0
    assert found.data["summary"]["median_error"] is None
    assert validations.verdict(found) == "No program was validated."


def test_the_environment_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with validation.telling("OMP_NUM_THREADS", 2):
        assert os.environ["OMP_NUM_THREADS"] == "2"
    assert os.environ["OMP_NUM_THREADS"] == "3"
    with validation.telling("OMP_NUM_THREADS", None):
        assert os.environ["OMP_NUM_THREADS"] == "3"


def test_what_others_had_of_the_machine_is_told_from_what_the_program_had(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("cpu  300 20 100 90000 70 5 15 60 999 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert validation.machine_busy_s(tmp_path) == 500 / os.sysconf("SC_CLK_TCK"), "neither idle, nor a guest's twice"


def test_times_that_tell_of_others_are_said_to(here: Path, monkeypatch: pytest.MonkeyPatch, tierloom: Tierloom) -> None:
    def beside(others: float) -> str:
        monkeypatch.setattr(validation, "timed", lambda *_: validation.Timed(1.0, others, 0))
        return " ".join(tierloom("validate", "--machine", here, "--runs", "1", "--", "true").stderr.split())

    assert "others had 30 % of this machine's processors while true ran" in beside(0.3)
    assert "others had" not in beside(0.02)
