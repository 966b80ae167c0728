"""One run in a process of its own: streams of queries under a memory limit, and what they took.

Started by `duck`. A fresh process has no buffer pool, no heap and no counters from the run before. The database
is opened for reading only, so the files that the process writes are those that it spills to.
"""

from __future__ import annotations

import hashlib
import threading
import time
from typing import TYPE_CHECKING, Any

from tierloom.capacity.experiment import counters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Runs the streams that the request asks for."""
    counters.join(request["groups"])
    import duckdb

    config = {
        "memory_limit": f"{request['memory_bytes']}B",
        "temp_directory": request["spill_folder"],
        "threads": request["threads"],
        "preserve_insertion_order": False,
    }
    connection = duckdb.connect(request["database"], read_only=True, config=config)
    before, cpu, start = counters.storage(), counters.cpu_s(), time.monotonic()
    answers = _streams(connection, request["queries"], request["streams"])
    seconds = time.monotonic() - start
    after = counters.storage()
    connection.close()
    return {
        "seconds": seconds,
        "cpu_s": counters.cpu_s() - cpu,
        "read_bytes": after["read_bytes"] - before["read_bytes"],
        "written_bytes": after["write_bytes"] - before["write_bytes"],
        "spilled_bytes": after["wchar"] - before["wchar"],
        "answers": answers,
        "engine": f"DuckDB {duckdb.__version__}",
    }


def _streams(connection: DuckDBPyConnection, queries: Sequence[str], streams: int) -> list[str]:
    """Every stream asks all queries, each from another one on; what each query answered, as a digest."""
    answers: dict[int, str] = {}
    failed: list[BaseException] = []

    def stream(number: int) -> None:
        cursor = connection.cursor()
        first = number * len(queries) // streams
        order = [(first + step) % len(queries) for step in range(len(queries))]
        try:
            for index in order:
                rows = cursor.execute(queries[index]).fetchall()
                answers[index] = hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
        except BaseException as problem:
            failed.append(problem)

    threads = [threading.Thread(target=stream, args=(number,)) for number in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return [answers[index] for index in sorted(answers)]


if __name__ == "__main__":
    counters.answer(run)
