"""`profile --count`: the program runs twice, and what it did the first time is not touched."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tierloom.profiler import COUNTED_HZ

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
static int table[1 << 16];
int main(int count, char **words) {
    long n = 1 << 20, sum = 0;
    int *keys = malloc(n * sizeof *keys);
    unsigned seed = 1;
    for (long i = 0; i < n; i++) keys[i] = (seed = seed * 1103515245 + 12345) >> 4;
    for (int turn = 0; turn < 40; turn++)
        for (long i = 0; i < n; i++) if (keys[i] % 3 == 0) table[keys[i] & 0xffff]++;
    for (long i = 0; i < 1 << 16; i++) sum += table[i];
    puts("once");
    fprintf(stderr, "told once\\n");
    return sum < count;
}
"""
FORKING = """
#include <stdlib.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int cells[1 << 20];
static void turn(int times) { while (times--) for (long i = 0; i < 1 << 20; i++) cells[i]; }
int main(void) {
    char *nothing[] = {"/nowhere", NULL}, *other[] = {"/bin/true", NULL};
    pid_t spawned, child;
    turn(100);
    child = fork();
    if (child == 0) { turn(30); _exit(0); }
    posix_spawn(&spawned, nothing[0], NULL, NULL, nothing, NULL);
    if (vfork() == 0) { execv(nothing[0], nothing); execv(other[0], other); _exit(1); }
    turn(20);
    while (wait(NULL) > 0);
    return 0;
}
"""
#: keys: 2^20 stores and 40 x 2^20 loads; table: a load and a store for each third key, and 2^16 loads at the end.
KEYS = 41 * (1 << 20)


def counted(executable: Path, folder: Path, *options: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """What `profile --count` says of the program."""
    command = [executable, "profile", "--count", "-o", "it.profile", *options, "--", "./app"]
    environment = {**os.environ, **({"PATH": path} if path else {})}
    words = [*map(str, command)]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def profiled(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "it.profile" / "profile.json").read_text())


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-o", "app", "app.c"], cwd=tmp_path, check=True)
    return tmp_path


def stands_in(folder: Path, script: str) -> str:
    """A PATH on which valgrind is this script."""
    (folder / "bin").mkdir()
    (folder / "bin" / "valgrind").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bin" / "valgrind").chmod(0o755)
    return f"{folder / 'bin'}:{os.environ['PATH']}"


@pytest.mark.live
@pytest.mark.needs("gcc", "valgrind")
def test_totals_are_what_the_program_does(executable: Path, app: Path) -> None:
    done = counted(executable, app)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "once\n", "the second run's output goes nowhere"
    assert done.stderr.count("told once") == 1
    assert "CMD runs a second time" in done.stderr
    profile = profiled(app)
    assert "thread_local" in profile["sampling"]
    found = {one["name"]: one["accesses"] for one in profile["objects"] if "accesses" in one}
    assert all(one["source"] == "counted" for one in found.values())
    keys = next(
        one["accesses"] for one in profile["objects"] if one["kind"] == "heap" and one["size_bytes"] > 4_000_000
    )
    assert keys["count"] == pytest.approx(KEYS, rel=0.01)
    assert profile["sampling"]["not_sampled"]["share"] < 0.01
    assert profile["sampling"]["hz"] == pytest.approx(COUNTED_HZ, rel=0.01)


@pytest.mark.live
@pytest.mark.needs("gcc", "valgrind")
def test_a_recording_that_is_kept_has_its_counts_beside_it(executable: Path, app: Path) -> None:
    done = counted(executable, app, "--keep", "it.recording")
    assert done.returncode == 0, done.stderr
    (counts,) = app.glob("it.recording.callgrind.out.*")
    assert f"wrote {counts.name} (counts)" in done.stderr
    before = profiled(app)
    words = [executable, "analyse", "it.recording", "--counts", counts.name, "-o", "it.profile"]
    subprocess.run([*map(str, words)], cwd=app, capture_output=True, check=True)
    assert profiled(app) == before
    subprocess.run([str(executable), "profile", "--keep", "it.recording", "--", "./app"], cwd=app, check=True)
    assert not list(app.glob("it.recording.callgrind.out.*")), "they are of another run"


@pytest.mark.live
@pytest.mark.needs("gcc", "valgrind")
def test_what_a_process_did_before_it_forked_counts_once(executable: Path, tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(FORKING)
    subprocess.run(["gcc", "-O1", "-g", "-o", "app", "app.c"], cwd=tmp_path, check=True)
    done = counted(executable, tmp_path)
    assert done.returncode == 0, done.stderr
    profile = profiled(tmp_path)
    (cells,) = [one for one in profile["objects"] if one["name"].startswith("cells")]
    assert cells["accesses"]["count"] == pytest.approx(150 << 20, rel=0.001)
    assert "forks_counted" not in {one["kind"] for one in profile["sampling"].get("warnings", [])}


def test_both_runs_take_the_same_code_of_the_c_library(executable: Path, tmp_path: Path) -> None:
    path = stands_in(tmp_path, "echo $GLIBC_TUNABLES > second")
    words = [executable, "profile", "--count", "-o", "it.profile", "--", "sh", "-c", "echo $GLIBC_TUNABLES"]
    environment = {**os.environ, "PATH": path, "GLIBC_TUNABLES": "glibc.malloc.check=0"}
    done = subprocess.run(
        [*map(str, words)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == (tmp_path / "second").read_text()
    assert done.stdout.startswith("glibc.malloc.check=0:glibc.cpu.hwcaps=-AVX512F,")


def runs(stat: Path) -> bool:
    """Whether a process is there and no zombie; it may go at any moment, between two looks, too."""
    try:
        return "Z" not in stat.read_text().rpartition(")")[2]
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.needs("gcc", "setpriv")
def test_what_counts_ends_with_a_profiler_that_is_killed(executable: Path, app: Path) -> None:
    path = stands_in(app, "echo $$ > counting; exec sleep 300")
    words = [executable, "profile", "--count", "-o", "it.profile", "--", "./app"]
    environment = {**os.environ, "PATH": path}
    with subprocess.Popen(
        [*map(str, words)], cwd=app, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as profiler:
        while not (app / "counting").exists() or not (app / "counting").read_text().strip():
            assert profiler.poll() is None
            time.sleep(0.01)
        counting = Path("/proc") / (app / "counting").read_text().strip() / "stat"
        assert runs(counting)
        profiler.kill()
    while runs(counting):
        time.sleep(0.01)


@pytest.mark.needs("gcc")
def test_traffic_is_counted_in_the_cache_that_was_asked_for(executable: Path, app: Path) -> None:
    path = stands_in(app, 'echo "$@" > words')
    for options, cache in ((["--llc", "30MiB"], "--LL=31457280,30,64"), ([], "--LL=")):
        words = [executable, "profile", "--count", "traffic", *options, "-o", "it.profile", "--", "./app"]
        environment = {**os.environ, "PATH": path}
        done = subprocess.run([*map(str, words)], cwd=app, env=environment, capture_output=True, check=False)
        assert done.returncode == 1, "it counts nothing"
        told = (app / "words").read_text()
        assert "--cache-sim=yes --D1=32768,8,64 " + cache in told, told
    counted(executable, app, path=path)
    assert "cache" not in (app / "words").read_text()


@pytest.mark.needs("gcc", "valgrind")
def test_a_program_in_the_place_of_what_is_counted_is_told_apart(executable: Path, app: Path) -> None:
    def refused(*words: str) -> str:
        command = [str(executable), "profile", *words]
        done = subprocess.run(command, cwd=app, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert not done.stdout, "nothing ran"
        return " ".join(done.stderr.split())

    assert "write --count -- ./app" in refused("--count", "./app")
    assert "does nothing without --count traffic" in refused("--count", "--llc", "1MiB", "--", "./app")
    assert "64KiB or more" in refused("--count", "traffic", "--llc", "1KiB", "--", "./app")


@pytest.mark.live
@pytest.mark.needs("gcc", "valgrind")
def test_what_is_swept_is_fetched_in_each_sweep(executable: Path, app: Path) -> None:
    """Behind a cache of 1 MiB `keys`, of 4 MiB, come from memory 41 times, and the run's cache has them or has not."""
    words = [executable, "profile", "--count", "traffic", "--llc", "1MiB", "-o", "it.profile", "--", "./app"]
    done = subprocess.run([*map(str, words)], cwd=app, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    profile = profiled(app)
    traffic = profile["sampling"]["counted_traffic"]
    assert traffic["llc_bytes"] == 1 << 20
    assert traffic["elsewhere_bytes"] < 1 << 20
    keys = next(one for one in profile["objects"] if one["kind"] == "heap" and one["size_bytes"] > 4_000_000)
    rows = [row for phase in profile["phases"] for row in phase["accesses"] if row["object"] == keys["name"]]
    assert sum(row["touched"]["bytes"] for row in rows) == pytest.approx(4 * KEYS, rel=0.02)


@pytest.mark.needs("gcc")
def test_without_valgrind_nothing_runs(executable: Path, app: Path) -> None:
    (app / "empty").mkdir()
    done = counted(executable, app, path=str(app / "empty"))
    assert done.returncode == 2
    assert "once" not in done.stdout
    assert "valgrind is not installed here" in done.stderr
    assert "apt-get install valgrind" in done.stderr
    assert not (app / "it.profile").exists()


@pytest.mark.needs("gcc")
def test_what_valgrind_does_not_know_costs_the_counts_and_not_the_profile(executable: Path, app: Path) -> None:
    done = counted(executable, app, path=stands_in(app, "kill -ILL $$"))
    assert done.returncode == 1
    assert done.stdout == "once\n"
    assert "AVX-512" in done.stderr
    assert re.search(
        r"a second time, under valgrind, 30 to 50 times as long: \d+ s to \d+ s$", done.stderr, re.MULTILINE
    )
    profile = profiled(app)
    assert "not_sampled" not in profile["sampling"]
    assert "not_counted" in {one["kind"] for one in profile["sampling"]["warnings"]}


@pytest.mark.needs("gcc")
def test_a_second_run_that_ends_otherwise_is_not_believed(executable: Path, app: Path) -> None:
    done = counted(executable, app, path=stands_in(app, "exit 3"))
    assert done.returncode == 1
    assert "ended with 3 under valgrind, and with 0 before" in done.stderr
