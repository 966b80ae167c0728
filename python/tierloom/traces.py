"""Files of access traces, read and written a block at a time.

A row is 21 bytes: ``time_ns`` (u8), ``address`` (u8), ``thread`` (u4), ``write`` (u1), little-endian. A file may
have fewer columns (``page`` instead of ``address``, in pages of 4 KiB) or be a plain column of addresses;
what is missing is 0. Nothing here holds more than one block, so a trace may be larger than memory.
"""

from __future__ import annotations

import gzip
import zlib
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Self, cast

import numpy as np

from tierloom import outputs
from tierloom.errors import TraceError
from tierloom.readers import reading
from tierloom.units import PAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

ROW = np.dtype([("time_ns", "<u8"), ("address", "<u8"), ("thread", "<u4"), ("write", "u1")])
"""One access, as the core reads it."""

MOST = {"time_ns": 2**64 - 1, "address": 2**64 - 1, "page": 2**52 - 1, "thread": 2**32 - 1, "write": 1}
"""Largest value of each column that a file may have."""

BLOCK_ROWS = 1 << 15
"""Rows in memory at a time: few enough for a second-level cache, packed and unpacked."""

NO_TRACE = "give an .npy or .parquet file; `tierloom trace import` makes one of text"
TEXT_BYTES = 1 << 22
HEADER_BYTES = 192
"""Bytes of the header that :class:`Writer` leaves room for: it knows the number of rows only at the end."""


def blocks(path: Path) -> Iterator[bytes]:
    """The packed rows of a trace file, a block at a time.

    Raises:
        TraceError: The file is no trace, or a row holds what cannot be.
    """
    first_row = 1
    for block in _parquet(path) if path.suffix == ".parquet" else _npy(path):
        yield _packed(path, block, first_row).tobytes()
        first_row += len(block)


def footprint_bytes(path: Path) -> int:
    """The memory that a trace touches, in whole pages: what a share of its data is a share of.

    Raises:
        TraceError: As for :func:`blocks`.
    """
    seen, waiting = np.empty(0, "<u8"), [np.empty(0, "<u8")]
    for block in blocks(path):
        waiting.append(np.unique(np.frombuffer(block, ROW)["address"] // PAGE_BYTES))
        # Merged when as many wait as are known, so that the work stays linear in the rows.
        if sum(map(len, waiting)) > max(len(seen), BLOCK_ROWS):
            seen, waiting = np.unique(np.concatenate([seen, *waiting])), []
    return len(np.unique(np.concatenate([seen, *waiting]))) * PAGE_BYTES


def _npy(path: Path) -> Iterator[Any]:
    # Nothing is mapped: what is read through a map counts as this process's memory.
    with reading(path, "trace", NO_TRACE, TraceError), path.open("rb") as file:
        kind, count = _npy_header(path, file)
        for start in range(0, count, BLOCK_ROWS):
            yield np.fromfile(file, kind, min(BLOCK_ROWS, count - start))


def _npy_header(path: Path, file: BinaryIO) -> tuple[Any, int]:
    """Type and number of the rows that follow."""
    with reading(path, "array of numbers", NO_TRACE, TraceError):
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = read(file)
    if len(shape) != 1 or kind.hasobject:
        what = "an array of Python objects" if kind.hasobject else f"an array of {len(shape)} dimensions"
        message = f"{path}: {what} is no trace\nhint: give one row an access"
        raise TraceError(message)
    whole = (path.stat().st_size - file.tell()) // max(kind.itemsize, 1)
    if whole < shape[0]:
        message = f"{path}:{whole + 1}: the file ends in this row of {shape[0]}\nhint: write it again"
        raise TraceError(message)
    return kind, shape[0]


def _parquet(path: Path) -> Iterator[Any]:
    try:
        from pyarrow import parquet
    except ImportError as problem:
        message = f"{path}: reading Parquet needs pyarrow\nhint: pip install pyarrow, or save the columns as .npy"
        raise TraceError(message) from problem
    with reading(path, "trace", "give a Parquet file with a column `address` or `page`", TraceError):
        file, first_row = parquet.ParquetFile(path), 1
        for batch in file.iter_batches(batch_size=BLOCK_ROWS):
            names = [name for name in batch.schema.names if name in MOST]
            columns = {name: _column(path, name, batch.column(name), first_row) for name in names}
            made = np.empty(batch.num_rows, dtype=[(name, column.dtype) for name, column in columns.items()])
            for name, column in columns.items():
                made[name] = column
            first_row += batch.num_rows
            yield made


def _column(path: Path, name: str, column: Any, first_row: int) -> Any:  # noqa: ANN401 (pyarrow has no types)
    if column.null_count:
        row = first_row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        message = f"{path}:{row}: {name} is missing\nhint: drop the rows that have none"
        raise TraceError(message)
    return column.to_numpy(zero_copy_only=False)


def _packed(path: Path, block: Any, first_row: int) -> Any:  # noqa: ANN401 (NumPy has no type for "any structured array")
    names = block.dtype.names
    if block.dtype == ROW and block["write"].max(initial=0) <= MOST["write"]:
        return block
    packed = np.zeros(len(block), dtype=ROW)
    if names is None:
        packed["address"] = _whole(path, "address", block, first_row)
        return packed
    if "address" not in names and "page" not in names:
        message = f"{path}: the columns are {', '.join(names)}\nhint: one of them has to be `address` or `page`"
        raise TraceError(message)
    for name in ROW.names or ():
        if name in names:
            packed[name] = _whole(path, name, block[name], first_row)
    if "address" not in names:
        packed["address"] = _whole(path, "page", block["page"], first_row).astype("<u8") * PAGE_BYTES
    return packed


def _whole(path: Path, name: str, column: Any, first_row: int) -> Any:  # noqa: ANN401
    if column.dtype.kind not in "uib":
        message = f"{path}: `{name}` holds {column.dtype}, not whole numbers\nhint: save it as unsigned integers"
        raise TraceError(message)
    most = MOST[name]
    if column.min(initial=0) >= 0 and column.max(initial=0) <= most:
        return column
    row = int(np.argmax((column < 0) | (column > most)))
    hint = "it is 0 for a load and 1 for a store" if name == "write" else f"it has to be 0 to {most}"
    message = f"{path}:{first_row + row}: {name} is {column[row]}\nhint: {hint}"
    raise TraceError(message)


@contextmanager
def text(path: Path) -> Iterator[Callable[[], bytes]]:
    """Reads a text file, packed by gzip or not, a few megabytes at a time; empty bytes at its end.

    Raises:
        TraceError: The file cannot be read.
    """
    with _reading(path):
        file = _open(path)

    def read() -> bytes:
        with _reading(path):
            return file.read(TEXT_BYTES)

    with file:
        yield read


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        message = f"{path}: {reason}\nhint: check the path, and that the file is whole"
        raise TraceError(message) from problem


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


class Writer:
    """Writes packed rows as one ``.npy`` file; called with rows as bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            part = stack.enter_context(outputs.whole(self.path))
            self.file = stack.enter_context(part.open("wb"))
            self.file.write(b"\0" * HEADER_BYTES)
            self.stack = stack.pop_all()
        return self

    def __call__(self, rows: bytes) -> None:
        """Appends rows."""
        try:
            self.file.write(rows)
        except OSError as problem:
            raise outputs.refused(self.path, problem) from problem
        self.rows += len(rows) // ROW.itemsize

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Writes the header, now that the number of rows is known; leaves no file where the work failed."""
        with self.stack:
            if error is not None:
                raise error
            self.file.seek(0)
            self.file.write(_header(self.rows))


def _header(rows: int) -> bytes:
    fields = {"descr": ROW.descr, "fortran_order": False, "shape": (rows,)}
    start = b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
    return start + (repr(fields).ljust(HEADER_BYTES - 11) + "\n").encode()
