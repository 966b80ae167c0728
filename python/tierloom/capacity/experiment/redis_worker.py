"""One run of the key-value store in a process of its own: the server, its records, warming up, the timed part.

Started by `redis_store`. The server is a child of this process, so it is in the same control group, and dies with
it.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom.capacity.experiment import blocks, counters
from tierloom.capacity.experiment.ycsb import Load, Operation
from tierloom.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Redis = Any  # the client's own types also stand for its asynchronous twin's
    """A client of the server."""

BOOT_S = 20.0
BATCH = 500
"""Records that are loaded by one round trip."""

SPARE = 1.05
"""Room for what grows while a store runs, before it is taken to be in memory alone; assumed."""


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Loads, warms the cache with as many operations as are then timed, and times.

    Raises:
        MeasurementError: The store put records out though it was to hold them all.
    """
    counters.join(request["groups"])
    with _server(request) as server:
        loads = _loads(request)
        spills = not _fits(server(), request, loads)
        _load(server(), request)
        file, records = Path(request["file"]), request["records"]
        hands = [_Hand(server(), records, blocks.Blocks(file) if spills else None) for _ in loads]
        warm, timed = loads, [replace(each, before=each.inserts, phase=1) for each in loads]
        _together(hands, [each.drawn() for each in warm])
        work = [each.drawn() for each in timed]
        _, took = counters.timed(lambda: _together(hands, work), lambda: counters.cpu_s() + _served_s(server()))
        told = server().info()
        if told["evicted_keys"] and not spills:
            message = "records were put out of a store that was to hold them all"
            raise MeasurementError(message)
        return {
            **took,
            "spilled_bytes": 0,
            "answers": [str(hand.found) for hand in hands],
            "engine": f"{told.get('server_name', 'redis')} {told.get('valkey_version', told['redis_version'])}",
        }


@contextmanager
def _server(request: dict[str, Any]) -> Iterator[Callable[[], Redis]]:
    """The server; yields what makes a client of it."""
    import redis

    with tempfile.TemporaryDirectory(prefix="tierloom-store-") as folder:
        socket = f"{folder}/s"
        settings = {
            "port": "0",
            "unixsocket": socket,
            "save": "",
            "appendonly": "no",
            "dir": folder,
            "maxmemory": str(request["memory_bytes"]),
            "maxmemory-policy": "allkeys-lru",
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        child = subprocess.Popen(
            [request["server"], *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            _wait(redis.Redis(unix_socket_path=socket), child)
            yield lambda: redis.Redis(unix_socket_path=socket)
        finally:
            child.kill()
            child.communicate()


def _wait(client: Redis, child: subprocess.Popen[str]) -> None:
    """Until the server answers."""
    import redis

    end = time.monotonic() + BOOT_S
    while time.monotonic() < end and child.poll() is None:
        try:
            client.ping()
        except redis.ConnectionError:
            time.sleep(0.02)
        else:
            return
    child.kill()
    last = (child.communicate()[0] or "").strip().split("\n")[-1]
    message = f"the server did not start: {last or 'it said nothing'}"
    raise MeasurementError(message)


def _loads(request: dict[str, Any]) -> list[Load]:
    threads = request["threads"]
    return [
        Load(
            mix=request["mix"],
            records=request["records"],
            operations=max(1, request["operations"] // threads),
            theta=request["theta"],
            seed=request["seed"],
            thread=thread,
            threads=threads,
        )
        for thread in range(threads)
    ]


def _fits(client: Redis, request: dict[str, Any], loads: Sequence[Load]) -> bool:
    """Whether the server can hold all records and inserts, by what a sample of them takes it."""
    sample = min(request["records"], 4 * BATCH)
    before = client.info()["used_memory"]
    _fill(client, request, sample)
    each = (client.info()["used_memory"] - before) / sample
    client.flushall()
    inserts = sum(load.inserts + replace(load, phase=1).inserts for load in loads)
    return bool(before + SPARE * each * (request["records"] + inserts) < request["memory_bytes"])


def _load(client: Redis, request: dict[str, Any]) -> None:
    _fill(client, request, request["records"])


def _fill(client: Redis, request: dict[str, Any], records: int) -> None:
    """The file's first records, in order."""
    with Path(request["file"]).open("rb") as file:
        for first in range(0, records, BATCH):
            count = min(BATCH, records - first)
            piece = file.read(count * blocks.SLOT_BYTES)
            client.mset({first + i: _record(piece, i) for i in range(count)})


def _record(piece: bytes, index: int) -> bytes:
    start = index * blocks.SLOT_BYTES
    return piece[start : start + blocks.RECORD_BYTES]


def _served_s(client: Redis) -> float:
    told = client.info("cpu")
    return float(told["used_cpu_user"] + told["used_cpu_sys"])


@dataclass
class _Hand:
    """One thread of the client.

    Attributes:
        client: Its connection.
        records: How many were loaded.
        storage: Its door to the file; none where all is in memory.
        found: Records read, each with the right number: the answer that all runs have to agree on.
    """

    client: Redis
    records: int
    storage: blocks.Blocks | None
    found: int = 0

    def work(self, operations: Sequence[Operation]) -> None:
        """Does the operations one after another, as YCSB's threads do."""
        for each in operations:
            if each.kind == "read":
                self._read(each.record)
            elif each.kind == "scan":
                self._scan(each.record, each.length)
            elif each.kind == "modify":
                self._write(each.record, self._read(each.record))
            elif each.kind in ("update", "insert"):
                self._write(each.record, _made(each.record))

    def _read(self, number: int) -> bytes:
        return self._checked(number, self.client.get(number))

    def _scan(self, first: int, length: int) -> None:
        """Records in the order of their numbers, of those that were loaded."""
        numbers = range(first, min(first + length, self.records))
        for number, record in zip(numbers, self.client.mget(numbers), strict=True):
            self._checked(number, record)

    def _checked(self, number: int, record: bytes | None) -> bytes:
        """The record, from storage where the server has put it out."""
        if record is None:
            record = self._back(number)
        if blocks.number_of(record) != number:
            message = f"record {number} was read as {blocks.number_of(record)}"
            raise MeasurementError(message)
        self.found += 1
        return record

    def _back(self, number: int) -> bytes:
        if self.storage is None:
            message = f"record {number} is not there"
            raise MeasurementError(message)
        record = self.storage.read(number)
        self.client.set(number, record)
        return record

    def _write(self, number: int, record: bytes) -> None:
        self.client.set(number, record)
        if self.storage is not None:
            self.storage.write(number, record)


def _made(number: int) -> bytes:
    """A new version of a record."""
    return number.to_bytes(8, "little") * (blocks.RECORD_BYTES // 8)


def _together(hands: Sequence[_Hand], work: Sequence[Sequence[Operation]]) -> None:
    counters.in_threads(lambda at: hands[at].work(work[at]), len(hands))


if __name__ == "__main__":
    counters.answer(run)
