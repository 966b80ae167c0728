"""A recording that is kept: the same profile from it as when the program ran, wherever its files of code are."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support import Run, lacking

import tierloom._core as _core
from tierloom import profile_folder, recordings
from tierloom.errors import RecordingError
from tierloom.profiler import record

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
double twice(const double *from, double *to, long count);
int main(int count, char **words) {
    long n = 1 << 20;
    double *a = malloc(n * sizeof *a), *b = calloc(n, sizeof *b), sum = VALUE;
    for (long i = 0; i < n; i++) a[i] = i;
    for (int turn = 0; turn < 150; turn++) sum += twice(a, b, n);
    for (int turn = 0; turn < 250; turn++) for (long i = 0; i < n; i += 2) sum += b[i] * a[i];
    if (count > 1) remove(words[0]);
    return printf("%f\n", sum) < 0;
}
"""
LIBRARY = """
double twice(const double *from, double *to, long count) {
    double sum = VALUE;
    for (long i = 0; i < count; i++) sum += to[i] = 2 * from[i];
    return sum;
}
"""


def build(folder: Path, value: int = 0, *flags: str) -> Path:
    """A program and its library, built in a folder; another value gives another build."""
    if reason := lacking("gcc"):
        pytest.skip(reason)
    folder.mkdir(exist_ok=True)
    (folder / "app.c").write_text(PROGRAM)
    (folder / "twice.c").write_text(LIBRARY)
    common = ["gcc", "-g", "-O1", f"-DVALUE={value}", *flags]
    subprocess.run([*common, "-shared", "-fPIC", "-o", "libtwice.so", "twice.c"], cwd=folder, check=True)
    subprocess.run([*common, "-o", "app", "app.c", "-L.", "-ltwice", "-Wl,-rpath,$ORIGIN"], cwd=folder, check=True)
    return folder / "app"


def content(profile: Path) -> dict[str, bytes]:
    """The bytes of each file of a profile."""
    return {path.name: path.read_bytes() for path in sorted(profile.iterdir())}


def flat(words: str) -> str:
    """Words without the breaks of a narrow terminal."""
    return "".join(words.split())


@pytest.fixture
def app(run: Run, folder: Path) -> Path:
    """A program that was profiled as `app.profile`, and its recording kept."""
    program = build(folder / "built")
    done = run("profile", "--keep", "app.recording", "-o", "app.profile", "--", program)
    assert done.returncode == 0, done.stderr
    assert "wrote app.recording (recording)" in done.stderr
    return program


def test_the_profile_of_a_recording_is_the_profile_of_the_run(app: Path, run: Run, folder: Path) -> None:
    assert app.exists()
    (folder / "again").mkdir()
    done = run("analyse", "app.recording", "-o", "again/app.profile")
    assert done.returncode == 0, done.stderr
    assert "next: tierloom plan again/app.profile" in done.stderr
    assert content(folder / "again" / "app.profile") == content(folder / "app.profile")
    assert (folder / "app.recording").exists(), "it is kept"
    assert profile_folder.RECORDING_FILE not in content(folder / "app.profile")


def test_the_profile_is_the_same_where_the_files_are_elsewhere(app: Path, run: Run, folder: Path) -> None:
    before = content(folder / "app.profile")
    packed = json.loads(run("recording", "pack", "app.recording", "-o", "app.binaries", "--json").stdout)
    assert packed["lacking"] == []
    copied = {Path(file["path"]).name for file in packed["copied"]}
    assert {"app", "libtwice.so"} < copied
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    for name in ("app.recording", "app.binaries"):
        shutil.move(folder / name, elsewhere / name)
    shutil.rmtree(app.parent)
    done = run("analyse", elsewhere / "app.recording", "--binaries", elsewhere / "app.binaries", "-o", "app.profile")
    assert done.returncode == 0, done.stderr
    assert content(folder / "app.profile") == before


@pytest.mark.live
@pytest.mark.parametrize("flags", [(), ("-Wl,--build-id=none",)], ids=["build id", "none"])
def test_another_build_of_the_program_is_refused(run: Run, folder: Path, flags: tuple[str, ...]) -> None:
    program = build(folder / "built", 0, *flags)
    assert run("profile", "--keep", "app.recording", "-o", "app.profile", "--", program).returncode == 0
    shutil.copytree(folder / "built", folder / "before")
    build(folder / "built", 1, *flags)
    done = run("analyse", "app.recording", "-o", "other.profile")
    assert done.returncode == 2
    shown = recordings.describe(folder / "app.recording")
    file = next(file for file in shown["binaries"] if file["path"] == str(program))
    told = f"{program}: this is build {file['other_build']}, and build {file['build']} was recorded"
    assert flat(told) in flat(done.stderr)
    assert "hint: give a folder with the build that ran: tierloom analyse app.recording --binaries" in done.stderr
    assert not (folder / "other.profile").exists()
    found = run("analyse", "app.recording", "--binaries", "before", "-o", "app.again")
    assert found.returncode == 0, found.stderr
    program.unlink()
    gone = run("analyse", "app.recording", "-o", "other.profile")
    assert gone.returncode == 2
    assert flat(f"{program}: it is not here, and most samples fell into it") in flat(gone.stderr)


@pytest.mark.needs("objcopy")
def test_debug_information_that_was_moved_out_goes_along(run: Run, folder: Path) -> None:
    program = build(folder / "built")
    for command in ("--only-keep-debug app app.debug", "--strip-debug app", "--add-gnu-debuglink=app.debug app"):
        subprocess.run(["objcopy", *command.split()], cwd=program.parent, check=True)
    assert run("profile", "--keep", "app.recording", "-o", "app.profile", "--", program).returncode == 0
    before = content(folder / "app.profile")
    assert b"app.c:" in before["profile.json"], "lines come from the separate file"
    assert run("recording", "pack", "app.recording", "-o", "app.binaries").returncode == 0
    shutil.rmtree(program.parent)
    assert run("analyse", "app.recording", "--binaries", "app.binaries", "-o", "app.profile").returncode == 0
    assert content(folder / "app.profile") == before


@pytest.mark.live
def test_another_build_of_a_library_is_a_warning(app: Path, run: Run, folder: Path) -> None:
    build(folder / "new", 1)
    shutil.copy(folder / "new" / "libtwice.so", app.parent)
    done = run("analyse", "app.recording", "-o", "other.profile")
    assert done.returncode == 0, done.stderr
    assert flat(f"{app.parent / 'libtwice.so'} (another build)") in flat(done.stderr)
    profile = json.loads((folder / "other.profile" / "profile.json").read_text())
    lost = {rest["name"]: rest["stall"]["share"] for rest in profile["unattributed"]}
    assert lost["[unrecovered]"] > 0.1


@pytest.mark.live
def test_show_tells_what_was_recorded_and_which_files_are_here(app: Path, run: Run) -> None:
    shown = json.loads(run("recording", "show", "app.recording", "--json").stdout)
    written = Path("app.recording").read_bytes()[len(b"tierrec")]
    assert (shown["format"], shown["command"], shown["exit_code"]) == (written, [str(app)], 0)
    assert shown["samples"] > 100
    assert shown["allocations"] > 0
    files = {Path(file["path"]).name: file for file in shown["binaries"]}
    assert all(file["state"] == "same" for file in files.values())
    assert max(shown["binaries"], key=lambda file: file["samples"])["path"] == str(app)
    (app.parent / "libtwice.so").unlink()
    table = run("recording", "show", "app.recording")
    assert table.returncode == 0
    assert flat(f"Recording of {app}") in flat(table.stdout)
    assert "the program ended with exit code 0" in table.stdout
    assert "1 file not here as they ran" in table.stdout


@pytest.mark.live
def test_a_program_that_is_gone_when_it_has_ended_has_a_profile(run: Run, folder: Path) -> None:
    program = build(folder / "built")
    shutil.copytree(folder / "built", folder / "before")
    done = run("profile", "--keep", "app.recording", "-o", "app.profile", "--", program, "gone")
    assert done.returncode == 0, done.stderr
    assert not program.exists()
    assert flat(f"{program} (missing)") in flat(done.stderr)
    assert run("analyse", "app.recording", "--binaries", "before", "-o", "app.profile").returncode == 0
    names = {item["name"] for item in json.loads((folder / "app.profile" / "profile.json").read_text())["objects"]}
    assert {"a", "b"} <= names, "the binary that was kept tells the variables"


def test_an_analysis_that_breaks_leaves_the_recording(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = folder / "app.recording"
    (folder / "numbers.txt").write_text("2\n1\n")
    real = _core.record_profile

    def broken(*words: object) -> tuple[str, bytes]:
        real(*words)  # type: ignore[arg-type]
        message = "the analysis failed\nhint: report it"
        raise RecordingError(message)

    with monkeypatch.context() as patched:
        patched.setattr(_core, "record_profile", broken)
        with pytest.raises(RecordingError):
            record(["sort", "numbers.txt"], folder=folder / "app.profile", keep=recording)
    assert recordings.analyse(recording).exit_code == 0
    assert not (folder / "app.profile").exists()


def test_what_is_no_recording_is_refused(run: Run, folder: Path) -> None:
    (folder / "old.recording").write_bytes(b"tierrec\x03" + bytes(40))
    (folder / "notes.txt").write_text("mine")
    for verb in (["analyse"], ["recording", "show"], ["recording", "pack"]):
        old = run(*verb, "old.recording")
        assert old.returncode == 2
        told = "it is of version 3, and this tierloom reads versions 4 to 16"
        assert f"old.recording: not a recording that can be read: {told}" in old.stderr
        for name in ("notes.txt", "none.recording"):
            wrong = run(*verb, name)
            assert wrong.returncode == 2
            assert wrong.stderr.count("hint:") == 1
    done = run("profile", "--keep", "notes.txt", "--", "touch", "ran")
    assert done.returncode == 2
    assert "notes.txt: it exists and is no recording; the program was not started" in done.stderr
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / "ran").exists()
    assert run("profile", "-o", "p.profile", "--keep", "p.profile/run.recording", "--", "true").returncode == 2
    assert run("profile", "--from", "perf.data", "--keep", "x.recording").returncode == 2
