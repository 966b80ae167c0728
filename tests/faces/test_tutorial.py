"""What the tutorial promises of its program is what the tool answers."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from support import ROOT


@pytest.mark.live
@pytest.mark.timeout(300)
def test_first_touch_gives_the_grids_dram_to_the_record(executable: Path, folder: Path) -> None:
    told = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    program = re.search(r"^```c\n(.*?)^```", told, re.MULTILINE | re.DOTALL)
    assert program
    (folder / "cells.c").write_text(program[1])
    steps = [
        line[2:].split()
        for line in told.splitlines()
        if line.startswith(("$ gcc", "$ tierloom profile", "$ tierloom plan"))
    ]
    compiled, profiled, planned, _ = steps
    subprocess.run(compiled, check=True)
    subprocess.run([executable, *profiled[1:]], check=True, capture_output=True)
    answer = subprocess.run([executable, *planned[1:], "--json"], check=True, capture_output=True, text=True).stdout
    policies = {row["policy"]: row for row in json.loads(answer)["policies"]}
    local, ours = policies["local"], policies["tierloom"]
    # How much faster hangs on what else the machine does while the program is profiled; that it is does not.
    assert ours["prediction"]["time_s"] < local["prediction"]["time_s"]
    assert ours["prediction"]["stall_s"] < 0.9 * local["prediction"]["stall_s"]
    in_ldram = dict(zip(objects_of(ours), (there[1] for there in ours["fractions"]), strict=True))
    assert in_ldram["grid"] > 0.95
    assert in_ldram["history"] < 0.1


def objects_of(policy: dict) -> list[str]:
    """Names of the objects, in the order of the fractions."""
    return [entry["object"] for entry in policy["prediction"]["objects"]]
