"""What a worker does: the points of one batch, one after the other.

Nothing here knows Dask. A batch holds all that it needs, so a worker needs no files, only Tierloom in the
same version; it answers with finished rows of the store.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierloom.errors import TierloomError
from tierloom.sweeps.keys import code_id
from tierloom.sweeps.store import LOST, REFUSED, Result
from tierloom.sweeps.verbs import VERBS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.sweeps.points import Point


@dataclass(frozen=True)
class Batch:
    """Points of one study.

    Attributes:
        verb: Name of the verb.
        parameters: What is the same in all points, nouns as objects.
        nouns: By parameter and name, the objects that points name.
        points: By key, what varies.
    """

    verb: str
    parameters: Mapping[str, Any]
    nouns: Mapping[tuple[str, Any], object]
    points: tuple[tuple[bytes, Point], ...]

    def of(self, points: tuple[tuple[bytes, Point], ...]) -> Batch:
        """The same with other points."""
        return Batch(self.verb, self.parameters, self.nouns, points)


@dataclass(frozen=True)
class Computed:
    """Results of a batch, and who computed them."""

    results: list[Result]
    host: str
    pid: int
    code: str


def compute(batch: Batch) -> Computed:
    """Computes a batch; a point that fails is a result like any other."""
    results = [_one(batch, key, point) for key, point in batch.points]
    return Computed(results, socket.gethostname(), os.getpid(), code_id())


def _one(batch: Batch, key: bytes, point: Point) -> Result:
    start = time.perf_counter()
    varied = {name: batch.nouns.get((name, value), value) for name, value in point.items()}
    try:
        row = VERBS[batch.verb]({**batch.parameters, **varied})
    except TierloomError as problem:
        return Result(key, REFUSED, str(problem), time.perf_counter() - start)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # a panic of the core derives from it; the study goes on
        return Result(key, LOST, f"{type(problem).__name__}: {problem}", time.perf_counter() - start)
    return Result.of(key, time.perf_counter() - start, row)
