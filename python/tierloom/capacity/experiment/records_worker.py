"""One run of the key-value workload in a process of its own: threads that read and update records of a file.

Started by `records`. The page cache of its control group is the store's memory: what does not fit is read
from storage again. Threads wait in system calls, so they wait side by side.
"""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np

from tierloom.capacity.experiment import counters


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Warms the cache with as many operations as are then timed."""
    counters.join(request["groups"])
    keys = _keys(request)
    file = os.open(request["file"], os.O_RDWR)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    _work(file, keys[0], request)
    sums, took = counters.timed(lambda: _work(file, keys[1], request))
    return {**took, "spilled_bytes": 0, "answers": [str(total) for total in sums], "engine": "records in a file"}


def _keys(request: dict[str, Any]) -> Any:  # noqa: ANN401 (an array: pass, thread, operation)
    """Scrambled Zipf keys, the same for every memory."""
    random = np.random.default_rng(request["seed"])
    popularity = np.cumsum(np.arange(1, request["records"] + 1, dtype=float) ** -request["theta"])
    shape = (2, request["threads"], request["operations"] // request["threads"])
    ranks = np.searchsorted(popularity, random.random(shape) * popularity[-1])
    return random.permutation(request["records"])[np.minimum(ranks, request["records"] - 1)]


def _work(file: int, keys: Any, request: dict[str, Any]) -> list[int]:  # noqa: ANN401
    """All threads' operations; what each read, as a checksum."""
    size, every = request["record_bytes"], request["update_every"]

    def thread(number: int) -> int:
        total = 0
        for step, key in enumerate(keys[number].tolist()):
            record = os.pread(file, size, key * size)
            total = zlib.crc32(record, total)
            if every and step % every == 0:
                os.pwrite(file, record, key * size)
        return total

    return counters.in_threads(thread, len(keys))


if __name__ == "__main__":
    counters.answer(run)
