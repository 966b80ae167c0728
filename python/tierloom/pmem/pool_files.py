"""The file of a pool that nobody has open: looked at, checked, repaired.

Looking and checking change nothing, so the file may be another user's or lie on a file system that cannot
be written. What libpmemobj keeps it is asked about in a process of its own, since a broken heap may end the
process that shows it one; and it opens no file that it may not write, so it is shown a copy of such.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tierloom._core as _core
from tierloom.errors import PoolError
from tierloom.pmem.pools import ArrayRow, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from tierloom.pmem.documents import PoolDoc


def lacks_pmdk() -> str | None:
    """Why libpmemobj cannot be used on this machine; none where it can."""
    return _core.lacks_pmdk()


def look(path: str | Path) -> PoolDoc:
    """The pool and its arrays as the document that `tierloom pmem show` prints as JSON.

    They are as opening would leave them: what a crash cut off counts as undone, though the file keeps it.

    Raises:
        PoolError: There is no pool, it is damaged, or a process has it open.
    """
    path = Path(path)
    backend, durability, used, rows, unfinished = _asked(_core.look_at_pool, path)
    arrays = [ArrayRow(*row) for row in rows]
    usage = Usage(*used)
    return {
        "path": str(path),
        "backend": backend,
        "durability": durability,
        "pool_bytes": usage.pool_bytes,
        "data_bytes": usage.data_bytes,
        "used_bytes": usage.used_bytes,
        "longest_free_bytes": usage.longest_free_bytes,
        "log_bytes": usage.log_bytes,
        "unfinished_ranges": unfinished,
        "arrays": [
            {
                "name": row.name,
                "elements": row.kind,
                "offset_bytes": row.offset,
                "size_bytes": row.size,
                "version": row.version,
                "checksums": row.checksums,
            }
            for row in arrays
        ],
    }


def check(path: str | Path) -> list[dict[str, Any]]:
    """What is wrong with the file of a pool, unchanged: ``{"damage": bool, "repairable": bool, "what": str}`` each.

    Arrays that carry checksums, and with them all checkpoints, are read whole.

    Raises:
        PoolError: The file cannot be read, or a process has it open.
    """
    try:
        return _problems(_asked(_core.check_pool, Path(path)))
    except _EndedError as end:
        return [{"damage": True, "repairable": False, "what": end.words}]


def repair(path: str | Path) -> list[dict[str, Any]]:
    """Makes a damaged pool one that opens, and says what was wrong with it.

    What was under way is undone, or given up where the log is broken; broken entries are dropped;
    arrays that are not broken stay, and so does what does not match its checksums: only its owner can tell
    whether it is still of use. What libpmemobj finds wrong with its own part, its tools repair.

    Raises:
        PoolError: Nothing is left to start from: both headers are broken.
    """
    return _problems(_asked(_core.repair_pool, Path(path)))


def _problems(told: list[tuple[bool, bool, str]]) -> list[dict[str, Any]]:
    return [{"damage": damage, "repairable": repairable, "what": words} for damage, repairable, words in told]


def _asked(what: Callable[[Path], Any], path: Path) -> Any:  # noqa: ANN401 (as the core answers)
    if _core.pool_backend(path) != "pmdk":
        return what(path)
    if what is _core.repair_pool or path.is_char_device() or os.access(path, os.W_OK):
        return _in_child(what.__name__, path, path)
    with tempfile.TemporaryDirectory(prefix="tierloom-") as folder:
        copy = Path(folder) / path.name
        try:
            shutil.copyfile(path, copy)
        except OSError as problem:
            message = f"{path}: it may not be written, and cannot be copied: {problem.strerror}"
            raise PoolError(f"{message}\nhint: libpmemobj looks at files that it may write") from problem  # noqa: EM102
        return _in_child(what.__name__, path, copy)


CHILD = """
import json, sys
import tierloom._core as core
from tierloom.errors import TierloomError
try:
    print(json.dumps({"told": getattr(core, sys.argv[1])(sys.argv[2])}))
except TierloomError as error:
    print(json.dumps({"error": str(error)}))
"""


class _EndedError(PoolError):
    """The process that showed libpmemobj the pool did not survive that."""

    def __init__(self, path: Path, words: str) -> None:
        super().__init__(f"{path}: {words}\nhint: `pmempool info` of pmdk-tools may show more")
        self.words = words


def _in_child(what: str, path: Path, shown: Path) -> Any:  # noqa: ANN401 (as the core answers)
    command = [sys.executable, "-c", CHILD, what, str(shown)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        ended = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise _EndedError(path, f"libpmemobj does not survive reading it ({ended}); restore the file from a copy")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise PoolError(answer["error"].replace(str(shown), str(path)))
    return answer["told"]
