"""`tierloom validate`: a program runs several times, and what it took stands beside what was predicted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import Run, Tierloom, words_of

import tierloom
from tierloom import placed_runs, timed_runs, validation
from tierloom.commands import say
from tierloom.errors import PlacementError, RequestError
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
        (("--threads", "1,x", "--", "true"), 2, "threads: 'x' is no such number"),
        (("--neighbours", "5", "--", "true"), 2, "neighbours: '5' is no traffic"),
        (("--placements", "interlave", "--", "true"), 2, "there is no policy `interlave`"),
        (("--placements", "bind:cxl", "--", "true"), 2, "has no memory `cxl`"),
        (("--placements", "bind:dram", "--node", "dram=one", "--", "true"), 2, "`one` is no node number"),
        (("--placements", "bind:dram", "--node", "cxl=0", "--", "true"), 2, "no node `cxl`"),
        (("--sizes", "1,2", "--", "true"), 2, "`true` has no {size}"),
        (("--node", "dram=0", "--", "true"), 2, "--node does nothing without --placements"),
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


TWO = "dram 64GiB 100ns 100GB/s, cxl 64GiB 400ns 20GB/s"
"""A machine with two memories, for profiles of programs that ran on this one."""


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """This host passes for one with both memories of `TWO`, where runs take as long as their placement is told here."""
    took_s = {"bind:cxl": 4.0, "interleave:dram+cxl": 2.0}

    def timed_under(placed: tierloom.Plan, *_: object) -> timed_runs.Timed:
        return timed_runs.Timed(took_s[placed.data["policy"]], 0.0, 0, 0.25, ("be careful",))

    monkeypatch.setattr(placed_runs, "here", lambda *_: None)
    monkeypatch.setattr(validation, "timed", lambda *_: timed_runs.Timed(1.0, 0.0, 0))
    monkeypatch.setattr(validation, "timed_under", timed_under)
    return took_s


@pytest.mark.usefixtures("two_nodes")
def test_a_placement_is_predicted_and_measured_and_has_a_row() -> None:
    answer = tierloom.validate([["true"]], machine=TWO, runs=2, placements=["bind:cxl", "interleave", "local"])
    assert [row["placement"] for row in answer.data["rows"]] == ["local", "bind:cxl", "interleave:dram+cxl"]
    assert [row["measured_s"] for row in answer.data["rows"]] == [[1.0] * 2, [4.0] * 2, [2.0] * 2]
    assert [row["elsewhere"] for row in answer.data["rows"]] == [None, 0.25, 0.25]
    assert answer.data["failures"] == []


@pytest.mark.usefixtures("two_nodes")
def test_each_number_of_threads_is_placed_and_neighbours_are_beside_first_touch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(validation, "beside", lambda gb_s, _, runs: (gb_s, runs()))
    words = {"threads": [1, 2], "neighbours": [1.0], "placements": ["bind:cxl"]}
    answer = tierloom.validate([["true"]], machine=TWO, runs=1, **words)
    met = [(row["told"], row["neighbours_gb_s"], row["placement"]) for row in answer.data["rows"]]
    first_touch = [(told, gb_s, "local") for told in (1, 2) for gb_s in (0.0, 1.0)]
    assert met == [*first_touch, (1, 0.0, "bind:cxl"), (2, 0.0, "bind:cxl")]


def test_the_prediction_is_of_the_placement() -> None:
    profile = tierloom.Profile.load("cg-e")
    machine = tierloom.Machine.of(TWO.replace("64GiB", "640GiB"))
    ran = timed_runs.Timed(1000.0, 0.0, 0)

    def predicted_s(placement: str) -> tuple[float, float]:
        row = validation.row(["cg"], profile, machine, validation.Condition(4, 0.0, placement), 4, [ran])
        answer = tierloom.plan(profile, machine, threads=4, policies=[placement])
        assert row["predicted_s"] == answer.chosen["prediction"]["time_s"]
        return row["predicted_s"], row["modelled_s"]

    near, both, far = predicted_s("local"), predicted_s("interleave"), predicted_s("bind:cxl")
    assert near[0] < both[0] < far[0]
    assert near[1] < both[1] < far[1]


@pytest.mark.usefixtures("two_nodes")
def test_a_placement_has_a_column_and_what_to_know_of_it_is_said(folder: Path, tierloom: Tierloom) -> None:
    asked = ("validate", "--machine", TWO, "--runs", "1")
    result = tierloom(*asked, "--placements", "bind:cxl", "--plot", "errors.svg", "--", "true")
    assert "placement" in result.stdout
    assert "bind:cxl" in result.stdout
    words = " ".join(result.stderr.split())
    assert "25 % of true's pages were not where bind:cxl wants them" in words
    assert "true under bind:cxl: be careful" in words
    assert (folder / "errors.svg").exists()
    assert "placement" not in tierloom(*asked, "--", "true").stdout


@pytest.mark.usefixtures("two_nodes")
def test_a_placement_that_a_program_cannot_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> timed_runs.Timed:
        message = "it does not fit\nhint: leave it out"
        raise PlacementError(message)

    monkeypatch.setattr(validation, "timed_under", refused)
    answer = tierloom.validate([["true"]], machine=TWO, runs=1, placements="bind:cxl")
    assert [row["placement"] for row in answer.data["rows"]] == ["local"]
    assert answer.data["failures"] == [{"command": ["true"], "why": "it does not fit\nhint: leave it out"}]


def test_a_placement_may_be_a_policy_of_ones_own(folder: Path, two_nodes: dict[str, float]) -> None:
    two_nodes["mine.py:far"] = 3.0
    (folder / "mine.py").write_text(
        "def far(asked):\n    return {each['name']: 'bind:cxl' for each in asked.objects}\n"
    )
    answer = tierloom.validate([["true"]], machine=TWO, runs=1, placements="mine.py:far, bind:cxl")
    assert [row["placement"] for row in answer.data["rows"]] == ["local", "bind:cxl", "mine.py:far"]


ONE_NODE = {"ldram": 0, "cxl": 0}


def placed(policy: str) -> tierloom.Plan:
    return tierloom.plan("mg-e", "liu-a", threads=32, policies=[policy]).plan()


@pytest.mark.parametrize(
    ("policy", "given", "told"),
    [
        ("interleave:ldram+cxl", ONE_NODE, "node 0 (dram) would stand for cxl"),
        ("bind:ldram", {"ldram": 1023}, "--node ldram=1023: this machine has no node 1023"),
    ],
)
def test_a_node_that_is_not_the_memory_is_refused(policy: str, given: dict[str, int], told: str) -> None:
    with pytest.raises(RequestError) as refusal:
        placed_runs.here(placed(policy), given)
    assert told in str(refusal.value)
    assert str(refusal.value).count("\nhint: ") == 1


def test_placements_are_checked_before_anything_runs(folder: Path) -> None:
    with pytest.raises(RequestError, match="would stand for"):
        tierloom.validate([["touch", "ran"]], machine=TWO, placements=["bind:cxl"], nodes={"cxl": 0})
    assert not (folder / "ran").exists()


def test_weights_of_all_memory_are_the_kernels_where_it_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike, objects = placed("weighted:ldram=3+cxl=1"), placed("object-interleave:ldram+cxl")
    assert placed_runs.weighs_all_alike(alike)
    assert not placed_runs.weighs_all_alike(objects)
    assert not placed_runs.weighs_all_alike(placed("interleave:ldram+cxl"))
    monkeypatch.setattr(placed_runs, "WEIGHTS", tmp_path)
    with pytest.raises(PlacementError, match="this kernel has no"):
        placed_runs.weights_can_be_set(alike)
    (tmp_path / "node0").touch()
    placed_runs.weights_can_be_set(alike)


def test_a_placed_run_is_as_run_places_it_and_nothing_of_its_output_is_seen(
    here: Path, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The preload library is in every run but those of first touch."""
    words = [
        "sh",
        "-c",
        'echo out; echo err >&2; case "$LD_PRELOAD" in *tierloom*) echo lib;; *) echo bare;; esac >> order',
    ]
    answer = tierloom.validate([words], machine=here, runs=1, placements=["bind:dram", "interleave:dram"])
    assert (folder / "order").read_text().split() == ["lib", "bare", "lib", "lib"], "the first is the profiled one"
    assert [row["placement"] for row in answer.data["rows"]] == ["local", "bind:dram", "interleave:dram"]
    assert capfd.readouterr().out == "out\n", "of the profiled run"


def test_a_program_in_which_nothing_is_placed_is_left_out(here: Path, folder: Path) -> None:
    (folder / "still.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", "-o", "still", "still.c"], check=True)
    answer = tierloom.validate([["./still"]], machine=here, runs=1, placements=["bind:dram"])
    assert [row["placement"] for row in answer.data["rows"]] == ["local"]
    assert "nothing was placed" in answer.data["failures"][0]["why"]


def test_pages_that_are_elsewhere_are_a_share_of_those_that_are_there() -> None:
    nowhere = {"looked": 4, "absent": 4, "elsewhere": 0}
    some = {"looked": 12, "absent": 2, "elsewhere": 5}

    def share(*seen: dict[str, int]) -> float | None:
        return placed_runs.elsewhere({"rules": [{"residency": each} for each in seen]})  # type: ignore[typeddict-item]

    assert share() is None
    assert share(nowhere) is None
    assert share(nowhere, some) == 0.5


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
            "placement": "local",
            "ablated": None,
            "repeat": validation.repeat([0.9, 1.0, 1.1]),
            "others": 0.0,
            "elsewhere": None,
            "notes": [],
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


def test_where_room_is_short_the_range_outlives_the_spread_of_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    say.show(*validations.tables(validation.Validation(validated(0.3))))
    left_out = capsys.readouterr().out.split("Left out at 80 columns: ")[1].split(".")[0]
    assert {"from", "to"} <= {*left_out.split(", ")}
    assert "range" not in left_out


def test_a_picture_has_a_point_a_row_and_a_line_a_predictor(folder: Path) -> None:
    page = pytest.importorskip("tierloom.report.pages.validation")
    data = validated(0.02, -0.05, 0.3)
    times, shares = page.picture(data).charts
    assert [row["inside"] for row in times.data] == [page.INSIDE, page.INSIDE, page.OUTSIDE]
    lines = list(dict.fromkeys(row["what"] for row in shares.data))
    assert lines == ["a prediction", "run again", "the model alone"]
    heights = {round(row["error"], 6): row["share"] for row in shares.data if row["what"] == lines[0]}
    assert heights[0.05] == pytest.approx(2 / 3)
    picture = pytest.importorskip("tierloom.report.picture")
    picture.save(page.picture(data), folder / "errors.svg")
    assert {"1 s", page.OUTSIDE, *lines} <= set(words_of(folder / "errors.svg"))
    assert [chart.title for chart in tierloom.charts(data)] == [times.title, shares.title]


def test_a_picture_of_no_rows_says_so(folder: Path) -> None:
    picture = pytest.importorskip("tierloom.report.picture")
    page = pytest.importorskip("tierloom.report.pages.validation")
    picture.save(page.picture(validated()), folder / "none.svg")
    assert "No program was validated." in words_of(folder / "none.svg")


def test_without_programs_there_is_no_median(here: Path) -> None:
    found = tierloom.validate([["no-such-program"], ["nor-this-one"]], machine=here)
    assert found.data["summary"]["rows"] == 0
    assert found.data["summary"]["median_error"] is None
    assert validations.verdict(found.data) == "No program was validated."


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


def test_nobody_knows_what_others_had_of_a_run_of_less_than_some_ticks(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter(range(0, 1000, 10))
    monkeypatch.setattr(timed_runs, "machine_busy_s", lambda: next(looks))
    short, long = (timed_runs.watched(lambda _, s=s: timed_runs.Timed(s, 0.0, 0)).others for s in (0.0016, 10.0))
    assert short is None
    assert long == pytest.approx((10 - timed_runs.TICKS_S) / 10 / (os.cpu_count() or 1), rel=0.01)
    row = tierloom.validate([["true"]], machine=here, runs=1).data["rows"][0]
    assert row["others"] is None


def test_each_size_is_profiled_and_has_a_row(here: Path) -> None:
    answer = tierloom.validate([["expr", "1", "+", "{size}"]], machine=here, sizes="10, 20", runs=1)
    assert [row["command"][-1] for row in answer.data["rows"]] == ["10", "20"]
    shown = validations.tables(answer)[1]
    assert all(f"expr 1 + {size}" in str(row) for size, row in zip((10, 20), shown.rows, strict=True))


def test_times_that_tell_of_others_are_said_to(here: Path, monkeypatch: pytest.MonkeyPatch, tierloom: Tierloom) -> None:
    def beside(others: float) -> str:
        monkeypatch.setattr(validation, "timed", lambda *_: timed_runs.Timed(1.0, others, 0))
        return " ".join(tierloom("validate", "--machine", here, "--runs", "1", "--", "true").stderr.split())

    assert "others had 30 % of this machine's processors while true ran" in beside(0.3)
    assert "others had" not in beside(0.02)
