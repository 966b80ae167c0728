"""Files that we write: whole, or not at all.

What is written goes into a file beside the one that is meant, which it replaces when all of it is there. A
disk that gets full, or a key that is pressed, costs neither what was there before nor leaves half a file.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tierloom.errors import OutputError, RequestError, TierloomError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write(path: Path, content: str | bytes) -> None:
    """Writes a file, in place of the one that may be there.

    Raises:
        OutputError: There is no room for it.
        RequestError: It cannot be written there.
    """
    data = content.encode() if isinstance(content, str) else content
    with whole(path) as part:
        part.write_bytes(data)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write in place of another, for libraries that write by themselves; it has the same ending.

    Raises:
        OutputError: There is no room for it.
        RequestError: It cannot be written there.
    """
    try:
        with _replacing(path) as part:
            yield part
    except OSError as problem:
        if problem.errno is None:
            raise
        raise refused(path, problem) from problem


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """As :func:`whole`, with the system's errors."""
    target = path.resolve()
    if target.exists() and not (target.is_file() and os.access(target.parent, os.W_OK)):
        # A device or a pipe cannot be replaced, nor can a file in a folder that is closed to us.
        yield path
        return
    part = target.with_name(f".{target.stem[:100]}.{os.getpid()}.part{target.suffix}")
    try:
        yield part
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def folder(path: Path) -> Path:
    """A folder, made where it is not there yet.

    Raises:
        RequestError: It cannot be made there.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise refused(path, problem) from problem
    return path


def refused(path: Path, problem: OSError) -> TierloomError:
    """The system's refusal to write a file, with what to do."""
    if problem.errno in NO_ROOM:
        return OutputError(f"{path}: {problem.strerror}; it was not written\nhint: make room there, or write elsewhere")
    return RequestError(f"{path}: {problem.strerror}\nhint: check that its folder exists and may be written")
