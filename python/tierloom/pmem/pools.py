"""The pool: what :mod:`tierloom.pmem` offers.

The Rust core keeps the file's structure and the undo log; the arrays that Python sees are a second
mapping of the same file. Both are the same memory, so what a commit writes back is what NumPy stored.
"""

from __future__ import annotations

import json
import mmap
import secrets
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import tierloom._core as _core
from tierloom.errors import PoolError, RequestError
from tierloom.pmem.arrays import describe, understand
from tierloom.quantities import Amount, amount_in_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from numpy.typing import ArrayLike, DTypeLike

    from tierloom.pmem.documents import PoolArrayDoc, PoolDoc

MAP_SYNC = 0x80000
MAP_SHARED_VALIDATE = 0x03
"""Linux's ``include/uapi/asm-generic/mman.h``; Python's `mmap` module does not name them."""

Backend = Literal["native", "pmdk"]
BACKENDS = ("native", "pmdk")
"""Who can keep a pool: our own format, or PMDK's libpmemobj."""

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

    @classmethod
    def create(cls, path: str | Path, size: Amount, *, log: Amount | None = None, backend: Backend = "native") -> Self:
        """Makes a pool in a new file, or on a DAX device.

        Args:
            path: The file, which must not exist; or a device such as ``/dev/dax0.0``, whose contents are lost.
            size: Its size in bytes, or text such as ``"1GiB"``; at least 64 KiB, with libpmemobj 8 MiB.
            log: Bytes for old contents: the most that one transaction can change. An eighth by default;
                libpmemobj takes it from the data's room.
            backend: Who keeps the pool: ``"native"``, or ``"pmdk"`` for libpmemobj where it is installed.

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

    def describe(self) -> PoolDoc:
        """The pool and its arrays as the document that ``tierloom pmem show --json`` prints."""
        arrays: list[PoolArrayDoc] = [
            {"name": name, "elements": kind, "offset_bytes": offset, "size_bytes": size, "version": version}
            for name, kind, offset, size, version in self._native.arrays()
        ]
        usage = self.usage
        return {
            "path": str(self.path),
            "backend": self.backend,
            "durability": self.durability,
            "pool_bytes": usage.pool_bytes,
            "data_bytes": usage.data_bytes,
            "used_bytes": usage.used_bytes,
            "longest_free_bytes": usage.longest_free_bytes,
            "log_bytes": usage.log_bytes,
            "arrays": arrays,
        }

    def names(self) -> list[str]:
        """Names of the arrays, sorted."""
        return [name for name, *_ in self._native.arrays()]

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> np.ndarray:
        """The array of a name, as it lies in the file.

        Raises:
            PoolError: There is no such array.
        """
        for known, kind, offset, size, _ in self._native.arrays():
            if known == name:
                return self._view(kind, offset, size)
        message = f"{self.path} has no array `{name}`\nhint: it has: {', '.join(self.names()) or 'none'}"
        raise PoolError(message)

    def zeros(self, name: str, shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> np.ndarray:
        """A new array of zeros in the pool.

        Raises:
            PoolError: There is no room, or no room in the directory.
            RequestError: The name is taken, or the elements cannot live in a pool.
        """
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        return self.put(name, np.broadcast_to(np.zeros((), dtype), sizes))

    def put(self, name: str, values: ArrayLike) -> np.ndarray:
        """A new array with these values: all of it, or none of it, is there after a crash.

        Raises:
            PoolError: There is no room, or no room in the directory.
            RequestError: The name is taken, or the elements cannot live in a pool.
        """
        source = np.asarray(values)
        with self._own_transaction():
            return self._new(name, source, version=0)

    def remove(self, name: str) -> None:
        """Gives an array's room back. Views of it then show whatever comes to lie there.

        Raises:
            RequestError: There is no such array.
        """
        self._native.free(name)

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
            RequestError: An array is not of this pool.
        """
        for array in arrays:
            self._native.persist(*self._range(array))

    def checkpoint(self, name: str, arrays: Mapping[str, ArrayLike], *, keep: int = 2) -> int:
        """Writes a version of several arrays; it is there as a whole or not at all.

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
                self._new(self._key(name, version, key), np.asarray(values), version)
            for old in self.versions(name)[:-keep]:
                for key in self._keys(name, old):
                    self._native.free(key)
        return version

    def versions(self, name: str) -> list[int]:
        """Versions of a checkpoint that are there, oldest first."""
        found = {(version, known) for known, *_, version in self._native.arrays() if version}
        return sorted({version for version, known in found if known.startswith(self._key(name, version, ""))})

    def restore(self, name: str, version: int | None = None) -> dict[str, np.ndarray]:
        """The arrays of a checkpoint: its newest version by default. They are views of the pool.

        Raises:
            PoolError: There is no such version.
        """
        known = self.versions(name)
        wanted = version if version is not None else max(known, default=0)
        if wanted not in known:
            has = ", ".join(map(str, known)) or "none"
            message = f"{self.path} has no version {version or ''} of checkpoint `{name}`\nhint: it has: {has}"
            raise PoolError(message)
        start = len(self._key(name, wanted, ""))
        return {key[start:]: self[key] for key in self._keys(name, wanted)}

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
        found = {name: offset for name, _, offset, *_ in self._native.arrays()}
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

    def _view(self, kind: str, offset: int, size: int) -> np.ndarray:
        dtype, shape = understand(kind)
        if dtype.itemsize * int(np.prod(shape, dtype=np.int64)) != size:
            message = f"{self.path}: `{kind}` does not describe {size} bytes\nhint: run `tierloom pmem check`"
            raise PoolError(message)
        return np.ndarray(shape, dtype, buffer=self._mapping, offset=offset)

    def _new(self, name: str, source: np.ndarray, version: int) -> np.ndarray:
        kind = describe(source.dtype, source.shape)
        _, _, offset, size, _ = self._native.allocate(name, kind, source.nbytes, version)
        array = self._view(kind, offset, size)
        array[...] = source
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


def lacks_pmdk() -> str | None:
    """Why libpmemobj cannot be used on this machine; none where it can."""
    return _core.lacks_pmdk()


def check(path: str | Path) -> list[dict[str, Any]]:
    """What is wrong with the file of a pool, unchanged: ``{"damage": bool, "repairable": bool, "what": str}`` each.

    Raises:
        PoolError: The file cannot be read, or a process has it open.
    """
    return _asked("check", Path(path))


def repair(path: str | Path) -> list[dict[str, Any]]:
    """Makes a damaged pool one that opens, and says what was wrong with it.

    What was under way is undone, or given up where the log is broken; broken entries are dropped;
    arrays that are not broken stay. What libpmemobj finds wrong with its own part, its tools repair.

    Raises:
        PoolError: Nothing is left to start from: both headers are broken.
    """
    return _asked("repair", Path(path))


def _asked(what: str, path: Path) -> list[dict[str, Any]]:
    """As the core finds it; a broken heap may end the process that shows it to libpmemobj, so another one does."""
    if _core.pool_backend(path) == "pmdk":
        told = _in_child(what, path)
    else:
        told = (_core.check_pool if what == "check" else _core.repair_pool)(path)
    return [{"damage": damage, "repairable": repairable, "what": words} for damage, repairable, words in told]


CHILD = """
import json, sys
import tierloom._core as core
from tierloom.errors import TierloomError
try:
    print(json.dumps({"told": getattr(core, sys.argv[1] + "_pool")(sys.argv[2])}))
except TierloomError as error:
    print(json.dumps({"error": str(error)}))
"""


def _in_child(what: str, path: Path) -> list[tuple[bool, bool, str]]:
    done = subprocess.run([sys.executable, "-c", CHILD, what, path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        ended = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        words = f"libpmemobj does not survive reading it ({ended}); restore the file from a copy"
        if what == "check":
            return [(True, False, words)]
        raise PoolError(f"{path}: {words}\nhint: `pmempool info` of pmdk-tools may show more")  # noqa: EM102
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise PoolError(answer["error"])
    return [(damage, repairable, words) for damage, repairable, words in answer["told"]]


def _whole(amount: Amount) -> int:
    return amount_in_bytes(amount, 0)
