"""Programs that are watched while something goes wrong around them."""

from __future__ import annotations

import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import Run

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void say(const char *path, const char *words)
{
    FILE *told = fopen(path, "a");
    fputs(words, told);
    fclose(told);
}

/* Works on an array for so many seconds, or until FILE.stop is there, allocating all the while, and says when it
   begins and is done. */
int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    double seconds = atof(argv[1]);
    char stop[4096];
    snprintf(stop, sizeof stop, "%s.stop", argv[2]);
    say(argv[2], "begun ");
    size_t words = 1 << 20;
    unsigned long *array = malloc(words * sizeof *array), sum = 0;
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (unsigned long round = 1;; round++) {
        for (size_t i = 0; i < words; i++)
            sum += array[i] = round * i;
        for (int i = 0; i < 2000; i++) {
            char *block = malloc(100000);
            block[0] = 1;
            free(block);
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begun.tv_sec + (now.tv_nsec - begun.tv_nsec) * 1e-9 > seconds || access(stop, F_OK) == 0)
            break;
    }
    say(argv[2], sum != 0 ? "done" : "wrong");
    return 0;
}
"""


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`worker SECONDS FILE`: works that long, or until `FILE.stop` is there; writes `begun done` into the file."""
    folder = tmp_path_factory.mktemp("worker")
    (folder / "worker.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", "-o", folder / "worker", folder / "worker.c"], check=True)
    return folder / "worker"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 48 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here: run as root")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder that may not be written, by root either."""
    with tempfile.TemporaryDirectory() as name:
        mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", name]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted here: run as root")
        yield Path(name)
        subprocess.run(["umount", "-l", name], check=True)


@pytest.fixture
def run(executable: Path, folder: Path) -> Run:
    """Runs `tierloom WORDS…` as a process, in an empty folder; files that it writes may be so many bytes long."""

    def call(*words: object, longest: int | None = None) -> subprocess.CompletedProcess[str]:
        def limit() -> None:
            if longest is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (longest, longest))

        command = [str(executable), *map(str, words)]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, preexec_fn=limit)

    return call
