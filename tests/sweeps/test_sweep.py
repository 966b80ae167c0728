"""What is swept is computed once, kept, and found again: after a change, after a crash, with workers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet
from support import ROOT, Tierloom

import tierloom as package
from tierloom.errors import MissingPackageError, StudyError
from tierloom.placements import fractions
from tierloom.sweeps import Progress, Study, Sweep, sweep, worker

START = 'version = 1\nverb = "predict"\n[parameters]\nprofile = "mg-e"\nmachine = "liu-a"\nrest = "ldram"\n'
GRID = START + '[axes]\nthreads = [8, 16]\n"place.u.cxl" = { from = 0.0, to = 1.0, steps = 21 }\n'


def rows(found: Sweep) -> list[dict]:
    return parquet.read_table(found.table).to_pylist()


def run_here(text: str, folder: Path, **options: object) -> Sweep:
    return sweep(Study.parse(text), folder, workers=0, **options)


def truth() -> dict[tuple[int, float], float]:
    """The same points one by one, by the function that the verb stands for."""
    profile, machine = package.Profile.load("mg-e"), package.Machine.load("liu-a")
    asked = [(threads, step / 20) for threads in (8, 16) for step in range(21)]
    place = {at: fractions(profile, machine, {"u.cxl": at[1]}, rest="ldram") for at in asked}
    return {at: package.predict(profile, machine, place[at], threads=at[0]).time_s for at in asked}


def test_the_table_holds_what_the_function_says(folder: Path) -> None:
    found = run_here(GRID, folder)
    table = rows(found)
    assert {(row["threads"], row["place.u.cxl"]): row["time_s"] for row in table} == truth()
    assert len({row["key"] for row in table}) == len(table) == 42
    assert {row["machine"] for row in table} == {"liu-a"}
    assert found.counts == {"done": 42, "refused": 0, "lost": 0}
    best = min(table, key=lambda row: row["time_s"])
    assert found.data["best"] == {name: best[name] for name in ("threads", "place.u.cxl", "time_s")}
    told = parquet.read_schema(found.table).metadata
    assert told[b"study"].decode() == GRID


def test_an_axis_that_makes_no_difference_is_told(folder: Path, tierloom: Tierloom) -> None:
    """A program of which nobody saw more than one thread is predicted with one, however many it may have."""
    alone = json.loads(package.Profile.load("mg-e").text)
    alone["program"]["threads"] = 1
    alone["sampling"] = {"event": "cpu-clock", "hz": 997.0, "samples": 1000, "lost": 0, "skid_purity": 1.0}
    for phase in alone["phases"]:
        phase["threads"] = 1
    package.Profile(json.dumps(alone)).save(folder / "alone.profile", b"")
    text = GRID.replace('"mg-e"', '"alone.profile"').replace("steps = 21", "steps = 3")
    (folder / "threads.toml").write_text(text)
    result = tierloom("sweep", "threads.toml", "--workers", "0", "--json")
    assert json.loads(result.stdout)["without_effect"] == ["threads"]
    assert "threads makes no difference here: time_s is the same" in result.stderr
    assert run_here(GRID, folder).data["without_effect"] == []


def test_nothing_is_computed_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_here(GRID, folder)
    again = run_here(GRID, folder)
    assert (first.data["computed"], again.data["computed"]) == (42, 0)
    assert rows(again) == rows(first)
    wider = run_here(GRID.replace("[8, 16]", "[16, 24, 8]"), folder)
    assert wider.data["computed"] == 21, "only the new axis value"
    assert {row["threads"] for row in rows(wider)} == {8, 16, 24}
    monkeypatch.setattr("tierloom.sweeps.keys.code_id", lambda: "another")
    assert run_here(GRID, folder).data["computed"] == 42, "another version computes anew"


def test_a_crash_loses_only_what_was_under_way(folder: Path) -> None:
    class Crash(Exception):  # noqa: N818 (no error of ours)
        pass

    done: list[int] = []

    def crash(progress: Progress) -> None:
        done.append(progress.done)
        if len(done) == 2:
            raise Crash

    with pytest.raises(Crash):
        run_here(GRID, folder, progress=crash)
    again = run_here(GRID, folder)
    assert again.data["computed"] == 42 - done[-1] < 42
    assert {(row["threads"], row["place.u.cxl"]): row["time_s"] for row in rows(again)} == truth()


def test_points_that_cannot_be_are_kept_with_their_reason(folder: Path) -> None:
    text = START + '[axes]\n"place.u.cxl" = [0.5, 1.5]\n'
    found = run_here(text, folder)
    assert found.counts == {"done": 1, "refused": 1, "lost": 0}
    done, refused = rows(found)
    assert done["time_s"] > 0
    assert refused["time_s"] is None
    assert "shares are 0 or more" in refused["error"]
    assert found.data["failures"] == [{"reason": "place.u: shares of 1.5 in all", "points": 1}]
    assert run_here(text, folder).data["computed"] == 0
    assert run_here(text, folder, retry_failed=True).data["computed"] == 1


def test_a_fault_of_ours_is_kept_and_tried_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        1 / 0  # noqa: B018 (any fault)

    with monkeypatch.context() as patch:
        patch.setattr("tierloom.sweeps.placement_rows.predict_row", broken)
        patch.setattr(worker, "VERBS", {"predict": broken})
        found = run_here(GRID, folder)
    assert found.counts["lost"] == 42
    assert rows(found)[0]["error"] == "ZeroDivisionError: division by zero"
    assert run_here(GRID, folder).counts["done"] == 42


def test_points_that_are_the_same_are_computed_once(folder: Path) -> None:
    sample = '[sample]\nmethod = "latin-hypercube"\npoints = 30\n'
    found = run_here(f"{START}[axes]\nthreads = {{ from = 1, to = 4 }}\n{sample}", folder)
    assert (found.total, found.data["computed"]) == (30, 4)
    assert len(rows(found)) == 30


SEARCH = (
    START + '[axes]\n"place.u.cxl" = { from = 0.0, to = 1.0 }\n"place.r.cxl" = { from = 0.0, to = 1.0 }\n'
    '[sample]\nmethod = "search"\npoints = 48\nseed = 3\nobjective = { time_s = "minimize" }\n'
)


def test_a_search_finds_better_than_chance_and_asks_the_same_again(folder: Path) -> None:
    found = run_here(SEARCH, folder / "one")
    times = [row["time_s"] for row in rows(found)]
    assert min(times[16:]) < min(times[:16]), "what was learnt from the first generation is of use"
    assert [row["key"] for row in rows(run_here(SEARCH, folder / "two"))] == [row["key"] for row in rows(found)]
    longer = run_here(SEARCH.replace("points = 48", "points = 64"), folder / "one")
    assert longer.data["computed"] == 16, "the way to there is replayed from the store"


def test_a_search_for_what_is_not_there_names_what_is(folder: Path) -> None:
    with pytest.raises(StudyError, match="use one of: time_s"):
        run_here(SEARCH.replace("time_s", "speed"), folder)


def test_what_is_not_installed_is_named_with_the_way_to_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, text, workers in (("distributed", GRID, 1), ("optuna", SEARCH, 0), ("pyarrow", GRID, 0)):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(MissingPackageError, match=r"pip install '\.\[sweep\]'"):
                sweep(Study.parse(text), folder / module, workers=workers)


def test_a_store_that_is_none_is_refused(folder: Path) -> None:
    (folder / "results.sqlite").write_text("x" * 4096)
    with pytest.raises(StudyError, match="choose another folder"):
        run_here(GRID, folder)


def test_other_verbs_do_not_pay_for_it() -> None:
    heavy = "distributed dask pyarrow optuna pandas"
    told = f"import sys, tierloom.commands.sweep; print([m for m in '{heavy}'.split() if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("folder")
def test_the_command_tells_the_best_point_and_the_reasons(tierloom: Tierloom, folder: Path) -> None:
    (folder / "mine.toml").write_text(START + '[axes]\n"place.u.cxl" = [0.5, 0.0, 1.5]\n')
    result = tierloom("sweep", "mine.toml", "--workers", "0")
    assert result.exit_code == 0, result.stderr
    assert "place.u: shares of 1.5 in all" in result.stdout
    assert "wrote mine.sweep/results.parquet" in result.stderr
    document = json.loads(tierloom("sweep", "mine.toml", "--workers", "0", "--json").stdout)
    assert (document["points"], document["done"], document["refused"], document["computed"]) == (3, 2, 1, 0)
    (folder / "none.toml").write_text(START + '[axes]\n"place.u.cxl" = [1.5, 2.0]\n')
    none = tierloom("sweep", "none.toml", "--workers", "0")
    assert none.exit_code == 2, "not one point could be computed, and it is the study that is wrong"
    assert "error: every point was refused" in none.stderr
    assert "tierloom report" not in none.stderr
    assert "place.u: shares of" in none.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sweep", "cxl-chair"), "did you mean cxl-share"),
        (("sweep", "no/such.toml"), "No such file"),
        (("sweep", "cxl-share", "--workers", "-1"), "x>=0"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_wrong_request_ends_with_words(tierloom: Tierloom, words: tuple[str, ...], said: str) -> None:
    result = tierloom(*words)
    assert result.exit_code == 2
    assert said in result.stderr


def killing(folder: Path, mode: str) -> dict:
    (folder / "study.toml").write_text(GRID)
    command = [
        sys.executable,
        str(ROOT / "tests/sweeps/killing.py"),
        mode,
        str(folder / "study.toml"),
        str(folder / "out"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    told: dict = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_killed_worker_loses_nothing(folder: Path) -> None:
    told = killing(folder, "first")
    assert told["counts"] == {"done": 42, "refused": 0, "lost": 0}
    assert told["pids"][0] not in told["pids"][1:], "it was killed after its first answer"
    again = run_here(GRID, folder / "out")
    assert again.data["computed"] == 0
    assert {(row["threads"], row["place.u.cxl"]): row["time_s"] for row in rows(again)} == truth()


@pytest.mark.live
@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_point_that_workers_die_of_is_found_and_the_others_are_computed(folder: Path) -> None:
    told = killing(folder, "poison")
    assert told["states"].count("lost") == 1
    assert told["states"].count("done") == 7
    assert told["poisoned"] == "lost"


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_scheduler_that_is_not_there_is_named(executable: Path, folder: Path) -> None:
    command = [str(executable), "sweep", "cxl-share", "--scheduler", "tcp://127.0.0.1:9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 1
    assert "no scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
