"""Records in a file that the page cache does not hide: what a store spills to.

Read and written in whole blocks past the page cache (``O_DIRECT``), so that every access is one of the storage, and
is counted. A record begins with its number; what is read is checked against it.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

RECORD_BYTES = 1000
"""YCSB's record: ten fields of 100 bytes."""

SLOT_BYTES = 1024
BLOCK_BYTES = 4096
"""What flash reads at once, and a multiple of every file system's alignment for direct access."""

PIECE = 4096
"""Records that are made at once."""


def make(path: Path, records: int, seed: int) -> None:
    """Writes a file of records that are all different, and out of the page cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    with path.open("wb") as file:
        for first in range(0, records + PIECE, PIECE):
            piece = np.frombuffer(random.bytes(PIECE * SLOT_BYTES), dtype=np.uint8).reshape(PIECE, SLOT_BYTES).copy()
            numbers = np.arange(first, first + PIECE, dtype="<u8")
            piece[:, :8] = numbers.view(np.uint8).reshape(PIECE, 8)
            file.write(piece.tobytes())
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def number_of(record: bytes) -> int:
    """The number that a record carries."""
    return int(struct.unpack_from("<Q", record)[0])


class Blocks:
    """One thread's door to the file; not shared between threads."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_DIRECT)
        self._buffer = mmap.mmap(-1, BLOCK_BYTES)
        """Anonymous memory begins at a page, as direct access wants."""

    def read(self, number: int) -> bytes:
        """A record, read from storage."""
        start, within = _place(number)
        os.preadv(self._file, [self._buffer], start)
        return self._buffer[within : within + RECORD_BYTES]

    def write(self, number: int, record: bytes) -> None:
        """Writes a record through to storage: its block is read, changed and written.

        Two threads that change neighbours at once may leave one of them in its earlier version; each still
        carries its number, and bytes and time are those of both writes.
        """
        start, within = _place(number)
        os.preadv(self._file, [self._buffer], start)
        self._buffer[within : within + RECORD_BYTES] = record
        os.pwritev(self._file, [self._buffer], start)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)
        self._buffer.close()


def _place(number: int) -> tuple[int, int]:
    """Where a record's block begins, and where in it the record does."""
    start = number * SLOT_BYTES
    return start // BLOCK_BYTES * BLOCK_BYTES, start % BLOCK_BYTES
