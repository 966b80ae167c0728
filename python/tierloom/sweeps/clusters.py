"""Where points are computed: in this process, or by the workers of a Dask cluster.

A pool takes batches and gives back what became of them, in any order. :class:`Here` needs no Dask.
:class:`Workers` keeps two batches per worker under way, so that none waits for this process. When a
worker dies, Dask gives its batches to another one; a batch that several workers died of is taken apart, and its
points are tried one at a time with nothing else running: what a worker dies of then is that point.
"""

from __future__ import annotations

import importlib
import logging
import os
import time
import uuid
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tierloom.errors import ClusterError, MissingPackageError, StudyError
from tierloom.readers import Flaws
from tierloom.sweeps.keys import code_id
from tierloom.sweeps.store import LOST, Result
from tierloom.sweeps.worker import Computed, compute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tierloom.sweeps.worker import Batch

    NextBatch = Callable[[], Batch | None]
    """Hands over the next batch; none when all are handed over."""

AHEAD = 2
"""Batches under way per worker: one that it computes and one that it has already (Dask's own default is 1.1)."""

DEATHS = 1
"""How often a batch of a local cluster may lose its worker before it is taken apart."""

START = {"distributed.worker.multiprocessing-method": "forkserver"}
"""Local workers are forked off one process that has loaded Dask, not each loading it for itself."""

WAIT_S = 10.0
"""How long a scheduler may take to answer; workers, which may queue in a batch system, are waited for without end."""

LOOK_S = 2.0
"""How often the workers of a cluster are counted that may grow and shrink."""

KINDS = {
    "kubernetes": ("dask_kubernetes.operator", "KubeCluster", "dask-kubernetes"),
    "ssh": ("distributed", "SSHCluster", "asyncssh"),
    **{
        name.lower(): ("dask_jobqueue", f"{name}Cluster", "dask-jobqueue")
        for name in ("SLURM", "PBS", "SGE", "LSF", "OAR", "HTCondor", "Moab")
    },
}
"""Clusters by the name in a study: the class that makes it, and the package that has the class."""


class Here:
    """Computes in this process."""

    def run(self, next_batch: NextBatch) -> Iterator[Computed]:
        """Computes batch after batch."""
        while batch := next_batch():
            yield compute(batch)

    @property
    def width(self) -> int:
        """How many points are computed at a time."""
        return 1


class Workers:
    """Computes on the workers of a Dask client; `workers` is their number where it is known, or 0."""

    def __init__(self, client: Any, workers: int) -> None:  # noqa: ANN401 (distributed.Client)
        self._client = client
        self._asked = workers
        self._width, self._seen = 1, float("-inf")
        self._run = uuid.uuid4().hex[:8]
        self._sent = 0

    @property
    def width(self) -> int:
        """Threads of all workers that are there, or were a moment ago: asking the scheduler takes milliseconds."""
        now = time.monotonic()
        if self._asked == 0 and now - self._seen > LOOK_S:
            self._width, self._seen = max(int(sum(self._client.nthreads().values())), 1), now
        return self._asked or self._width

    def run(self, next_batch: NextBatch) -> Iterator[Computed]:
        """Computes batches, two a worker at a time, then one by one the points that workers died of."""
        suspects: list[Batch] = []
        yield from self._flow(next_batch, suspects)
        alone = [batch.of((point,)) for batch in suspects for point in batch.points]
        for batch in alone:
            fatal: list[Batch] = []
            yield from self._flow(iter([batch, None]).__next__, fatal)
            if fatal:
                yield _lost(batch)

    def _flow(self, next_batch: NextBatch, suspects: list[Batch]) -> Iterator[Computed]:
        under_way: dict[Any, Batch] = {}
        finished = _dask().as_completed(loop=self._client.loop)
        batch = next_batch()
        while batch or under_way:
            while batch and len(under_way) < AHEAD * self.width:
                future = self._send(batch)
                under_way[future] = batch
                finished.add(future)
                batch = next_batch()
            future = next(finished)
            computed = _answer(future, under_way.pop(future), suspects)
            if computed:
                yield computed

    def _send(self, batch: Batch) -> Any:  # noqa: ANN401 (a future)
        self._sent += 1
        return self._client.submit(compute, batch, key=f"tierloom-{self._run}-{self._sent}", pure=False)


def _answer(future: Any, batch: Batch, suspects: list[Batch]) -> Computed | None:  # noqa: ANN401
    from distributed import KilledWorker

    try:
        computed: Computed = future.result()
    except KilledWorker:
        suspects.append(batch)
        return None
    except Exception as problem:
        hint = f"install tierloom {code_id().partition('+')[0]} on every worker"
        message = f"a worker cannot compute: {type(problem).__name__}: {problem}\nhint: {hint}"
        raise ClusterError(message) from problem
    if computed.code != code_id():
        different = f"the worker on {computed.host} runs tierloom {computed.code}, and this is {code_id()}"
        message = f"{different}\nhint: install the same version on every worker"
        raise ClusterError(message)
    return computed


def _lost(batch: Batch) -> Computed:
    ((key, _),) = batch.points
    return Computed([Result(key, LOST, "the worker died of it, alone as well", 0.0)], "", 0, code_id())


@contextmanager
def pool(
    cluster: Mapping[str, Any], workers: int | None = None, scheduler: str | None = None
) -> Iterator[Callable[[int], Here | Workers]]:
    """Gives the pool when it is asked for so many points; what was started is stopped at the end.

    Args:
        cluster: The study's table: ``workers``, ``scheduler``, or ``kind`` and ``options`` of a cluster to make.
        workers: Processes; before the study's own. 0 computes in this process, without Dask.
        scheduler: Address of a scheduler that runs already; before the study's own.

    Raises:
        StudyError: The table makes no sense.
        MissingPackageError: Dask, or the package of that kind of cluster, is not installed.
        ClusterError: There is no scheduler at the address.
    """
    asked = checked(cluster)
    address = scheduler or asked.get("scheduler")
    wide = _wide(asked, workers)
    made: list[Here | Workers] = []
    with ExitStack() as stack:

        def get(points: int) -> Here | Workers:
            if not made and (address or wide > 0):
                made.append(Workers(*_client(stack, asked, min(wide, points), address)))
            return made[0] if made else Here()

        yield get


def _wide(asked: Mapping[str, Any], workers: int | None) -> int:
    if workers is None and "workers" not in asked and asked.get("kind") not in (None, "ssh"):
        message = f"cluster.workers: how many on {asked['kind']}?\nhint: write workers = 16, or give --workers 16"
        raise StudyError(message)
    found: int = asked.get("workers", len(os.sched_getaffinity(0))) if workers is None else workers
    return found


def checked(cluster: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table ``[cluster]`` of a study.

    Raises:
        StudyError: It makes no sense.
    """
    unknown = sorted(set(cluster) - {"kind", "workers", "scheduler", "options"})
    workers, kind, options = cluster.get("workers", 1), cluster.get("kind"), cluster.get("options", {})
    flaws = Flaws()
    for key in unknown:
        flaws.add(f"cluster.{key}: there is no such key", "use some of: kind, options, scheduler, workers")
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 0:
        flaws.add(f"cluster.workers: {workers!r} is no number of workers", "write 0 for none beside this process")
    if kind is not None and kind not in KINDS:
        flaws.add(f"cluster.kind: there is no {kind!r}", f"use one of: {', '.join(sorted(KINDS))}")
    if not isinstance(cluster.get("scheduler", ""), str):
        flaws.add("cluster.scheduler: it has to be an address", 'write scheduler = "tcp://head:8786"')
    if not isinstance(options, dict):
        flaws.add("cluster.options: it has to be a table", "write [cluster.options] and its keys below")
    elif options and kind is None:
        flaws.add("cluster.options: of what kind of cluster?", f"set kind to one of: {', '.join(sorted(KINDS))}")
    flaws.refuse(error=StudyError)
    return cluster


def _client(stack: ExitStack, asked: Mapping[str, Any], workers: int, address: str | None) -> tuple[Any, int]:
    distributed = _dask()
    if address is None:
        stack.enter_context(_dask("dask").config.set(START))
        address = stack.enter_context(_cluster(distributed, asked, workers))
    else:
        workers = 0
    try:
        client = distributed.Client(address, timeout=WAIT_S, set_as_default=False)
    except (OSError, ValueError) as problem:
        message = f"no scheduler answers at {address}: {problem}\nhint: start one there with `dask scheduler`"
        raise ClusterError(message) from problem
    return stack.enter_context(client), 0 if asked.get("kind") == "ssh" else workers


def _dask(module: str = "distributed") -> Any:  # noqa: ANN401 (a module)
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        message = "sweeping with workers needs Dask\nhint: pip install '.[sweep]', or give --workers 0"
        raise MissingPackageError(message) from problem


def _cluster(distributed: Any, asked: Mapping[str, Any], workers: int) -> Any:  # noqa: ANN401
    kind = asked.get("kind")
    if kind is None:
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,  # a worker that dies is our business, and told in the results
            scheduler_kwargs={"allowed_failures": DEATHS},
        )
    made = _class(kind)(**asked.get("options", {}))
    if kind != "ssh":  # there the hosts are the workers
        made.scale(workers)
    return made


def _class(kind: str) -> Any:  # noqa: ANN401
    module, name, package = KINDS[kind]
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as problem:
        message = f"cluster.kind: `{kind}` needs {package}\nhint: pip install {package}"
        raise MissingPackageError(message) from problem
