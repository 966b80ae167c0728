"""The tool that counts by object: against a program whose accesses are known, and against DHAT."""

import json
import subprocess
from pathlib import Path

import pytest
from benches.counts.build import compiled
from benches.counts.generator import plan
from benches.counts.lines import caches
from benches.counts.program import SAME_LIBRARY, Program
from benches.counts.tool import built
from benches.counts.truth import Truth, counted

pytestmark = [pytest.mark.needs("valgrind", "gcc"), pytest.mark.slow]


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("tool"))


def by_size(truths: list[Truth]) -> dict[int, Truth]:
    return {one.bytes: one for one in truths if one.kind != "lump"}


def test_every_access_of_a_known_program_is_counted_once(tool: Path, tmp_path: Path) -> None:
    source = Path(__file__).parent / "known.c"
    subprocess.run(["gcc", "-O2", "-mavx2", source, "-o", tmp_path / "program"], check=True)
    found = by_size(counted(Program("known", ("./program",), tmp_path, ""), tool))
    array, masked, shared = found[4 * 32768], found[3 * 32768], found[8 * 32768]
    assert (array.reads, array.read_bytes, array.writes, array.write_bytes) == (500, 2000, 1000, 4000)
    assert (shared.name, shared.reads, shared.writes, shared.write_bytes) == ("shared", 300, 300, 2400)
    assert (masked.reads, masked.read_bytes, masked.writes) == (7, 7 * 32, 0)


@pytest.mark.parametrize("seed", [2, 6])
def test_blocks_have_the_bytes_that_dhat_counts(tool: Path, tmp_path: Path, seed: int) -> None:
    """DHAT sees no static arrays and no mappings; it counts what the C library does to blocks, as we do."""
    compiled(plan(seed), tmp_path)
    program = Program("random", ("./program", "1"), tmp_path, "")
    report = tmp_path / "dhat.json"
    command = ["valgrind", "-q", "--tool=dhat", f"--dhat-out-file={report}", *program.command]
    subprocess.run(command, cwd=tmp_path, env={**program.surroundings, **SAME_LIBRARY}, check=True, capture_output=True)
    dhat = {site["mb"]: (site["rb"], site["wb"]) for site in json.loads(report.read_text())["pps"]}
    blocks = [one for one in counted(program, tool) if one.kind == "heap"]
    assert blocks
    for one in blocks:
        assert dhat[one.bytes] == pytest.approx((one.read_bytes, one.write_bytes), abs=128), one


def test_lines_are_as_many_as_callgrind_fetches(tool: Path, tmp_path: Path) -> None:
    """Its last level holds code, too, and it takes an access to two lines for one."""
    compiled(plan(2), tmp_path)
    program = Program("random", ("./program", "1"), tmp_path, "")
    report = tmp_path / "callgrind.out"
    simulated = ["--cache-sim=yes", "--D1=32768,8,64", "--LL=262144,16,64"]
    command = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={report}", *simulated, *program.command]
    subprocess.run(command, cwd=tmp_path, env={**program.surroundings, **SAME_LIBRARY}, check=True, capture_output=True)
    lines = report.read_text().splitlines()
    (events,), (totals,) = (
        [line.split()[1:] for line in lines if line.startswith(word)] for word in ("events:", "totals:")
    )
    total = dict(zip(events, map(int, totals), strict=False))
    found = counted(program, tool, [f"--caches={caches(262144)}"])
    assert sum(one.lines_into_first for one in found) == pytest.approx(total["D1mr"] + total["D1mw"], rel=0.02)
    assert sum(one.lines_from_memory for one in found) == pytest.approx(total["DLmr"] + total["DLmw"], rel=0.02)
