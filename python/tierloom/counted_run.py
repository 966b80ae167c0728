"""A program run once more, under Valgrind's callgrind, which counts every execution of every instruction.

With simulated caches it counts the lines that each instruction fetched, too.

What the program did the first time is not touched: its output goes nowhere, and its counts into a folder that is gone
when they were read.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.child_processes import ends_with_us
from tierloom.debian import packages
from tierloom.errors import RecordingError, RequestError
from tierloom.same_library import same_library
from tierloom.standard_input import standard_input

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tierloom.standard_input import StandardInput

VALGRIND = "valgrind"
SLOWER = {"executions": (30, 50), "traffic": (10, 140)}
"""Times as long as the program itself, by what is counted: conjugate gradients, solver, graph search (a hash join took
20); lookups that miss, a sparse product that does not."""
FORKS = ("fork", "vfork", "_Fork", "posix_spawn*")
"""Functions of the C library that copy the process, and its counts with it: these are written down before."""
COUNTS = ("executions", "traffic")
"""What can be counted; traffic is executions and lines from memory."""
SMALLEST_LLC = 64 * 1024
"""Of a last-level cache, bytes: less is no more than a first level has."""
FIRST_LEVEL = "32768,8,64"
"""The simulated first level of data, as :func:`geometry` tells one: 32 KiB, as many cores have; others have more."""
OPTIONS = (
    *("--tool=callgrind", "--dump-instr=yes", "--dump-line=no", "--skip-plt=no", "--trace-children=yes"),
    *(f"--dump-before={function}" for function in FORKS),
)
ERRORS_SHOWN = 3
"""Lines of what Valgrind said last."""


@dataclass(frozen=True)
class CountedRun:
    """What the second run takes; made before the first one, which may read its input to the end."""

    command: Sequence[str]
    folder: Path
    stdin: StandardInput
    traffic: bool = False
    """Whether caches are simulated, and the lines counted that they fetch."""
    llc_bytes: int | None = None
    """The last of them; that of the first run's machine where none is given."""

    def files(self, exit_code: int | None, llc_bytes: int) -> list[str]:
        """Runs the program; the files in which it was counted, one a process or a part of one.

        Args:
            exit_code: With which it ended the first time; None where nobody knows.
            llc_bytes: The last-level cache that it had then.

        Raises:
            RecordingError: It was not counted to its end, or ended otherwise than the first time.
        """
        ended = self._run(self._caches(llc_bytes))
        code = 128 - ended if ended < 0 else ended
        if exit_code is not None and code != exit_code:
            raise RecordingError(_ended_otherwise(code, exit_code, _said(self.folder)))
        counted = sorted(str(file) for file in self.folder.glob("callgrind.out.*"))
        if not counted:
            said = _said(self.folder)
            message = f"valgrind counted nothing{said}\nhint: try `valgrind --tool=callgrind` on the program"
            raise RecordingError(message)
        return counted

    def _caches(self, llc_bytes: int) -> list[str]:
        size = self.llc_bytes or llc_bytes
        return ["--cache-sim=yes", f"--D1={FIRST_LEVEL}", f"--LL={geometry(size)}"] if self.traffic else []

    def _run(self, caches: Sequence[str]) -> int:
        files = [f"--callgrind-out-file={self.folder}/callgrind.out.%p", f"--log-file={self.folder}/log.%p"]
        command = [*ends_with_us(), VALGRIND, *OPTIONS, *caches, *files, "--", *self.command]
        nowhere = subprocess.DEVNULL
        with self.stdin.opened() as given:
            return subprocess.run(command, stdin=given, stdout=nowhere, stderr=nowhere, check=False).returncode


def geometry(size_bytes: int) -> str:
    """A cache of about this size, as Valgrind takes it: bytes, ways, bytes of a line. It wants a power of two of sets.

    Example:
        >>> geometry(32 << 20), geometry(30 << 20)
        ('33554432,16,64', '31457280,30,64')
    """
    lines = max(size_bytes, SMALLEST_LLC) // 64
    sets = 1 << max(lines.bit_length() - 5, 0)
    ways = round(lines / sets)
    return f"{sets * ways * 64},{ways},64"


@contextmanager
def prepared(command: Sequence[str], *, traffic: bool = False, llc_bytes: int | None = None) -> Iterator[CountedRun]:
    """Looks for Valgrind, and where the program's input begins; both runs belong inside.

    Raises:
        RequestError: Valgrind is not here, or there is no such cache.
    """
    if llc_bytes is not None and llc_bytes < SMALLEST_LLC:
        message = f"a last-level cache of {llc_bytes} bytes is none\nhint: give 64KiB or more"
        raise RequestError(message)
    if lacking := packages.lacking(VALGRIND):
        message = f"executions are counted by valgrind: {lacking.partition(': ')[0]}\nhint: {_how(lacking)}"
        raise RequestError(message)
    with tempfile.TemporaryDirectory(prefix="tierloom-count-") as folder, same_library():
        yield CountedRun(tuple(command), Path(folder), standard_input(), traffic, llc_bytes)


def _how(lacking: str) -> str:
    return lacking.partition(": ")[2] or "install valgrind"


def _ended_otherwise(code: int, before: int, said: str) -> str:
    if code == 128 + signal.SIGILL:
        return (
            f"valgrind does not know an instruction of the program (SIGILL){said}\n"
            "hint: valgrind knows no AVX-512; build the program without it (-mno-avx512f, or -march=x86-64-v3)"
        )
    return (
        f"the program ended with {code} under valgrind, and with {before} before{said}\n"
        "hint: give it what it can do twice: files that it makes and takes, input from a file and not from a pipe"
    )


def _said(folder: Path) -> str:
    """What Valgrind said last."""
    logs = sorted(folder.glob("log.*"), key=lambda file: file.stat().st_mtime)
    lines = [line for log in logs[-1:] for line in log.read_text(errors="replace").splitlines()]
    told = [words for line in lines if (words := line.partition("== ")[2].strip()) and "Callgrind" not in words]
    errors = [words for words in told if "nrecognised" in words or "llegal" in words] or told
    return f": {'; '.join(errors[:ERRORS_SHOWN])}" if errors else ""
