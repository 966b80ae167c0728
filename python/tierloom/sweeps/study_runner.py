"""Running a study: what is missing is computed in batches, every batch is kept as soon as it is there.

A batch is as large as :data:`BATCH_S` allows at the speed that points have shown, so that handing it out
costs little, and small enough that all workers end together.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom import outputs, progress_bar
from tierloom.arguments import or_none, reads, text, whole
from tierloom.sweeps import clusters, points
from tierloom.sweeps.keys import Addresses, resolved
from tierloom.sweeps.nouns import Nouns
from tierloom.sweeps.results import Sweep
from tierloom.sweeps.store import DONE, Store
from tierloom.sweeps.studies import Study
from tierloom.sweeps.worker import Batch, Computed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tierloom.sweeps.points import Point
    from tierloom.sweeps.rows import Row

STORE = "results.sqlite"
STUDY = "study.toml"

BATCH_S = 0.5
"""Time that a batch should take: handing one out takes some milliseconds (benches/sweep.py)."""

FIRST_BATCH = 8
"""Points of the first batches, when nobody knows yet how long one takes."""

SHARES = 3
"""A batch is at most this part of what a worker would still have to do, so that the last ones end together."""


@dataclass(frozen=True)
class Progress:
    """How far a sweep is, told after every batch; `host` and `pid` are the worker that computed it."""

    done: int
    total: int
    failed: int
    reused: int
    left_s: float
    host: str
    pid: int

    def tell(self, bar: Callable[[float, float | None, str], None]) -> None:
        """Moves a bar."""
        bar(self.done / self.total, self.left_s, f"{self.done:,} of {self.total:,} points")


@reads(workers=or_none(whole(0, 10**5)), scheduler=or_none(text))
def sweep(
    study: Study | str | Path,
    folder: str | Path | None = None,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Computes all points of a study that are not computed yet.

    Run again after a crash, a Ctrl-C or a change of the study, it computes what is missing. In a script
    with workers, call it below ``if __name__ == "__main__":``, for they are processes of their own.

    Args:
        study: A study, the name of one in the catalog, or the path of its file.
        folder: Where results are kept; ``NAME.sweep`` by default.
        workers: Local processes; as many as the study says by default, else one for each CPU. 0 computes in this
            process.
        scheduler: Use the workers of a Dask scheduler, such as ``"tcp://head:8786"``.
        retry_failed: Compute points that failed again; those whose worker was lost are tried again anyway.
        progress: Called after every batch. In a notebook a bar shows it by default.

    Raises:
        StudyError: There is no such study, or it makes no sense.
        RequestError: A file or catalog entry that it names is not there.
        ClusterError: The workers could not be had.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = sweep("cxl-share", folder, workers=0)
        ...     found.counts["done"] == found.total
        True
    """
    asked = study if isinstance(study, Study) else Study.load(study)
    place = Path(folder or f"{asked.name}.sweep")
    clusters.checked(asked.cluster)
    nouns = Nouns(asked)
    address = Addresses(asked, nouns)
    outputs.folder(place)
    with Store(place / STORE) as store, progress_bar.in_notebook("sweeping") as bar:
        moved = None if bar is None else lambda told: told.tell(bar)
        run = _Run(asked, nouns, address, progress or moved)
        outputs.write(place / STUDY, asked.text)
        started = time.perf_counter()
        run.all(store, workers, scheduler, retry=retry_failed)
        return Sweep.collect(asked, place, store, run.asked, run.computed, time.perf_counter() - started)


@dataclass
class _Run:
    study: Study
    nouns: Nouns
    address: Addresses
    progress: Callable[[Progress], None] | None
    asked: list[Point] = field(default_factory=list)
    computed: int = 0
    failed: int = 0
    reused: int = 0
    started: float = field(default_factory=time.perf_counter)
    point_s: float = 0.0
    """Seconds of computing a point takes, as seen so far."""

    def all(self, store: Store, workers: int | None, scheduler: str | None, *, retry: bool) -> None:
        """Computes every generation."""
        with clusters.pool(self.study.cluster, workers, scheduler) as pool:
            for generation in points.generations(self.study, lambda point: self._known(store, point)):
                listed = list(generation)
                self.asked += listed
                keys = [self.address(point) for point in listed]
                store.want(keys)
                missing = store.missing(retry=retry)
                todo = list({key: point for key, point in zip(keys, listed, strict=True) if key in missing}.items())
                self.reused += len(listed) - len(todo)
                if todo:
                    self._compute(todo, pool(len(todo)), store)

    def _known(self, store: Store, point: Point) -> Row | None:
        result = store.get(self.address(point))
        return result.row if result and result.state == DONE else None

    def _compute(self, todo: list[tuple[bytes, Point]], pool: clusters.Here | clusters.Workers, store: Store) -> None:
        batches = self._batches(todo, pool)
        for computed in pool.run(lambda: next(batches, None)):
            store.put(computed.results)
            self._count(computed, pool.width)

    def _batches(self, todo: list[tuple[bytes, Point]], pool: clusters.Here | clusters.Workers) -> Iterator[Batch]:
        fixed = resolved(self.nouns, {**self.study.verb.always, **self.study.parameters})
        at = 0
        while at < len(todo):
            size = self._size(len(todo) - at, pool.width)
            part = tuple(todo[at : at + size])
            yield Batch(self.study.verb.name, fixed, self._nouns_of(point for _, point in part), part)
            at += size

    def _size(self, left: int, width: int) -> int:
        wanted = FIRST_BATCH if not self.point_s else int(BATCH_S / self.point_s)
        return max(1, min(wanted, left // (SHARES * width)))

    def _nouns_of(self, listed: Iterable[Point]) -> dict[tuple[str, Any], object]:
        used = {(name, value) for point in listed for name, value in point.items() if name in self.nouns}
        return {at: self.nouns[at][0] for at in used}

    def _count(self, computed: Computed, width: int) -> None:
        results = computed.results
        self.computed += len(results)
        self.failed += sum(result.state != DONE for result in results)
        took = sum(result.seconds for result in results) / len(results)
        self.point_s = took if not self.point_s else 0.5 * (self.point_s + took)
        if self.progress:
            done, total = self.computed + self.reused, points.count(self.study)
            left_s = max(total - done, 0) * self.point_s / width
            self.progress(Progress(done, total, self.failed, self.reused, left_s, computed.host, computed.pid))
