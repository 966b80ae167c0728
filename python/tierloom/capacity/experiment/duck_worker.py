"""One run in a process of its own: streams of queries under a memory limit, and what they took.

Started by `duck`. A fresh process has no buffer pool, no heap and no counters from the run before. The database
is opened for reading only, so the files that the process writes are those that it spills to.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tierloom.capacity.experiment import counters


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
    queries, streams = request["queries"], request["streams"]

    def stream(number: int) -> dict[int, str]:
        """All queries, from another one on in each stream; what each answered, as a digest."""
        cursor, first = connection.cursor(), number * len(queries) // streams
        order = [(first + step) % len(queries) for step in range(len(queries))]
        return {index: _digest(cursor.execute(queries[index]).fetchall()) for index in order}

    answers, took = counters.timed(lambda: counters.in_threads(stream, streams))
    connection.close()
    return {
        **took,
        "answers": [answers[-1][at] for at in range(len(queries))],
        "engine": f"DuckDB {duckdb.__version__}",
    }


def _digest(rows: list[Any]) -> str:
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]


if __name__ == "__main__":
    counters.answer(run)
