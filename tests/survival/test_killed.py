"""A profiler that is killed, or whose disk is full, has harmed nothing and lost little."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import REHEARSE, Run, names

import tierloom._core as _core
from tierloom import profile_folder
from tierloom.errors import RecordingError
from tierloom.nouns import Profile
from tierloom.profiler import record

LONG_S = 60
"""Nothing here takes so long on any machine."""


def assert_nothing_shared(profiler: int) -> None:
    """What a profiler shared with its program has no name any more."""
    left = [name for name in names(Path("/dev/shm")) if name.startswith(f"tierloom-{profiler}-")]  # noqa: S108
    assert not left


def runs(word: Path) -> bool:
    """Whether any program has this word on its command line."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(word) in words:
            return True
    return False


def until(is_true: object, what: str) -> None:
    """Waits for something that other processes do.

    Raises:
        TimeoutError: They do not.
    """
    assert callable(is_true)
    begun = time.monotonic()
    while not is_true():
        if time.monotonic() - begun > LONG_S:
            raise TimeoutError(what)
        time.sleep(0.01)


def kill_at(executable: Path, worker: list[str], folder: Path, moment_s: float) -> tuple[Path, str]:
    """Kills a profiler at a moment; the folder of its profile, and what its program said when it had ended."""
    profile, told = folder / "p.profile", folder / "told"
    command = [executable, "profile", "-o", profile, "--", *worker, told]
    profiler = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        profiler.wait(moment_s)
    except subprocess.TimeoutExpired:
        profiler.kill()
    profiler.wait()
    until(lambda: not runs(told), "the program does not end")
    assert_nothing_shared(profiler.pid)
    return profile, told.read_text() if told.exists() else ""


def check(profile: Path, said: str, run: Run) -> str:
    """What is left of a profiler: a program that came to its end, and a profile or a sentence."""
    assert said in {"begun done", ""}, "the program was harmed"
    if not profile.exists():
        return "nothing"
    planned = run("plan", profile, "--machine", "liu-a", "-o", profile.parent / "x.plan.toml")
    assert "Traceback" not in planned.stderr, planned.stderr
    if planned.returncode:
        assert "hint: record the program again" in planned.stderr, planned.stderr
        return "refused"
    data = json.loads((profile / "profile.json").read_text())
    if "exit_code" in data["program"]:
        return "whole"
    assert data["sampling"]["warnings"][0]["kind"] == "stopped"
    assert data["sampling"]["samples"] >= 0
    assert not (profile / "run.recording").exists()
    return "part"


def kill_often(executable: Path, worker: list[str], folder: Path, run: Run, times: int) -> dict[str, int]:
    """Kills profilers at so many random moments of their time; how often what was left."""
    found = dict.fromkeys(("nothing", "refused", "part", "whole"), 0)
    begun = time.monotonic()
    assert check(*kill_at(executable, worker, folder, LONG_S), run) == "whole"
    whole_s = time.monotonic() - begun
    chance = random.Random(8)
    for attempt in range(times):
        place = folder / str(attempt)
        place.mkdir()
        found[check(*kill_at(executable, worker, place, chance.uniform(0.1, whole_s)), run)] += 1
    return found


@pytest.mark.live
@pytest.mark.slow
def test_a_killed_profiler_leaves_a_program_unharmed_and_a_profile_of_what_it_saw(
    executable: Path, worker: Path, folder: Path, run: Run
) -> None:
    assert sum(kill_often(executable, [str(worker), "0.7"], folder, run, 6).values()) == 6


@pytest.mark.live
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_hundred_killed_profilers(executable: Path, worker: Path, folder: Path, run: Run) -> None:
    found = kill_often(executable, [str(worker), "3"], folder, run, 100)
    assert found["part"] > 20, found


@contextmanager
def watched(executable: Path, profile: Path, worker: Path, told: Path) -> Iterator[subprocess.Popen[str]]:
    """A profiler of a worker that works until its end, with something on disk already."""
    command = [executable, "profile", "-o", profile, "--", worker, str(LONG_S), told]
    recording = profile / "run.recording"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as profiler:
        until(lambda: recording.exists() and recording.stat().st_size > 20_000, "nothing is written")
        yield profiler
        profiler.kill()


def stop(told: Path) -> None:
    """Tells a worker to come to its end."""
    told.with_name(told.name + ".stop").touch()


@pytest.mark.live
@pytest.mark.slow
def test_what_was_recorded_until_the_kill_is_in_the_profile(
    executable: Path, worker: Path, folder: Path, run: Run
) -> None:
    told, profile = folder / "told", folder / "p.profile"
    with watched(executable, profile, worker, told) as profiler:
        busy = run("plan", profile, "--machine", "liu-a")
        assert busy.returncode == 2
        assert "is being profiled now" in busy.stderr
        again = run("profile", "-o", profile, "--", "true")
        assert again.returncode == 2
        assert "being recorded" in again.stderr
    assert_nothing_shared(profiler.pid)
    stop(told)
    until(lambda: not runs(told), "the program does not end")
    assert told.read_text() == "begun done"
    planned = run("plan", profile, "--machine", "liu-a")
    assert planned.returncode == 0, planned.stderr
    data = json.loads((profile / "profile.json").read_text())
    assert data["sampling"]["samples"] > 100
    assert data["program"]["cpu_s"] > 0.1
    assert any(item["size_bytes"] == 8 << 20 for item in data["objects"]), "the array was allocated at the start"
    assert names(profile) == ["profile.json", "samples.npy"]
    assert (profile / "samples.npy").stat().st_size > 2000


@pytest.mark.live
@pytest.mark.slow
def test_a_disk_that_gets_full_meanwhile_costs_the_end_of_the_recording(
    executable: Path, worker: Path, folder: Path, small_disk: Path, run: Run
) -> None:
    told, profile, ballast = folder / "told", small_disk / "p.profile", small_disk / "ballast"
    with watched(executable, profile, worker, told) as profiler:
        with pytest.raises(OSError, match="No space"):
            fill(ballast)
        stop(told)
        _, stderr = profiler.communicate()
    assert told.read_text() == "begun done"
    assert profiler.returncode == 1
    assert stderr.count("error: ") == 1, stderr
    assert "hint: make room there; what was recorded is in" in " ".join(stderr.split())
    assert names(profile) == ["run.recording"]
    ballast.unlink()
    planned = run("plan", profile, "--machine", "liu-a", "-o", folder / "x.plan.toml")
    assert planned.returncode == 0, planned.stderr
    data = json.loads((profile / "profile.json").read_text())
    assert data["sampling"]["warnings"][0]["kind"] == "stopped"


@pytest.mark.live
@pytest.mark.slow
def test_a_killed_run_leaves_a_program_unharmed_and_nothing_behind(
    executable: Path, worker: Path, folder: Path, run: Run
) -> None:
    assert run("plan", "mg-e", "--machine", "liu-a", "-o", "x.plan.toml").returncode == 0
    told = folder / "told"
    command = [executable, "run", "--plan", "x.plan.toml", *REHEARSE, "--", worker, str(LONG_S), told]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as placer:
        until(told.exists, "the program does not begin")
        placer.kill()
    assert_nothing_shared(placer.pid)
    assert f"tierloom-{placer.pid}-" not in Path("/proc/net/unix").read_text()
    stop(told)
    until(lambda: not runs(told), "the program does not end")
    assert told.read_text() == "begun done"


def test_an_analysis_that_fails_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = folder / "p.profile"

    def save(*_: object) -> None:
        raise KeyboardInterrupt

    recorded = record(["sh", "-c", BUSY], folder=profile)
    with monkeypatch.context() as patched:
        patched.setattr(profile_folder, "save", save)
        with pytest.raises(KeyboardInterrupt):
            recorded.save(profile)
    assert names(profile) == ["run.recording"]
    with monkeypatch.context() as patched:
        patched.setattr(_core, "analyse_recording", broken_analysis)
        with pytest.raises(RecordingError):
            Profile.load(profile)
    assert names(profile) == ["run.recording"]
    data = Profile.load(profile).data
    assert data["program"]["exit_code"] == 3
    assert not any(warning["kind"] == "stopped" for warning in data["sampling"]["warnings"])
    assert names(profile) == ["profile.json", "samples.npy"]


BUSY = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; exit 3"


def broken_analysis(*_: object) -> None:
    """An analysis that breaks a promise.

    Raises:
        RecordingError: Always.
    """
    message = "the analysis failed\nhint: report it"
    raise RecordingError(message)


def fill(ballast: Path) -> None:
    """Takes all the room of a disk; the last of it in small pieces."""
    with ballast.open("wb", buffering=0) as file:
        for piece in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(bytes(piece))
            except OSError:
                if piece == 1 << 12:
                    raise


def test_a_recording_without_a_beginning_says_so(run: Run, folder: Path) -> None:
    (folder / "p.profile").mkdir()
    planned = run("plan", "p.profile", "--machine", "liu-a")
    assert (planned.returncode, "hint: record the program again" in planned.stderr) == (2, True), planned.stderr
    recording = folder / "p.profile" / "run.recording"
    for held in (b"", b"tierrec\x03", b"tierrec\x03" + bytes(10), b"tierrec\x02", b"something else"):
        recording.write_bytes(held)
        planned = run("plan", "p.profile", "--machine", "liu-a")
        assert planned.returncode == 2
        assert "hint: record the program again" in planned.stderr
    assert run("profile", "-o", "p.profile", "--", "true").returncode == 0, "it may be recorded again"
