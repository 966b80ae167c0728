"""What a program maps costs the profiler nothing: only code is read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support import Run

MAPPER = """
import mmap, sys
total = 0
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    for _ in range(20):
        total += sum(view[at] for at in range(0, 4 << 20, 512))
"""

MOST_BYTES = 40e6
"""More than for a program that maps nothing. (What both take, the measurement of the processor's skid needs: four times
its cache.)"""


def peak_bytes(executable: Path, files: list[Path]) -> int:
    command = [executable, "profile", "-o", "p.profile", "--", sys.executable, "-c", MAPPER, *files]
    process = os.posix_spawn(executable, [os.fspath(word) for word in command], os.environ)
    _, status, used = os.wait4(process, 0)
    assert status == 0
    return used.ru_maxrss * 1024


@pytest.mark.live
@pytest.mark.slow
def test_a_hundred_gigabytes_of_mapped_data_stay_on_disk(executable: Path, folder: Path) -> None:
    files = [folder / f"{part}.dat" for part in range(4)]
    for path, start in zip(files, (b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(9), b"GGUF"), strict=True):
        path.write_bytes(start)
        os.truncate(path, 25 << 30)
    assert peak_bytes(executable, files) < peak_bytes(executable, []) + MOST_BYTES
    assert (folder / "p.profile" / "samples.npy").exists()


@pytest.mark.live
def test_a_program_starts_in_twelve_megabytes_of_addresses(run: Run) -> None:
    """Most of what a small program takes then is ours; without us it needs some three."""
    done = run("profile", "-o", "p.profile", "--", "sh", "-c", "ulimit -v 12000; exec /bin/echo ran")
    assert (done.returncode, "ran" in done.stdout) == (0, True), done.stderr
