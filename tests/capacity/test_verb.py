"""`tierloom capacity`: tables that do not change by themselves, one document under --json, errors with a hint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import ROOT, Tierloom, words_of
from syrupy.assertion import SnapshotAssertion

PLAN = ("capacity", "plan", "mine.csv", "--dram", "128MiB,512MiB,1GiB", "--cxl", "0B,512MiB", "--server", "5")
COST = ("capacity", "cost", "--dram", "10", "--cxl", "8", "--dram-to-cxl", "2", "--server-cost", "1.1")
SHAPE = ("capacity", "shape", "--vcpus", "192", "--dram", "576GiB", "--per-vcpu", "4GiB")
FLEET = ("capacity", "fleet", "--data", "40TiB", "--seconds", "120", "--server", "9000")
TIERS = ("--tier", "dram:90:4:1TiB", "--tier", "cxl:45:3:1TiB", "--tier", "ssd:6:0.1:30TiB", "--heat", "10%:80%")

MINE = """memory,seconds,read_bytes,written_bytes
128MiB,58.0,4.0e9,3.1e9
256MiB,33.5,1.6e9,1.1e9
384MiB,26.0,0.9e9,0.5e9
512MiB,22.6,0.5e9,0.2e9
768MiB,20.1,0.3e9,0
1GiB,20.0,0.3e9,0
"""


@pytest.fixture(autouse=True)
def mine(folder: Path) -> Path:
    """A user's own runs."""
    path = folder / "mine.csv"
    path.write_text(MINE)
    return path


@pytest.mark.parametrize(
    "words",
    [("capacity", "fit", "mine.csv"), PLAN, COST, SHAPE, (*FLEET, *TIERS), ("capacity", "published", "keydb")],
    ids=["fit", "plan", "cost", "shape", "fleet", "published"],
)
def test_the_tables(tierloom: Tierloom, snapshot: SnapshotAssertion, words: tuple[str, ...]) -> None:
    result = tierloom(*words)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == snapshot


def test_fit_prints_one_document(tierloom: Tierloom) -> None:
    answer = json.loads(tierloom("capacity", "fit", "mine.csv", "--json").stdout)
    assert answer["points"][0]["memory_bytes"] == 128 * 2**20
    assert answer["points"][0]["unseen_error"] is None, "the ends are not predicted: nothing lies beyond"
    inner = [abs(point["unseen_error"]) for point in answer["points"][1:-1]]
    assert answer["spread"] == max(inner)


def test_hold_out_shows_what_was_held_out(tierloom: Tierloom) -> None:
    answer = json.loads(tierloom("capacity", "fit", "mine.csv", "--hold-out", "256MiB,512MiB", "--json").stdout)
    assert [point["memory_bytes"] for point in answer["points"]] == [256 * 2**20, 512 * 2**20]


def test_three_amounts_of_memory_are_enough(tierloom: Tierloom, folder: Path) -> None:
    (folder / "three.csv").write_text("\n".join(MINE.splitlines()[:4]))
    result = tierloom("capacity", "fit", "three.csv")
    assert result.exit_code == 0, result.stderr
    assert "nothing spills" not in result.stdout, "a working set cannot be told from three points"
    assert "memory that the fit has seen" in result.stdout, "and none is left to hold out"


def test_less_memory_than_was_run_is_called_a_guess(tierloom: Tierloom) -> None:
    assert "warning" not in tierloom(*PLAN).stderr
    below = tierloom("capacity", "plan", "mine.csv", "--dram", "64MiB,256MiB")
    assert "1 of 2 purchases hold less memory than any run had (128MiB)" in below.stderr


def test_plan_meets_what_was_asked(tierloom: Tierloom) -> None:
    answer = json.loads(tierloom(*PLAN, "--results", "120", "--json").stdout)
    assert answer["chosen"]["results_h"] >= 120
    assert answer["chosen"] in answer["purchases"]
    money = json.loads(tierloom(*PLAN, "--budget", "7", "--json").stdout)
    assert money["chosen"]["usd"] <= 7


def test_the_others_print_one_document_each(tierloom: Tierloom) -> None:
    assert json.loads(tierloom(*COST, "--json").stdout)["servers"] == pytest.approx(0.6729, abs=1e-4)
    assert json.loads(tierloom(*SHAPE, "--json").stdout)["sold"] == 144
    assert json.loads(tierloom(*FLEET, *TIERS, "--json").stdout)["servers"] >= 1
    listed = json.loads(tierloom("capacity", "list", "--json").stdout)
    found = json.loads(tierloom("capacity", "published", "--json").stdout)
    assert {case["name"] for case in listed["cases"]} == set(found["cases"])


def test_pictures_are_drawn_the_same_way_twice(tierloom: Tierloom, folder: Path) -> None:
    for name in ("one", "two"):
        assert tierloom("capacity", "fit", "mine.csv", "--plot", f"{name}.svg").exit_code == 0
        assert tierloom(*PLAN, "--plot", f"{name}-plan.svg").exit_code == 0
    for kind in ("", "-plan"):
        assert (folder / f"one{kind}.svg").read_bytes() == (folder / f"two{kind}.svg").read_bytes()
    assert {"128MiB", "512MiB", "1GiB", "1 stream", "Storage traffic"} <= set(words_of(folder / "one.svg"))
    assert {"DRAM alone", "with CXL memory", "chosen"} <= set(words_of(folder / "one-plan.svg"))


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("fit", "nothing.csv"), "nothing.csv: No such file", 2),
        (("fit", "duckdb-tcph"), "there are no runs", 2),
        (("published", "keydbb"), "there is no case `keydbb`", 2),
        (("cost", "--dram", "8", "--cxl", "10", "--dram-to-cxl", "2"), "rates of 8 in DRAM and 10", 2),
        (("shape", "--vcpus", "8", "--dram", "1GiB", "--per-vcpu", "4GiB"), "less than one vCPU's memory", 2),
        ((*FLEET[1:], "--tier", "dram:90"), "`dram:90` is no tier", 2),
        ((*FLEET[1:], *TIERS[:2], "--heat", "10%"), "`10%` is no heat", 2),
        ((*PLAN[1:], "--results", "1e9"), "no purchase of these sizes", 1),
        ((*PLAN[1:], "--results", "1", "--budget", "1"), "two goals", 2),
        ((*PLAN[1:], "--machine", "liu-z"), "no machine `liu-z`", 2),
        ((*PLAN[1:], "--waiting", "150%"), "1.5 of the computing time waits", 2),
        ((*PLAN[1:], "--traffic", "4000"), "cannot carry 4000 GB/s", 2),
        (("store", "--machine", "liu-a", "--threads", "33"), "which has 32 cores", 2),
        (("measure", "duckdb", "--memory", "64MiB", "--append"), "--append has no file", 2),
        (("measure", "records", "--memory", "64MiB", "-o", "none/such.csv"), "its folder is not there", 2),
        (("measure", "duckdb", "--memory", "64MiB", "--streams", "no"), "`no` is no number of streams", 2),
        (("measure", "duckdb", "--memory", "64MiB", "--queries", "99"), "there is no query `99`", 2),
        (("measure", "records", "--memory", "64MiB", "--mix", "ycsb-z"), "there is no mix `ycsb-z`", 2),
        (("measure", "records", "--memory", "64MiB", "--data", "1B"), "data at least 4MiB", 2),
        (("measure", "records", "--memory", "64MiB", "--theta", "-1"), "an exponent of -1", 2),
    ],
)
def test_an_error_has_words_and_a_hint(tierloom: Tierloom, words: tuple[str, ...], said: str, code: int) -> None:
    result = tierloom("capacity", *words)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stderr.count("hint: ") == 1


@pytest.mark.parametrize("words", [(), ("--hold-out", "200MiB,320MiB,512MiB,800MiB")], ids=["fit", "held out"])
def test_the_document_shows_what_the_verb_prints(tierloom: Tierloom, words: tuple[str, ...]) -> None:
    """Run by hand: `COLUMNS=160 tierloom capacity fit duckdb-tpch`."""
    printed = tierloom("capacity", "fit", "duckdb-tpch", *words).stdout
    lines = "\n".join(line.rstrip() for line in printed.splitlines()).strip()
    assert lines in (ROOT / "docs/capacity.md").read_text(encoding="utf-8")
