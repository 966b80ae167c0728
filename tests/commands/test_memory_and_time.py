"""What a profile says of memory and time against what the kernel says of the process: programs that ask for much more
than they touch, that spend their time in the kernel, that have one thread."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support import Run, lacking

import tierloom

if why := lacking("cc"):
    pytest.skip(why, allow_module_level=True)

pytestmark = pytest.mark.live

MIB = 1 << 20

SPARSE = """
#include <stdlib.h>
#include <string.h>
int main(void) {
    char *large = malloc(8ul << 30), *small = malloc(200 << 20);
    for (size_t i = 0; i < 200ul << 20; i += 4096) large[i] = 1;
    memset(small, 1, 200 << 20);
    unsigned long random = 1, sum = 0;
    for (long i = 0; i < 40000000; i++) {
        random = random * 6364136223846793005ul + 1442695040888963407ul;
        sum += small[(random >> 20) % (200 << 20)];
    }
    return sum == 0;
}
"""
KERNEL = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    int zeroes = open("/dev/zero", O_RDONLY);
    char *block = malloc(64 << 20);
    for (int i = 0; i < 100; i++)
        if (read(zeroes, block, 64 << 20) < 0) return 1;
    return 0;
}
"""

UNEVEN = """
#include <omp.h>
#include <stdio.h>
static double work(long rounds) {
    volatile double sum = 0;
    for (long i = 0; i < rounds; i++) sum += i;
    return sum;
}
int main(void) {
    double sum = 0;
    for (int round = 0; round < 300; round++)
#pragma omp parallel for schedule(static, 1) reduction(+ : sum)
        for (int part = 0; part < 2; part++) sum += work(part ? 500000 : 1500000);
    return sum < 0;
}
"""


@pytest.fixture
def made(tmp_path: Path):
    def call(source: str, *flags: str) -> Path:
        (tmp_path / "it.c").write_text(source)
        subprocess.run(["cc", "-g", "-O2", *flags, "-o", tmp_path / "it", tmp_path / "it.c"], check=True)
        return tmp_path / "it"

    return call


def profiled(run: Run, folder: Path, *command: object, backend: str = "auto") -> dict:
    result = run("profile", "--backend", backend, "-o", "it.profile", "--", *command)
    assert result.returncode == 0, result.stderr
    return json.loads((folder / "it.profile" / "profile.json").read_text(encoding="utf-8"))


def peak_resident_bytes(*command: object) -> int:
    """By the kernel's own books, without us."""
    measure = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    words = [sys.executable, "-c", measure, *map(str, command)]
    return 1024 * int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def flat(text: str) -> str:
    """Text without the breaks of a terminal's lines."""
    return " ".join(text.split())


def footprint_bytes(profile: dict) -> int:
    return sum(item["size_bytes"] for item in profile["objects"])


@pytest.mark.parametrize("backend", ["perf", "ptrace"])
def test_memory_that_was_never_touched_is_none(run: Run, folder: Path, made, backend: str) -> None:
    program = made(SPARSE)
    profile = profiled(run, folder, program, backend=backend)
    assert footprint_bytes(profile) == pytest.approx(peak_resident_bytes(program), rel=0.1)
    large = max(profile["objects"], key=lambda item: item.get("address_bytes", 0))
    assert large["address_bytes"] == 8 << 30
    assert large["size_bytes"] == pytest.approx(200 * MIB, rel=0.05)


def test_what_fits_needs_no_plan_however_much_was_asked_for(run: Run, folder: Path, made) -> None:
    profiled(run, folder, made(SPARSE))
    asked = ("--machine", "liu-a", "--nodes", "ldram,cxl", "--fast-memory", "420MiB")
    result = run("plan", "it.profile", *asked)
    assert "nothing to place" in flat(result.stdout)
    comparison = json.loads(run("plan", "it.profile", *asked, "--json").stdout)
    times = {each["policy"]: each["prediction"]["time_s"] for each in comparison["policies"] if "prediction" in each}
    assert times["local"] == pytest.approx(min(times.values()), rel=0.01)


@pytest.mark.skipif(lacking("sort") is not None, reason="no sort here")
def test_memory_of_a_program_of_the_distribution(run: Run, folder: Path) -> None:
    numbers = folder / "numbers.txt"
    numbers.write_text("".join(f"{(i * 7919) % 3_000_017}\n" for i in range(3_000_000)))
    command = ("sort", "--parallel=1", "-o", "/dev/null", numbers)
    assert footprint_bytes(profiled(run, folder, *command)) == pytest.approx(peak_resident_bytes(*command), rel=0.1)


@pytest.mark.parametrize("backend", ["perf", "ptrace"])
def test_time_in_the_kernel_is_the_kernels(run: Run, folder: Path, made, backend: str) -> None:
    profile = profiled(run, folder, made(KERNEL), backend=backend)
    shares = {item["name"]: item["stall"]["share"] for item in profile["unattributed"]}
    program = profile["program"]
    assert shares["[kernel]"] >= 0.9
    assert shares["[kernel]"] == pytest.approx(program["system_s"] / program["cpu_s"], abs=0.01)
    everything = sum(shares.values()) + sum(item["stall"]["share"] for item in profile["objects"])
    assert everything == pytest.approx(1, abs=1e-6)


def test_on_its_own_machine_a_plan_takes_what_the_run_took(run: Run, folder: Path, made) -> None:
    profile = profiled(run, folder, made(SPARSE))
    liu, program = tierloom.Machine.load("liu-a").data, profile["program"]
    sockets = [{**socket, "cpu": program["cpu"]} for socket in liu["sockets"]]
    here = {**liu, "host": program["host"], "sockets": sockets}
    tierloom.Machine.from_data(here).save(folder / "here.toml")
    comparison = json.loads(run("plan", "it.profile", "--machine", "here.toml", "--json").stdout)
    times = {each["policy"]: each["prediction"]["time_s"] for each in comparison["policies"]}
    undisturbed_s = program["wall_s"] - sum(program.get(part, 0.0) for part in ("queued_s", "held_s", "sampled_s"))
    # On a busy machine a thread that was held may have had no CPU anyway.
    assert times["local"] == pytest.approx(undisturbed_s, rel=0.1)
    assert comparison["anchor"]["measured_s"] == pytest.approx(undisturbed_s)
    assert "Predictions are anchored to the " in flat(
        run("plan", "it.profile", "--machine", "liu-a", "--ran-on", "here.toml").stdout
    )
    assert "not anchored" in flat(run("plan", "it.profile", "--machine", "liu-a").stdout)


def test_more_threads_do_not_speed_up_who_never_had_any(run: Run, folder: Path, made) -> None:
    profiled(run, folder, made(SPARSE))
    one, eight = (run("plan", "it.profile", "--machine", "liu-a", "--threads", n, "--json") for n in ("1", "8"))
    best = [json.loads(result.stdout) for result in (one, eight)]
    times = [{each["policy"]: each["prediction"]["time_s"] for each in answer["policies"]}["local"] for answer in best]
    assert times[1] == pytest.approx(times[0], rel=0.01)
    assert "one however many it may have" in flat(
        run("plan", "it.profile", "--machine", "liu-a", "--threads", "8").stdout
    )


def test_printed_hints_lead_from_a_program_to_a_plan_that_places_something(run: Run, folder: Path, made) -> None:
    command = ["profile", "-o", "it.profile", "--", str(made(SPARSE))]
    for _ in range(2):
        [hint] = re.findall(r"next: tierloom (plan .*)", run(*command).stderr)
        command = shlex.split(hint)
    done = run(*command)
    assert tierloom.Plan.load(folder / "it.plan.toml").data["rules"], done.stderr
    assert "next: tierloom run --plan it.plan.toml" in done.stderr
    assert re.search(r"\d+ % (less|more) than", flat(done.stdout)), done.stdout


THREADED = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *fill(void *nothing) {
    for (int i = 0; i < 40000; i++) memset(malloc(1000), 1, 1000);
    sleep(1);
    return nothing;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, fill, NULL);
    fill(NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
"""


def test_small_blocks_are_memory_wherever_their_allocator_keeps_them(run: Run, folder: Path, made) -> None:
    program = made(THREADED, "-pthread")
    profile = profiled(run, folder, program)
    assert footprint_bytes(profile) == pytest.approx(peak_resident_bytes(program), rel=0.1)
    assert sum(item["size_bytes"] for item in profile["objects"] if item["kind"] == "arena") > 150 * MIB


def test_time_in_which_threads_wait_for_each_other_is_no_computing(
    run: Run, folder: Path, made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    program = made(UNEVEN, "-fopenmp")
    [phase, *others] = profiled(run, folder, program)["phases"]
    assert others == []
    assert phase["threads"] == 2
    # Of two parts one is three times the other: together they are two thirds of what two threads could do.
    assert phase["meeting_s"] == pytest.approx((phase["end_s"] - phase["start_s"]) / 3, rel=0.25)


def test_threads_that_wait_for_the_cpus_of_others_of_their_own_are_not_disturbed(
    run: Run, folder: Path, made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", str(4 * (os.cpu_count() or 1)))
    program = profiled(
        run, folder, made(UNEVEN.replace("part < 2", "part < 1024").replace("00000", "000"), "-fopenmp")
    )["program"]
    assert program["queued_s"] <= 0.2 * program["cpu_s"]
