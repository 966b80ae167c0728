"""What cannot be written is an error before anything is lost, and never half a file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import Run, Tierloom, names

from tierloom import outputs
from tierloom.errors import OutputError, RequestError


def assert_one_error(stderr: str) -> None:
    """One error with one hint, no traceback."""
    assert stderr.count("error: ") == 1, stderr
    assert stderr.count("hint: ") == 1, stderr
    assert "Traceback" not in stderr
    assert "panicked" not in stderr


def assert_not_run(run: Run, folder: Path, output: Path, code: int, told: str) -> None:
    """A program was refused because of where its profile goes, and left no mark."""
    ran = run("profile", "-o", output, "--", "touch", folder / "mark")
    assert ran.returncode == code, ran.stderr
    assert_one_error(ran.stderr)
    assert told in ran.stderr
    assert "not started" in ran.stderr
    assert not (folder / "mark").exists()


def test_a_folder_that_cannot_be_made_is_an_error_before_the_program_runs(run: Run, folder: Path) -> None:
    (folder / "file").write_text("in the way")
    for output in (Path("/proc/nope/x"), folder / "file" / "x.profile"):
        assert_not_run(run, folder, output, 2, str(output.parent))
    assert not (folder / "x.profile").exists()


def test_a_file_system_that_is_read_only_is_an_error_before_the_program_runs(
    run: Run, folder: Path, closed_folder: Path
) -> None:
    assert_not_run(run, folder, closed_folder / "x.profile", 2, "Read-only")


def test_a_disk_without_room_is_an_error_before_the_program_runs(run: Run, folder: Path, small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(40 << 20))
    assert_not_run(run, folder, small_disk / "deep" / "x.profile", 1, "MiB are free")
    assert not (small_disk / "deep").exists(), "what was made for it is gone again"


def test_folders_are_made_on_the_way(run: Run, folder: Path) -> None:
    assert run("profile", "-o", "a/b/x.profile", "--", "true").returncode == 0
    assert names(folder / "a" / "b" / "x.profile") == ["profile.json", "samples.npy"]


WRITERS = {
    "plan": ("plan", "mg-e", "--machine", "liu-a", "-o", "x.plan.toml"),
    "report of a plan": ("plan", "mg-e", "--machine", "liu-a", "-o", "/dev/null", "--html", "x.html"),
    "picture of a plan": ("plan", "mg-e", "--machine", "liu-a", "-o", "/dev/null", "--plot", "x.png"),
    "report": ("report", "mg-e", "-o", "x.html"),
    "machine": ("machine", "export", "--hwloc", "liu-a", "-o", "x.xml"),
    "parameters": ("expand", "--write-set", "x.toml"),
}


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_a_file_without_room_is_one_error_and_leaves_nothing(run: Run, folder: Path, words: tuple[str, ...]) -> None:
    whole = run(*words)
    assert whole.returncode == 0, whole.stderr
    (path,) = folder.iterdir()
    before = path.read_bytes() + b"\n"
    path.write_bytes(before)
    ran = run(*words, longest=500)
    assert ran.returncode == 1, ran.stderr
    assert_one_error(ran.stderr)
    assert path.name in ran.stderr
    assert names(folder) == [path.name]
    assert path.read_bytes() == before


def test_a_report_on_a_full_disk_is_one_error_and_leaves_nothing(run: Run, small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes((48 << 20) - (64 << 10)))
    ran = run("plan", "mg-e", "--machine", "liu-a", "-o", "/dev/null", "--html", small_disk / "x.html")
    assert ran.returncode == 1
    assert_one_error(ran.stderr)
    assert names(small_disk) == ["ballast"]


def test_what_is_replaced_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("before")
    real.chmod(0o640)
    link.symlink_to(real)
    outputs.write(link, "after")
    assert link.is_symlink()
    assert (real.read_text(), real.stat().st_mode & 0o777) == ("after", 0o640)
    assert names(tmp_path) == ["link.txt", "real.txt"]


def test_a_device_is_written_and_not_replaced(tmp_path: Path) -> None:
    outputs.write(Path("/dev/null"), "text")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(OutputError, match="make room"):
        outputs.write(Path("/dev/full"), "text")
    with pytest.raises(RequestError, match="folder exists"):
        outputs.write(tmp_path / "no" / "x", "text")


def test_samples_that_were_cut_off_are_told_to_whoever_reads_the_profile(
    run: Run, folder: Path, workloads: Path, tierloom: Tierloom
) -> None:
    assert run("profile", "-o", "s.profile", "--", workloads / "stream", "--iterations", "3").returncode == 0
    samples = folder / "s.profile" / "samples.npy"
    whole = samples.read_bytes()
    for left in (len(whole) - 1, len(whole) // 2, 100, 5):
        samples.write_bytes(whole[:left])
        planned = tierloom("plan", "s.profile", "--machine", "liu-a")
        assert planned.exit_code == 2
        assert "cut off" in planned.stderr
    samples.unlink()
    assert tierloom("plan", "s.profile", "--machine", "liu-a").exit_code == 0
    shutil.rmtree(folder / "s.profile")
