"""The scripts in `examples/` run as they stand, on what a user has: a command, a profile, a machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

import tierloom


@pytest.fixture(scope="session")
def example() -> str:
    return "import sys; rows = [(n * 7919) % 100003 for n in range(400000)]; print(len(sorted(rows)))"


def run(name: str, *words: str, folder: Path) -> str:
    command = [sys.executable, ROOT / "examples" / f"{name}.py", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.live
def test_a_program_of_one_s_own_is_profiled_and_planned(folder: Path, example: str) -> None:
    told = run("own_program", sys.executable, "-c", example, folder=folder)
    assert "400000" in told, "the program's own output is there"
    profile, plan = tierloom.profile("own.profile"), tierloom.Plan.load("own.plan.toml")
    assert len(re.findall(r" waits +\d+\.\d% \(", told)) == min(10, len(profile.objects))
    assert plan.data["machine"] == "liu-a"
    for row in plan.rows():
        assert str(row["place"]) in told


def test_machines_are_ranked_for_a_profile_from_a_folder(folder: Path) -> None:
    tierloom.profile("ft-d").save(folder / "mine.profile", b"")
    told = run("which_machine", "mine.profile", folder=folder)
    times = [float(time) for time in re.findall(r"(\d+\.\d+) s \(", told)]
    assert len(times) > 3
    assert times == sorted(times)
    assert len(told.splitlines()) == len(tierloom.Machine.names())


def test_the_least_dram_is_what_the_planner_says(folder: Path) -> None:
    told = run("how_much_dram", "mg-e", "liu-a", folder=folder)
    (least,) = re.findall(r"^ *32 threads: ([\d.]+) GiB of 211", told, re.MULTILINE)
    assert "64 threads" not in told, "a socket of liu-a has 32 cores"
    assert run("how_much_dram", "mg-e", "bytedance-spr-a1000", folder=folder).count("threads: ") == 2, "of 12 cores"
    answer = tierloom.plan("mg-e", "liu-a", threads=32, nodes=["ldram", "cxl"], max_slowdown="5%")
    assert float(least) >= answer.chosen["fast_bytes"] / 2**30 - 0.1, "no less than the planner's own search finds"
    assert (folder / "how_much_dram.png").read_bytes().startswith(b"\x89PNG")
