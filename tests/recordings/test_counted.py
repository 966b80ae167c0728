"""Recordings that are kept, analysed with counts of callgrind's: what was counted is exact, what was not is listed.

`counted/PROGRAM-LEVEL.callgrind.out` holds the executions of the program in `kept`, which does the same in every run,
without those of its libraries; its paths are those of the recording. `fetched` has the same of programs that ran with
simulated caches, the last of them 32 MiB as that of the machine that recorded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from recordings.estimates import KEPT, bench, truth

import tierloom
from tierloom.errors import BuildError, RequestError

COUNTED = Path(__file__).with_name("counted")
NAMES = sorted(file.name.partition(".")[0] for file in COUNTED.iterdir())
#: Objects with less of the accesses may have been seen a few times only.
SMALL = 0.01
FETCHED = Path(__file__).with_name("fetched")
LLC = 32 << 20
#: Lines from memory by object, as the tool of `benches/counts` counts them, which books each line where it lies.
LINES = {
    "spmv-O2": {"start": 6_025_240, "column": 45_192_801, "value": 90_385_603, "x": 58_470, "y": 6_119_615},
    "xsbench-O2": {"nuclide_grid": 5_847_982, "energy_grid": 808_653, "index_grid": 5_125_650},
}


def counts(name: str) -> Path:
    """The file of a program."""
    return COUNTED / f"{name}.callgrind.out"


def accesses_of(true: dict[str, Any]) -> float:
    """Reads and writes of a true object."""
    return true["reads"] + true["writes"]


def analysed(name: str, *files: Path) -> dict[str, Any]:
    """The profile of a recording with these counts."""
    folder = KEPT / name
    found = tierloom.analyse(folder / "recording", name=name, binaries=[folder], counts=files)
    return json.loads(json.dumps(found.profile.data))


def found(profile: dict[str, Any], true: dict[str, Any]) -> float:
    """Reads and writes of a true object in the profile."""
    names = bench().find(profile, true)
    accesses = [access for phase in profile["phases"] for access in phase["accesses"] if access["object"] in names]
    return sum(access["reads"] + access["writes"] for access in accesses)


@pytest.mark.parametrize("name", NAMES)
def test_counted_accesses_and_those_that_no_sample_shows_are_all_that_there_are(name: str) -> None:
    profile = analysed(name, counts(name))
    trues = truth(name)["objects"]
    right, got = (
        sum(values) for values in zip(*((accesses_of(one), found(profile, one)) for one in trues), strict=True)
    )
    assert got + profile["sampling"]["not_sampled"]["accesses"] == pytest.approx(right, rel=0.001)
    assert all(found(profile, one) < 1.001 * accesses_of(one) for one in trues), "nothing is spread over others"
    sources = {one["name"]: one["accesses"]["source"] for one in profile["objects"] if "accesses" in one}
    assert {sources[name] for one in trues for name in bench().find(profile, one)} == {"counted"}


def test_what_another_run_did_a_million_times_as_often_is_no_count_of_this_one(tmp_path: Path) -> None:
    other = tmp_path / "callgrind.out.1"
    text = counts("histogram-O2").read_text()
    other.write_text(re.sub(r"^(0x[0-9a-f]+ |totals: |summary: )(\d+)$", r"\g<1>\g<2>000000", text, flags=re.MULTILINE))
    profile = analysed("histogram-O2", other)
    assert [warning["kind"] for warning in profile["sampling"]["warnings"]].count("runs_differ") == 1
    large = [name for one in truth("histogram-O2")["objects"] for name in bench().find(profile, one)]
    known = {one["name"]: one.get("accesses", {}) for one in profile["objects"]}
    assert all(known[name].get("source") != "counted" for name in large), known


def test_shares_are_those_of_the_program_where_samples_saw_all() -> None:
    profile = analysed("histogram-O2", counts("histogram-O2"))
    tvd, total = bench().compare(profile, truth("histogram-O2"), verbose=False)
    assert tvd < 0.1
    assert abs(total) < 0.1


@pytest.mark.parametrize("name", ["shared_frame-O2", "shared_frame-O3"])
def test_pointers_in_a_callers_frame_and_page_faults_tell_what_no_sample_does(name: str) -> None:
    profile = analysed(name, counts(name))
    assert profile["sampling"]["not_sampled"]["accesses"] < 10
    for true in truth(name)["objects"]:
        assert found(profile, true) == pytest.approx(accesses_of(true), rel=0.001), true["name"]


@pytest.mark.parametrize("name", NAMES)
def test_the_truth_lies_in_the_interval(name: str) -> None:
    profile = analysed(name, counts(name))
    known = {one["name"]: one["accesses"] for one in profile["objects"] if "accesses" in one}
    every = sum(map(accesses_of, truth(name)["objects"]))
    for true in truth(name)["objects"]:
        (one,) = (known[name] for name in bench().find(profile, true))
        # The interval is of executions; an instruction that reads and writes is two accesses.
        each = found(profile, true) / one["count"]
        assert 0.999 * one["low"] * each <= accesses_of(true) <= 1.001 * one["high"] * each
        assert one["low"] > 0.8 * one["count"] or accesses_of(true) < SMALL * every


def lines(profile: dict[str, Any], true: dict[str, Any]) -> float:
    """Lines of a true object from memory."""
    names = bench().find(profile, true)
    accesses = [access for phase in profile["phases"] for access in phase["accesses"] if access["object"] in names]
    return sum(access["dram_read_bytes"] for access in accesses) / 64


@pytest.mark.parametrize("name", sorted(LINES))
def test_lines_are_those_that_each_object_fetches(name: str) -> None:
    profile = analysed(name, FETCHED / f"{name}.callgrind.out")
    trues = {one["name"]: one for one in truth(name)["objects"]}
    found = {wanted: lines(profile, trues[wanted]) for wanted in LINES[name]}
    every = sum(LINES[name].values())
    assert found == pytest.approx(LINES[name], rel=0.01, abs=0.01 * every)
    traffic = profile["sampling"]["counted_traffic"]
    assert traffic["llc_bytes"] == LLC
    (totals,) = re.findall("^totals: (.*)$", (FETCHED / f"{name}.callgrind.out").read_text(), flags=re.MULTILINE)
    counted = sum(map(int, totals.split()[7:9]))
    everything = sum(access["dram_read_bytes"] for phase in profile["phases"] for access in phase["accesses"])
    assert everything + traffic["elsewhere_bytes"] == pytest.approx(64 * counted), "every line is somewhere, once"
    assert "no_time" not in {one["kind"] for one in profile["sampling"].get("warnings", [])}


def test_lines_counted_for_another_cache_are_those_behind_it(tmp_path: Path) -> None:
    name, other = "xsbench-O2", 1 << 20
    text = (FETCHED / f"{name}.callgrind.out").read_text()
    file = tmp_path / "callgrind.out.1"
    file.write_text(text.replace(f"LL cache: {LLC} B", f"LL cache: {other} B"))
    profile = analysed(name, file)
    for true in truth(name)["objects"]:
        if true["name"] not in LINES[name]:
            continue
        (item,) = (one for one in profile["objects"] if one["name"] in bench().find(profile, true))
        shares = {point["cache_bytes"]: point["share"] for point in item["miss_curve"]}
        behind = lines(profile, true) * shares[other] / shares[LLC]
        assert behind == pytest.approx(LINES[name][true["name"]], rel=0.1)
        assert lines(profile, true) < behind


def test_without_counts_nothing_is_said_to_be_counted() -> None:
    profile = analysed(NAMES[0])
    assert "not_sampled" not in profile["sampling"]
    assert not any("source" in one.get("accesses", {}) for one in profile["objects"])


def test_counts_of_another_build_are_refused(tmp_path: Path) -> None:
    lines = counts(NAMES[0]).read_text().splitlines()
    # Another build has its instructions elsewhere.
    moved = [
        f"{int(line.split()[0], 16) + 1:#x} {line.split()[1]}" if line.startswith("0x") else line for line in lines
    ]
    file = tmp_path / "callgrind.out.1"
    file.write_text("\n".join(moved) + "\n")
    with pytest.raises(BuildError, match="another build was counted"):
        analysed(NAMES[0], file)


def test_counts_of_another_program_are_refused() -> None:
    with pytest.raises(BuildError, match="was recorded, and not counted"):
        analysed(NAMES[0], counts(NAMES[1]))


def test_half_of_the_executions_cannot_have_taken_all_of_the_time(tmp_path: Path) -> None:
    text = counts(NAMES[0]).read_text()
    lines = [line.split() if line.startswith("0x") else [line] for line in text.splitlines()]
    few = [
        [words[0], str(int(words[1]) // 100_000)] if len(words) == 2 and words[0].startswith("0x") else words
        for words in lines
    ]
    total = sum(int(words[1]) for words in few if len(words) == 2 and words[0].startswith("0x"))
    few = [[f"totals: {total}"] if words[0].startswith("totals:") else words for words in few]
    file = tmp_path / "callgrind.out.1"
    file.write_text("\n".join(" ".join(words) for words in few) + "\n")
    kinds = {one["kind"] for one in analysed(NAMES[0], file)["sampling"]["warnings"]}
    assert "runs_differ" in kinds


def test_a_file_that_ends_early_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "callgrind.out.1"
    file.write_text(counts(NAMES[0]).read_text().partition("totals:")[0])
    with pytest.raises(RequestError, match=r"callgrind\.out\.1, line \d+: it ends early"):
        analysed(NAMES[0], file)
