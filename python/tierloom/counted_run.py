"""A program run once more, under Valgrind's callgrind, which counts every execution of every instruction.

What the program did the first time is not touched: its output goes nowhere, and its counts into a folder that is gone
when they were read.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.debian import packages
from tierloom.errors import RecordingError, RequestError
from tierloom.same_library import same_library

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VALGRIND = "valgrind"
SLOWER = (30, 50)
"""Times as long as the program itself: conjugate gradients, solver, graph search; a hash join took 20."""
FORKS = ("fork", "vfork", "_Fork", "posix_spawn*")
"""Functions of the C library that copy the process, and its counts with it: these are written down before."""
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
    stdin: tuple[str, int] | None
    """The file of the input, and where it begins; None where it is no file."""

    def files(self, exit_code: int | None = None) -> list[str]:
        """Runs the program; the files in which it was counted, one a process or a part of one.

        Args:
            exit_code: With which it ended the first time; None where nobody knows.

        Raises:
            RecordingError: It was not counted to its end, or ended otherwise than the first time.
        """
        ended = self._run()
        code = 128 - ended if ended < 0 else ended
        if exit_code is not None and code != exit_code:
            raise RecordingError(_ended_otherwise(code, exit_code, _said(self.folder)))
        counted = sorted(str(file) for file in self.folder.glob("callgrind.out.*"))
        if not counted:
            said = _said(self.folder)
            message = f"valgrind counted nothing{said}\nhint: try `valgrind --tool=callgrind` on the program"
            raise RecordingError(message)
        return counted

    def _run(self) -> int:
        files = [f"--callgrind-out-file={self.folder}/callgrind.out.%p", f"--log-file={self.folder}/log.%p"]
        command = [VALGRIND, *OPTIONS, *files, "--", *self.command]
        nowhere = subprocess.DEVNULL
        with self._input() as given:
            return subprocess.run(command, stdin=given, stdout=nowhere, stderr=nowhere, check=False).returncode

    @contextmanager
    def _input(self) -> Iterator[int]:
        file, offset = self.stdin or (os.devnull, 0)
        descriptor = os.open(file, os.O_RDONLY)
        try:
            if offset:
                os.lseek(descriptor, offset, os.SEEK_SET)
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def prepared(command: Sequence[str]) -> Iterator[CountedRun]:
    """Looks for Valgrind, and where the program's input begins; both runs belong inside.

    Raises:
        RequestError: Valgrind is not here.
    """
    if lacking := packages.lacking(VALGRIND):
        message = f"executions are counted by valgrind: {lacking.partition(': ')[0]}\nhint: {_how(lacking)}"
        raise RequestError(message)
    with tempfile.TemporaryDirectory(prefix="tierloom-count-") as folder, same_library():
        yield CountedRun(tuple(command), Path(folder), _standard_input())


def _how(lacking: str) -> str:
    return lacking.partition(": ")[2] or "install valgrind"


def _standard_input() -> tuple[str, int] | None:
    """A file can be read twice; a pipe or a terminal is empty the second time."""
    try:
        path = Path("/proc/self/fd/0").resolve(strict=True)
        return (str(path), os.lseek(0, 0, os.SEEK_CUR)) if path.is_file() else None
    except OSError:
        return None


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
