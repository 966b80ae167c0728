"""`tierloom profile --from`: files of the real `perf`, and what is said of files that cannot be used."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from perf_files import ARRAY, KERNEL, PerfFile, loads
from support import Run, lacking, works_or_explains

from tierloom.profiler import import_perf

REGISTERS = "ax,bx,cx,dx,si,di,bp,sp,ip,flags,r8,r9,r10,r11,r12,r13,r14,r15"
CLOCK = Path(__file__).parents[2] / "fuzz/corpus/perf_data/clock"
"""A file of the real `perf`, of a program that was at this path."""
ITS_PROGRAM = b"/tmp/seed/small"
GATHER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define LINES (4 << 20)
static double table[LINES];
int main(void) {
    size_t n = 1 << 20;
    uint32_t *index = malloc(n * sizeof *index);
    double *out = calloc(n, sizeof *out), sum = 0;
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        index[i] = (state >> 33) % LINES;
        table[index[i]] = i;
    }
    for (int turn = 0; turn < 60; turn++)
        for (size_t i = 0; i < n; i++) out[i] += table[index[i]];
    for (size_t i = 0; i < n; i++) sum += out[i];
    return printf("%f\n", sum) < 0;
}
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gather from a static table through an index, into a heap array."""
    if reason := lacking("gcc"):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("gather")
    (folder / "gather.c").write_text(GATHER)
    command = ["gcc", "-O2", "-o", folder / "gather", folder / "gather.c"]
    subprocess.run(command, check=True)
    return folder / "gather"


def perf(file: Path, program: Path, *words: str) -> Path:
    """Records the program, or skips where `perf` is missing or refused."""
    if reason := lacking("perf"):
        pytest.skip(reason)
    command = ["perf", "record", *words, "-o", file, "--", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"perf cannot record here: {done.stderr.strip()[:200]}")
    return file


@pytest.fixture(scope="session")
def recorded(program: Path) -> Path:
    words = ("-d", "-F", "997", "-e", "cpu-clock:u", f"--user-regs={REGISTERS}")
    return perf(program.parent / "perf.data", program, *words)


@pytest.mark.live
def test_a_real_file_becomes_a_profile_with_statics_and_mappings(recorded: Path, run: Run, folder: Path) -> None:
    done = run("profile", "--from", recorded, "-o", "gather.profile", "--json")
    assert done.returncode == 0, done.stderr
    profile = json.loads(done.stdout)
    assert profile["program"]["command"][0].endswith("/gather")
    assert "exit_code" not in profile["program"]
    sizes = {item["name"]: item["size_bytes"] for item in profile["objects"]}
    assert sizes["table"] == 32 << 20
    mapped = [size for name, size in sizes.items() if name.startswith("[anon:")]
    assert any(8 << 20 <= size < 9 << 20 for size in mapped), "calloc's mapping"
    accesses = {access["object"]: access for access in profile["phases"][0]["accesses"]}
    assert accesses["table"]["reads"] > 1e6
    assert "no allocations" in " ".join(done.stderr.split())
    assert (folder / "gather.profile/samples.npy").exists()
    planned = run("plan", "gather.profile", "--machine", "liu-a", "--threads", "1")
    assert planned.returncode == 0, planned.stderr


@pytest.mark.live
def test_the_static_table_is_what_is_waited_for(recorded: Path) -> None:
    objects = import_perf(recorded).profile.data["objects"]
    assert objects[0]["name"] == "table"
    assert objects[0]["stall"]["share"] > 0.3


@pytest.mark.live
def test_a_file_without_registers_says_what_to_record(program: Path, run: Run, tmp_path: Path) -> None:
    file = perf(tmp_path / "plain.data", program, "-e", "cpu-clock:u")
    done = run("profile", "--from", file)
    assert done.returncode == 2
    assert "lack registers" in done.stderr
    assert "--user-regs=" in done.stderr


@pytest.mark.parametrize(("state", "path"), [("rebuilt", "/bin/sh"), ("missing", "/no/such/file")])
def test_a_program_that_is_not_here_as_it_ran_is_told(state: str, path: str, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(CLOCK.read_bytes().replace(ITS_PROGRAM, path.encode().ljust(len(ITS_PROGRAM), b"\0")))
    done = run("profile", "--from", file, "-o", tmp_path / "sh.profile", "--json")
    assert done.returncode == 0, done.stderr
    warnings = json.loads(done.stdout)["sampling"]["warnings"]
    (told,) = [warning for warning in warnings if warning["kind"] in {"code_lacking", "generated_code"}]
    assert {kind: told[kind] for kind in ("rebuilt", "missing")} == {"rebuilt": [], "missing": [], state: [path]}
    lost = "samples of their code are [unrecovered] and their variables one object"
    assert f"files of code are not here as they ran, so {lost}: {path}" in told["text"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--from", "nowhere.data"), 2, "nowhere.data"),
        (("--from", "numbers.txt"), 2, "does not begin like a perf.data file"),
        (("--from", "numbers.txt", "--", "true"), 2, "leave one of them out"),
        ((), 2, "CMD"),
    ],
)
def test_a_wrong_request_is_told(run: Run, folder: Path, words: tuple[str, ...], code: int, told: str) -> None:
    (folder / "numbers.txt").write_text("1\n")
    done = run("profile", *words)
    assert done.returncode == code, done.stderr
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.live
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    places=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8), kept=st.floats(0, 1)
)
def test_damaged_real_files_are_read_or_refused(
    recorded: Path, tmp_path: Path, places: list[tuple[float, int]], kept: float
) -> None:
    data = bytearray(recorded.read_bytes())
    for place, byte in places:
        data[int(place * len(data))] = byte
    file = tmp_path / "damaged.data"
    file.write_bytes(data[: int(kept * len(data)) if len(places) % 2 else len(data)])
    works_or_explains(lambda: import_perf(file))


def worked_out(file: PerfFile, run: Run, folder: Path, *words: str | Path) -> tuple[dict, str]:
    """The profile of a file, and what was said of it."""
    (folder / "perf.data").write_bytes(file.bytes())
    done = run("profile", "--from", folder / "perf.data", "-o", folder / "app.profile", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def refused(file: PerfFile, run: Run, folder: Path, *words: str | Path) -> str:
    (folder / "perf.data").write_bytes(file.bytes())
    done = run("profile", "--from", folder / "perf.data", *words)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_cycles_are_no_accesses_and_the_hint_is_one_line(run: Run, tmp_path: Path) -> None:
    told = refused(PerfFile(config=0x3C).exec("app").load(ARRAY, 10, source=0), run, tmp_path)
    assert "(r3c) say neither load nor store" in " ".join(told.split())
    (hint,) = [line for line in told.splitlines() if line.startswith("hint:")]
    assert hint == f"hint: perf record -d -e cpu-clock:u --user-regs={REGISTERS} -- CMD"


def test_memory_of_the_kernel_is_its_own_and_commands_are_not_broken(run: Run, tmp_path: Path) -> None:
    profile, told = worked_out(loads().load(KERNEL, 30), run, tmp_path)
    assert {rest["name"]: rest["stall"]["share"] for rest in profile["unattributed"]}["[kernel]"] == 0.75
    assert any("`perf mem record --all-user -- CMD`" in line for line in told.splitlines())
    assert any("`tierloom profile -- CMD`" in line for line in told.splitlines())


def test_a_program_is_looked_for_in_folders_and_named_where_it_is_missing(run: Run, tmp_path: Path) -> None:
    file = loads().map(0x60_0000, 0x3000, "/opt/no/such/app").load(0x60_0000)
    profile, told = worked_out(file, run, tmp_path)
    assert "app [other statics]" in {item["name"] for item in profile["objects"]}
    assert "/opt/no/such/app (missing)" in told
    (tmp_path / "binaries").mkdir()
    (tmp_path / "binaries/app").write_bytes(Path("/bin/true").read_bytes())
    _, told = worked_out(file, run, tmp_path, "--binaries", tmp_path / "binaries")
    assert "(missing)" not in told
    assert "names no build of /opt/no/such/app" in " ".join(told.split())


def test_one_of_several_programs_is_chosen(run: Run, tmp_path: Path) -> None:
    file = loads().exec("db", pid=99).load(ARRAY, 4, pid=99)
    told = refused(file, run, tmp_path)
    assert "app (10 of the samples), db (4 of the samples)" in " ".join(told.split())
    assert told.splitlines()[-1] == f"hint: choose one: tierloom profile --from {tmp_path / 'perf.data'} --process app"
    for process, samples in [("app", 10), ("99", 4)]:
        profile, _ = worked_out(file, run, tmp_path, "--process", process)
        assert profile["sampling"]["samples"] == samples
    assert "none of sort" in refused(file, run, tmp_path, "--process", "sort")


def test_a_file_that_was_cut_is_read_and_said(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cut.data"
    file.write_bytes(loads().bytes()[:-20])
    done = run("profile", "--from", file, "-o", tmp_path / "cut.profile", "--json")
    assert json.loads(done.stdout)["sampling"]["samples"] == 9
    assert "damaged at byte" in done.stderr


def test_what_is_no_file_and_what_does_nothing_is_refused(run: Run, tmp_path: Path) -> None:
    assert "cat > perf.data" in run("profile", "--from", "/dev/null").stderr
    assert "cat > perf.data" in run("profile", "--from", "-").stderr
    assert "--process does nothing without --from" in run("profile", "--process", "app", "--", "true").stderr
    done = run("profile", "--from", "x", "--binaries", tmp_path / "none")
    assert done.returncode == 2
