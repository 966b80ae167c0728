"""`validate --placements` runs a program with its pages where each placement says, and gives a row for each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from placing import MIB, TIERLOOM, Shown, node_one, parse, program

import tierloom
from tierloom.placed_runs import WEIGHTS

TOPOLOGIES = ("two-tier",)
"""A program whose threads have a policy has its stacks and its code there, too, and QEMU dies of code in CXL memory."""

MACHINE = "dram 1GiB 100ns 10GB/s, cxl 1GiB 250ns 5GB/s"
"""What the guest's nodes are; what they take is nothing that emulation would tell."""


def validated(placements: str, *words: str) -> tuple[dict[str, Any], list[Shown]]:
    """A validation with one run each, and where the program saw its pages, run by run; the profiled one is first."""
    Path("here.toml").write_text(tierloom.Machine.of(MACHINE).text)
    command = ["sh", "-c", f"{program()} heap:data:{16 * MIB} show 2>&1 | grep ^data >> seen"]
    asked = ["validate", "--machine", "here.toml", "--runs", "1", "--placements", placements, *words, "--json"]
    done = subprocess.run([str(TIERLOOM), *asked, "--", *command], capture_output=True, text=True, check=False)
    print(done.stderr[-3000:])
    assert done.returncode == 0, done.returncode
    return json.loads(done.stdout), [parse(line)["data"] for line in Path("seen").read_text().splitlines()]


def check_pages_are_where_the_validated_placement_says() -> None:
    node_one()
    found, seen = validated("bind:cxl,interleave,preferred:dram")
    assert [row["placement"] for row in found["rows"]] == ["local", "bind:cxl", "interleave:dram+cxl", "preferred:dram"]
    assert found["failures"] == []
    shares = [shown.share(1) for shown in seen]
    assert len(shares) == 1 + len(found["rows"]), "the profiled run, and one for each row"
    assert (*shares[:3], shares[4]) == (0.0, 0.0, 1.0, 0.0)
    assert 0.3 < shares[3] < 0.7, shares
    local, far = found["rows"][:2]
    assert far["predicted_s"] >= local["predicted_s"]


def check_weights_are_the_kernels_or_are_said_to_be_missing() -> None:
    node_one()
    before = {path.name: path.read_text() for path in WEIGHTS.glob("node*")}
    found, seen = validated("weighted:dram=1+cxl=3")
    if before:
        assert [row["placement"] for row in found["rows"]] == ["local", "weighted:dram=1+cxl=3"]
        assert 0.5 < seen[-1].share(1) < 0.95, seen[-1].share(1)
        assert {path.name: path.read_text() for path in WEIGHTS.glob("node*")} == before
    else:
        assert [row["placement"] for row in found["rows"]] == ["local"]
        assert f"this kernel has no {WEIGHTS}" in found["failures"][0]["why"]


def check_one_node_for_two_memories_is_no_validation() -> None:
    node_one()
    Path("here.toml").write_text(tierloom.Machine.of(MACHINE).text)
    asked = ["validate", "--machine", "here.toml", "--placements", "interleave", "--node", "cxl=0", "--node", "dram=0"]
    done = subprocess.run([str(TIERLOOM), *asked, "--", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.returncode
    assert "would stand for cxl" in " ".join(done.stderr.split()), done.stderr
