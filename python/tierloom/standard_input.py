"""Our standard input as programs get it that run one after the other: each reads it from where it is now."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class StandardInput:
    """A file can be read twice; a pipe or a terminal is empty the second time."""

    path: str
    offset: int

    @contextmanager
    def opened(self) -> Iterator[int]:
        """A descriptor that reads from there."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            if self.offset:
                os.lseek(descriptor, self.offset, os.SEEK_SET)
            yield descriptor
        finally:
            os.close(descriptor)


def standard_input() -> StandardInput:
    """What can be read again; nothing of what is no file."""
    try:
        path = Path("/proc/self/fd/0").resolve(strict=True)
        if path.is_file():
            return StandardInput(str(path), os.lseek(0, 0, os.SEEK_CUR))
    except OSError:
        pass
    return StandardInput(os.devnull, 0)


def is_gone_when_read() -> bool:
    """Whether a program may wait for input that another one would lack: a pipe or a socket."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
