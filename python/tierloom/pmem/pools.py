"""The pool: what :mod:`tierloom.pmem` offers.

The Rust core keeps the file's structure and the undo log; the arrays that Python sees are a second
mapping of the same file. Both are the same memory, so what a commit writes back is what NumPy stored.
"""

from __future__ import annotations

import math
import mmap
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import tierloom._core as _core
from tierloom.arguments import path as path_text
from tierloom.arguments import reads
from tierloom.errors import PoolError, RequestError
from tierloom.pmem.arrays import describe, understand
from tierloom.pmem.choices import BACKENDS
from tierloom.units import Amount, amount_in_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from numpy.typing import ArrayLike, DTypeLike

    from tierloom.pmem.choices import Backend


MAP_SYNC = 0x80000
MAP_SHARED_VALIDATE = 0x03
"""Linux's ``include/uapi/asm-generic/mman.h``; Python's `mmap` module does not name them."""

SEPARATOR = "/"
"""Between a checkpoint's name and the name of an array in it."""


@dataclass(frozen=True)
class Usage:
    """How full a pool is, in bytes; none stands for what libpmemobj does not say."""

    pool_bytes: int
    data_bytes: int | None
    used_bytes: int
    longest_free_bytes: int | None
    log_bytes: int | None


class ArrayRow(NamedTuple):
    """An array as the core tells it; sizes are in bytes."""

    name: str
    kind: str
    offset: int
    size: int
    version: int
    checksums: bool


class Pool:
    """Named NumPy arrays in one file that come back after a crash.

    Arrays are views of the file: what is stored in them outside of transactions survives the end of the
    process, and survives a power failure after :meth:`persist`. Inside ``with pool.transaction():``
    everything saved is all or nothing. One process at a time has a pool open, one transaction at a time
    is open in it.
    """

    def __init__(self, path: Path, native: _core.OpenPool) -> None:
        self.path = path
        self._native = native
        self._mapping = self._map()
        self._verified: set[str] = set()

    @classmethod
    @reads(path=path_text)
    def create(cls, path: str | Path, size: Amount, *, log: Amount | None = None, backend: Backend = "native") -> Self:
        """Makes a pool in a new file, or on a DAX device.

        Args:
            path: The file, which must not exist; or a device such as ``/dev/dax0.0``, whose contents are lost.
            size: Its size in bytes, or text such as ``"1GiB"``; at least 64 KiB, with libpmemobj 8 MiB.
            log: Most bytes that one transaction can change; an eighth of the pool by default.

                It is room for old contents; libpmemobj takes it from the data's.
            backend: Who keeps it: our own format, or libpmemobj of PMDK where that is installed.

        Raises:
            PoolError: The file exists, there is no room for it, or no libpmemobj.
            RequestError: The sizes make no pool.
        """
        if backend not in BACKENDS:
            message = f"`{backend}` keeps no pools\nhint: back-ends are {' and '.join(BACKENDS)}"
            raise RequestError(message)
        size_bytes = _whole(size)
        log_bytes = None if log is None else _whole(log)
        native = _core.OpenPool.create(Path(path), size_bytes, log_bytes, secrets.randbits(64), backend)
        return cls(Path(path), native)

    @classmethod
    @reads(path=path_text)
    def open(cls, path: str | Path) -> Self:
        """Opens a pool; a transaction that a crash cut off is undone.

        Raises:
            PoolError: There is no pool, it is damaged, or another process has it.
        """
        return cls(Path(path), _core.OpenPool.open(Path(path)))

    @property
    def backend(self) -> str:
        """Who keeps it: ``native`` or ``pmdk``."""
        return self._native.backend()

    @property
    def durability(self) -> str:
        """What makes stores durable: on persistent memory ``clwb``, ``clflushopt`` or ``libpmem``, else ``msync``."""
        return self._native.write_back_by()

    @property
    def recovered(self) -> int | None:
        """Ranges that opening put back, because a crash had cut a transaction off; libpmemobj does not say."""
        return self._native.recovered()

    @property
    def usage(self) -> Usage:
        """How full the pool is."""
        return Usage(*self._native.usage())

    def names(self) -> list[str]:
        """Names of the arrays, sorted."""
        return [row.name for row in self._rows()]

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> np.ndarray:
        """The array of a name, as it lies in the file; one with checksums is verified when it is first taken.

        Raises:
            PoolError: There is no such array, or it does not match its checksums.
        """
        row = self._row(name)
        if row.checksums and name not in self._verified:
            self._match(name)
        return self._view(row)

    def verify(self, name: str) -> list[tuple[int, int]]:
        """Ranges of an array that do not match its checksums: first byte and end of each; none has no checksums.

        Raises:
            PoolError: There is no such array.
        """
        return self._native.verify(self._row(name).name)

    def raw(self, name: str) -> np.ndarray:
        """The array of a name whatever its checksums say, to save what is left of it.

        Raises:
            PoolError: There is no such array.
        """
        return self._view(self._row(name))

    def zeros(
        self, name: str, shape: int | tuple[int, ...], dtype: DTypeLike = np.float64, *, checksums: bool = False
    ) -> np.ndarray:
        """A new array of zeros in the pool.

        Args:
            name: Of the array.
            shape: Its sizes.
            dtype: Of its elements.
            checksums: As for :meth:`put`.

        Raises:
            PoolError: There is no room, or no room in the directory.
            RequestError: The name is taken, or the elements cannot live in a pool.
        """
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        return self.put(name, np.broadcast_to(np.zeros((), dtype), sizes), checksums=checksums)

    def put(self, name: str, values: ArrayLike, *, checksums: bool = False) -> np.ndarray:
        """A new array with these values: all of it, or none of it, is there after a crash.

        Args:
            name: Of the array.
            values: What it holds.
            checksums: Of every 4096 bytes, kept by the transactions that change it; whatever else changes it is
                damage. It has to change in transactions then.

        Raises:
            PoolError: There is no room, or no room in the directory.
            RequestError: The name is taken, or the elements cannot live in a pool.
        """
        source = np.asarray(values)
        with self._own_transaction():
            return self._new(name, source, version=0, checksums=checksums)

    def remove(self, name: str) -> None:
        """Gives an array's room back. Views of it then show whatever comes to lie there.

        Raises:
            RequestError: There is no such array.
        """
        self._native.free(name)
        self._verified.discard(name)

    @contextmanager
    def transaction(self, *arrays: np.ndarray) -> Iterator[Self]:
        """All changes to `arrays`, and to what :meth:`save` names inside, happen or none does.

        When the block ends, its changes survive anything; when an exception leaves it, they are undone.

        Raises:
            PoolError: The log is too small for the old contents.
            RequestError: A transaction is open already, or an array is not of this pool.
        """
        self._native.begin()
        try:
            self.save(*arrays)
            yield self
        except BaseException:
            self._native.abort()
            raise
        self._native.commit()

    def save(self, *arrays: np.ndarray) -> None:
        """Keeps the present contents of arrays, or of slices of them, before they change.

        Raises:
            PoolError: The log is full.
            RequestError: No transaction is open, or an array is not of this pool.
        """
        for array in arrays:
            self._native.save(*self._range(array))

    def persist(self, *arrays: np.ndarray) -> None:
        """Makes what was stored in arrays durable, one after the other, outside of transactions.

        Raises:
            RequestError: An array is not of this pool, or carries checksums.
        """
        for array in arrays:
            self._native.persist(*self._range(array))

    def checkpoint(self, name: str, arrays: Mapping[str, ArrayLike], *, keep: int = 2) -> int:
        """Writes a version of several arrays; it is there as a whole or not at all, and carries checksums.

        Args:
            name: Of the checkpoint.
            arrays: What belongs together, by name.
            keep: Versions that stay, this one included.

        Returns:
            The version's number, counted from 1.

        Raises:
            PoolError: There is no room for another version beside those that stay.
        """
        version = max(self.versions(name), default=0) + 1
        with self._own_transaction():
            for key, values in arrays.items():
                self._new(self._key(name, version, key), np.asarray(values), version, checksums=True)
            for old in self.versions(name)[:-keep]:
                for key in self._keys(name, old):
                    self.remove(key)
        return version

    def versions(self, name: str) -> list[int]:
        """Versions of a checkpoint that are there, oldest first."""
        found = [row for row in self._rows() if row.version]
        return sorted({row.version for row in found if row.name.startswith(self._key(name, row.version, ""))})

    def restore(self, name: str, version: int | None = None) -> dict[str, np.ndarray]:
        """The arrays of a checkpoint: its newest version by default. They are views of the pool that cannot be written.

        Raises:
            PoolError: There is no such version, or it does not match its checksums; the hint names one that does.
        """
        known = self.versions(name)
        wanted = version if version is not None else max(known, default=0)
        if wanted not in known:
            has = ", ".join(map(str, known)) or "none"
            message = f"{self.path} has no version {version or ''} of checkpoint `{name}`\nhint: it has: {has}"
            raise PoolError(message)
        for key in self._keys(name, wanted):
            if self.verify(key):
                self._match(key, hint=self._instead(name, wanted))
        start = len(self._key(name, wanted, ""))
        return {key[start:]: _still(self.raw(key)) for key in self._keys(name, wanted)}

    def grow(self, size: Amount) -> None:
        """Makes the pool larger; arrays that are in use stay valid.

        Raises:
            PoolError: There is no room.
            RequestError: A transaction is open, the size is smaller, or libpmemobj keeps the pool, whose
                files never grow.
        """
        self._native.grow(_whole(size))
        self._mapping = self._map()

    def stream(
        self, names: Sequence[str], elements: int, cpus: Sequence[int], rounds: int, persist: str
    ) -> list[tuple[str, list[float]]]:
        """STREAM on three arrays of doubles: seconds of every round but the first, by kernel.

        Args:
            names: Of the three arrays, whose contents are lost.
            elements: How many of their elements are used.
            cpus: One thread on each.
            rounds: Times that every kernel runs.
            persist: ``none``, ``flush`` or ``transaction``, inside the timed part.

        Raises:
            PoolError: A transaction does not fit, or the results are wrong.
            RequestError: There are no such arrays, or a CPU cannot be used.
        """
        found = {row.name: row.offset for row in self._rows()}
        a, b, c = (found.get(name, 0) for name in names)
        return self._native.stream((a, b, c), elements, list(cpus), rounds, persist)

    def close(self) -> None:
        """Lets go of the file. Arrays stay readable until they are garbage, durability ends here."""
        del self._native
        del self._mapping

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _map(self) -> mmap.mmap:
        flags = MAP_SHARED_VALIDATE | MAP_SYNC if self._native.direct() and self.path.is_file() else mmap.MAP_SHARED
        with self.path.open("r+b") as file:
            return mmap.mmap(file.fileno(), self._native.usage()[0], flags=flags)

    def _rows(self) -> list[ArrayRow]:
        return [ArrayRow(*row) for row in self._native.arrays()]

    def _row(self, name: str) -> ArrayRow:
        for row in self._rows():
            if row.name == name:
                return row
        message = f"{self.path} has no array `{name}`\nhint: it has: {', '.join(self.names()) or 'none'}"
        raise PoolError(message)

    def _match(self, name: str, hint: str | None = None) -> None:
        ranges = self._native.verify(name)
        if not ranges:
            self._verified.add(name)
            return
        lost, first = sum(end - start for start, end in ranges), ranges[0][0]
        hint = hint or f"restore the file from a copy, or take what is there with `pool.raw({name!r})`"
        message = f"{self.path}: {lost} bytes of `{name}` do not match their checksums, the first at byte {first}"
        raise PoolError(f"{message}\nhint: {hint}")  # noqa: EM102

    def _instead(self, name: str, damaged: int) -> str | None:
        """Which version of a checkpoint is whole, as a hint."""
        others = [version for version in reversed(self.versions(name)) if version != damaged]
        whole = [version for version in others if not any(map(self.verify, self._keys(name, version)))]
        return f"version {whole[0]} is whole: restore({name!r}, {whole[0]})" if whole else None

    def _view(self, row: ArrayRow) -> np.ndarray:
        dtype, shape = understand(row.kind)
        if dtype.itemsize * math.prod(shape) != row.size:
            message = f"{self.path}: `{row.kind}` does not describe {row.size} bytes\nhint: run `tierloom pmem check`"
            raise PoolError(message)
        return np.ndarray(shape, dtype, buffer=self._mapping, offset=row.offset)

    def _new(self, name: str, source: np.ndarray, version: int, *, checksums: bool) -> np.ndarray:
        kind = describe(source.dtype, source.shape)
        row = ArrayRow(*self._native.allocate(name, kind, source.nbytes, version, checksums))
        array = self._view(row)
        array[...] = source
        self._verified.add(name)
        return array

    @contextmanager
    def _own_transaction(self) -> Iterator[None]:
        """The caller's transaction where one is open, else one of our own."""
        if self._native.in_transaction():
            yield
        else:
            with self.transaction():
                yield

    def _range(self, array: np.ndarray) -> tuple[int, int]:
        """Offset and size in the file of the bytes between an array's first and last."""
        start = np.frombuffer(self._mapping, np.uint8).__array_interface__["data"][0]
        low, high = np.lib.array_utils.byte_bounds(array)
        if array.size and not start <= low < high <= start + len(self._mapping):
            message = "the array is not of this pool, or of it before it grew\nhint: take it anew: pool[name]"
            raise RequestError(message)
        return (low - start, high - low) if array.size else (0, 0)

    def _key(self, name: str, version: int, key: str) -> str:
        return f"{name}{SEPARATOR}{version}{SEPARATOR}{key}"

    def _keys(self, name: str, version: int) -> list[str]:
        start = self._key(name, version, "")
        return [known for known in self.names() if known.startswith(start)]


def _still(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written: a checkpoint stays what was written once."""
    array.flags.writeable = False
    return array


def _whole(amount: Amount) -> int:
    return amount_in_bytes(amount, 0)
