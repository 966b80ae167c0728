"""The sampler's referee: access counts of runs of about 3,000 samples against the exact counts that a workload writes.

The bounds are those that we publish for programs whose loops all show a counter in a register; what
they are for the others, `make bench` reports.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest
from support import ROOT

pytestmark = pytest.mark.slow


def bench_module():
    """The bench that prints the whole table; it knows which profiled object is which true one."""
    spec = importlib.util.spec_from_file_location("sampler_accuracy", ROOT / "benches" / "sampler_accuracy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def distance(executable: Path, folder: Path, workloads: Path, program: str, threads: int) -> tuple[float, float]:
    """Total variation distance of the access shares and error of the total count, both in percent."""
    # So many rounds, not so many seconds: on a busy machine a run lasts longer and has as many samples.
    command = [workloads / program, "--threads", str(threads), "--truth", "truth.json"]
    profiled = [executable, "profile", "-o", "it.profile", "--", *command]
    subprocess.run([*map(str, profiled)], check=True, capture_output=True, cwd=folder)
    profile = json.loads((folder / "it.profile" / "profile.json").read_text())
    return bench_module().compare(profile, json.loads((folder / "truth.json").read_text()), verbose=False)


@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize(
    ("program", "threads"), [("stream", 1), ("stream", 2), ("gather", 1), ("gather", 2), ("phases", 1), ("phases", 2)]
)
def test_counted_programs(
    executable: Path, folder: Path, workloads: Path, program: str, level: str, threads: int
) -> None:
    shares, total = distance(executable, folder, workloads.parent / level, program, threads)
    assert shares <= 2.0
    assert abs(total) <= 5.0


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_sparse_solver(executable: Path, folder: Path, workloads: Path, level: str) -> None:
    shares, total = distance(executable, folder, workloads.parent / level, "cg", 1)
    assert shares <= 2.0
    assert abs(total) <= 5.0


@pytest.mark.parametrize("program", ["mg", "pagerank", "kvstore"])
def test_programs_with_uncounted_loops(executable: Path, folder: Path, workloads: Path, program: str) -> None:
    shares, _ = distance(executable, folder, workloads, program, 1)
    assert shares <= 10.0
