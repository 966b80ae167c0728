"""`tierloom validate --ablate`: a program runs with an object always in the cache, and what cannot be is said."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import Run

import tierloom
from tierloom import ablation, validation
from tierloom.errors import PlacementError, RequestError
from tierloom.report.tables import validations
from tierloom.schema import ValidationRowDoc
from tierloom.timed_runs import Timed

pytestmark = pytest.mark.smoke

STEERED = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 4 << 20 };
static double few[10000];
static unsigned data[COUNT];

int main(int argc, char **argv) {
    for (unsigned at = 0; at < COUNT; at++) data[at] = at;
    for (int at = 0; at < 50000000; at++) few[at % 10000] += at;
    const int is_itself = *(volatile unsigned *)&data[COUNT / 2] == COUNT / 2;
    FILE *log = fopen("log", "a");
    fprintf(log, "%s ", is_itself ? "itself" : "repeats");
    fclose(log);
    const char *then = is_itself ? "nothing" : argv[1];
    if (strcmp(then, "crash") == 0) return *(volatile int *)1;
    if (strcmp(then, "fail") == 0) return 3;
    while (strcmp(then, "loop") == 0) usleep(1000);
    return 0;
}
"""
"""A program with an array of its own positions; where that repeats, it ends as it is told."""

CUT = r"""
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20 };

static char *mapping(char *at, long bytes, int flags) {
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static int full_of(const char *at, long bytes, char what) {
    long others = 0;
    for (long byte = 0; byte < bytes; byte++) others += at[byte] != what;
    return others == 0;
}

int main(void) {
    char *data = mapping(0, 64 * MIB, 0);
    for (int round = 0; round < 40; round++)
        for (long at = 0; at < 64 * MIB; at += 64) data[at] += round;
    data[40 * MIB] = 1;
    data[41 * MIB] = 2;
    const int repeats = data[40 * MIB] == 2;
    munmap(data + 16 * MIB, 8 * MIB);
    char *in_hole = mapping(data + 16 * MIB, 8 * MIB, MAP_FIXED);
    memset(in_hole, 7, 8 * MIB);
    char *over = mapping(data + 32 * MIB, 4 * MIB, MAP_FIXED);
    memset(over, 8, 4 * MIB);
    char *moved = mremap(data + 48 * MIB, 4 * MIB, 8 * MIB, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) return 4;
    memset(moved, 9, 8 * MIB);
    data[40 * MIB] = 1;
    data[41 * MIB] = 2;
    if (repeats && data[40 * MIB] != 2) return 5;
    munmap(data, 16 * MIB);
    munmap(data + 24 * MIB, 8 * MIB);
    munmap(data + 36 * MIB, 12 * MIB);
    return full_of(in_hole, 8 * MIB, 7) && full_of(over, 4 * MIB, 8) && full_of(moved, 8 * MIB, 9) ? 0 : 3;
}
"""
"""A program that gives back parts of a mapping, maps over others and moves one: what came there is its own."""

MACHINE = "dram 64GiB 100ns 100GB/s"


@pytest.fixture
def steered(folder: Path) -> list[str]:
    (folder / "steered.c").write_text(STEERED)
    subprocess.run(["cc", "-O1", "-g", "-o", "steered", "steered.c"], cwd=folder, check=True)
    return [str(folder / "steered")]


def test_an_ablated_object_repeats_and_has_a_row(steered: list[str], folder: Path) -> None:
    answer = tierloom.validate([[*steered, "nothing"]], machine=MACHINE, runs=2, ablate="data")
    assert (folder / "log").read_text().split() == ["itself"] * 3 + ["repeats"] * 2, (
        "before, profiled, after, and ablated"
    )
    plain, ablated = answer.data["rows"]
    assert (plain["ablated"], ablated["ablated"]) == (None, "data")
    assert (ablated["placement"], len(ablated["measured_s"])) == ("local", 2)
    assert ablated["predicted_s"] <= plain["predicted_s"]
    assert answer.data["failures"] == []
    shown = validations.tables(answer)
    assert len(shown) == 3, "a sentence, the rows, and what is saved"
    assert "data" in str(shown[2].rows)


def test_what_comes_in_the_place_of_parts_is_not_ablated(folder: Path) -> None:
    (folder / "cut.c").write_text(CUT)
    subprocess.run(["cc", "-O1", "-g", "-o", "cut", "cut.c"], cwd=folder, check=True)
    answer = tierloom.validate([[str(folder / "cut")]], machine=MACHINE, runs=1, ablate="data")
    assert answer.data["failures"] == [], "neither other memory of the program's was lost, nor what was left of it"
    assert [row["ablated"] for row in answer.data["rows"]] == [None, "data"]


@pytest.mark.parametrize(
    ("then", "told"),
    [
        ("crash", "ended with 139 (SIGSEGV), and with 0"),
        ("fail", "ended with 3, and with 0"),
        ("loop", "was ended after"),
    ],
)
def test_a_program_that_cannot_do_without_does_not_allow_it(
    steered: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, then: str, told: str
) -> None:
    monkeypatch.setattr(ablation, "LEAST_S", 0.1)
    answer = tierloom.validate([[*steered, then]], machine=MACHINE, runs=2, ablate=["data"])
    assert (folder / "log").read_text().split() == ["itself"] * 3 + ["repeats"], "once is enough"
    assert [row["ablated"] for row in answer.data["rows"]] == [None]
    [failure] = answer.data["failures"]
    assert failure["why"].startswith("`data` does not allow to be ablated: the program ")
    assert told in failure["why"]


def test_what_cannot_be_ablated_is_said(steered: list[str], here: Path, run: Run) -> None:
    words = ("validate", "--machine", here, "--runs", "1", "--json")
    result = run(*words, "--ablate", "few", "--", *steered, "nothing")
    assert [failure["why"].splitlines()[0] for failure in json.loads(result.stdout)["failures"]] == [
        "`few` does not allow to be ablated: 78.1KiB are too little: what is left of it is 16KiB"
    ]
    result = run(*words, "--ablate", "fw", "--", *steered, "nothing")
    assert result.returncode == 2
    assert "has no object `fw`\nhint: give one of: " in result.stderr
    assert "data" in result.stderr.splitlines()[-1]
    result = run(*words, "--ablate", "all,few", "--", *steered, "nothing")
    assert result.returncode == 2
    assert "`all` stands for every object" in result.stderr


@pytest.fixture
def here(folder: Path) -> Path:
    path = folder / "here.toml"
    tierloom.Machine.of(MACHINE).save(path)
    return path


def test_all_are_those_that_are_waited_for() -> None:
    profile = tierloom.Profile.load("cg-e")
    names = [each["name"] for each in profile.data["objects"]]
    predicted: Any = {"objects": [{"object": name, "stall_s": 0.0} for name in names]}
    assert list(ablation.objects(profile, predicted, ["all"], [])) == []
    for each, stall_s in zip(predicted["objects"], (0.96, 0.04, 0.02), strict=False):
        each["stall_s"] = stall_s
    assert list(ablation.objects(profile, predicted, ["all"], [])) == names[:2], "3 % and more"
    assert list(ablation.objects(profile, predicted, ["all"], names[:1])) == names[1:2], "no rule selects the first"
    with pytest.raises(RequestError, match="no object `none`"):
        ablation.objects(profile, predicted, ["none"], [])


def test_what_several_threads_write_is_not_ablated() -> None:
    profile = tierloom.Profile.load("mg-e")
    data: Any = profile.data
    written = {each["object"] for phase in data["phases"] for each in phase["accesses"] if each["writes"] > 0.0}
    for each in data["objects"]:
        if each["name"] in written and any(phase["threads"] > 1 for phase in data["phases"]):
            with pytest.raises(PlacementError, match="several threads write it"):
                ablation.allowed(profile, each["name"], [])
        else:
            ablation.allowed(profile, each["name"], [])


def test_what_no_rule_selects_is_not_ablated() -> None:
    profile = tierloom.Profile.load("mg-e")
    name = profile.data["objects"][0]["name"]
    with pytest.raises(PlacementError, match="no rule of a plan can select it"):
        ablation.allowed(profile, name, [name])


def test_what_is_ablated_costs_nothing_in_the_prediction() -> None:
    profile, machine = tierloom.Profile.load("cg-e"), tierloom.Machine.of("dram 640GiB 100ns 100GB/s")
    names = [each["name"] for each in profile.data["objects"]]
    ran = [Timed(1000.0, 0.0, 0)]

    def row(ablated: str | None) -> ValidationRowDoc:
        return validation.row(["cg"], profile, machine, validation.Condition(4, 0.0, ablated=ablated), 4, ran)

    whole, without = row(None), [row(name) for name in names]
    assert all(each["predicted_s"] <= whole["predicted_s"] for each in without)
    assert min(each["modelled_s"] for each in without) < whole["modelled_s"]
    every = tierloom.plan(profile, machine, threads=4, policies=["local"], ablated=names).chosen["prediction"]
    assert every["time_s"] == pytest.approx(every["compute_s"])
    with pytest.raises(RequestError, match="no object `none`"):
        tierloom.plan(profile, machine, ablated="none")


def test_the_kernels_time_is_as_it_is_otherwise(steered: list[str], folder: Path) -> None:
    named = tierloom.Plan(
        'version = 1\nmachine = "m"\nprofile = "p"\npolicy = "local"\nnodes = ["dram"]\ndefault = "first_touch"\n'
        "predicted = { time_s = 1.0, low_s = 1.0, high_s = 1.0, threads = 1, bytes = [0] }\n"
        f'[[rules]]\nobject = "data"\nsize_bytes = {16 << 20}\nplace = "first_touch"\n'
        'select = { symbol = "steered:data" }\n'
    )
    slow, fast = (
        ablation.timed_without(named, [*steered, "nothing"], [Timed(10.0, 0.0, 0, system_s=system_s)], 1).seconds
        for system_s in (1000.0, 0.0)
    )
    assert slow == pytest.approx(1000.0 + fast, rel=0.01)
    assert (folder / "log").read_text().split() == ["repeats"] * 2


@pytest.mark.live
def test_waiting_for_an_object_is_what_a_run_without_it_saves(workloads: Path) -> None:
    """Of a program that waits for one object at a time: others save less, for they wait for the rest meanwhile."""
    asked = ["sh", "-c", f"OMP_NUM_THREADS=1 {workloads}/cg --iterations 3 || true"]  # It finds its results wrong.
    here = tierloom.measure(quick=True).machine
    answer = tierloom.validate([asked], machine=here, runs=5, ablate=["p", "x", "a"])
    rows = answer.data["rows"]
    assert [row["ablated"] for row in rows] == [None, "p", "x", "a"], answer.data["failures"]
    whole_s = statistics.median(rows[0]["measured_s"])
    for row in rows[1:]:
        saved = 1 - statistics.median(row["measured_s"]) / whole_s
        predicted = (rows[0]["predicted_s"] - row["predicted_s"]) / whole_s
        assert abs(saved - predicted) < 0.15, f"{row['ablated']}: {saved:.0%} saved, {predicted:.0%} predicted"
