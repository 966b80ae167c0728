"""Standard streams of the command line: always there, able to take any letter, and one error when they are full.

A verb prints without thinking of that. Its group calls this at the start and at the end.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tierloom.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
STREAMS = {"stdin": (0, "r"), "stdout": (1, "w"), "stderr": (2, "w")}


def prepare() -> None:
    """Opens the streams that the caller closed, and lets the others take any letter."""
    for name, (number, mode) in STREAMS.items():
        if getattr(sys, name) is None:
            _occupy(number)
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 (as long as the process)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            _widen(stream)


def _occupy(number: int) -> None:
    """Takes a closed number, which the next file would get, and with it what is printed; programs find it closed."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)


def _widen(stream: io.TextIOWrapper) -> None:
    """A terminal shows `?` for a letter that it has not; files and programs get UTF-8, as JSON and TOML are."""
    if stream.isatty():
        stream.reconfigure(errors="replace")
    else:
        stream.reconfigure(encoding="utf-8")


@contextmanager
def delivered() -> Iterator[None]:
    """Sees to it that what was printed has left, and ends the process with one error if there is no room for it.

    Whoever reads from a pipe may stop at any line: that ends quietly, with the same code.
    """
    try:
        try:
            yield
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
    except OSError as problem:
        if problem.filename is not None or problem.errno not in (*FULL, errno.EPIPE):
            raise
        _give_up(problem)
        sys.exit(OutputError.exit_code)


def _give_up(problem: OSError) -> None:
    """Says what became of the output, where that can be said; what is still held is dropped."""
    if problem.errno != errno.EPIPE:
        told = f"error: standard output: {problem.strerror}; not all of it was written\n"
        with suppress(OSError):
            click.echo(f"{told}hint: make room there, or send it elsewhere", err=True)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            os.dup2(nowhere, stream.fileno())
            stream.flush()
    os.close(nowhere)
