"""Computes ours for many claims, in as many processes as asked for, and says how each compares."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Literal

from tierloom.published_claims.computation import Job, Pending, Runs, compute, perform
from tierloom.published_claims.ledger import Claim, Value

Verdict = Literal["in band", "missed", "not modelled"]
Progress = Callable[[float, str], None]

ROUNDING = 1e-9
"""Relative slack of band ends: they are sums and products of decimals."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """A claim, ours, and how they compare."""

    claim: Claim
    ours: Value

    @property
    def verdict(self) -> Verdict:
        """In the band, missed, or of no model of ours."""
        if self.claim.withdrawn or self.claim.published is None:
            return "missed"
        if self.claim.how is None or self.ours is None:
            return "not modelled"
        if self.claim.accepted is None:
            return "in band" if self.ours == self.claim.published else "missed"
        low, high = self.claim.accepted
        slack = ROUNDING * abs(self.ours)
        above = low is None or self.ours >= low - slack
        return "in band" if above and (high is None or self.ours <= high + slack) else "missed"


def silent(_share: float, _words: str) -> None:
    """Progress that nobody watches."""


def workers_here() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def reproduce(claims: Sequence[Claim], *, workers: int | None = None, progress: Progress = silent) -> list[Result]:
    """Computes ours for each claim.

    Args:
        claims: What to compute.
        workers: Processes; one for each processor by default, and none besides this one for 1.
        progress: Told the finished share of the known work, and what it is.
    """
    many = workers or workers_here()
    asked = {claim.id: claim for claim in claims if claim.how is not None}
    values = _here(asked) if many == 1 else _apart(asked, many, progress)
    return [Result(claim=claim, ours=values.get(claim.id)) for claim in claims]


def _here(asked: Mapping[str, Claim]) -> dict[str, Value]:
    runs = Runs(eager=True)
    return {name: _value(claim, runs) for name, claim in asked.items()}


def _value(claim: Claim, runs: Runs) -> float | bool:
    found = compute(str(claim.how), claim.given, runs)
    return found - 1.0 if claim.less_one else found


def _apart(asked: Mapping[str, Claim], workers: int, progress: Progress) -> dict[str, Value]:
    # A fresh interpreter for each worker: a fork would copy the threads of progress bars and of NumPy.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return _Work(asked, pool, progress).settle()


class _Work:
    """Claims that wait for runs, and runs that are under way."""

    def __init__(self, asked: Mapping[str, Claim], pool: Executor, progress: Progress) -> None:
        self.runs = Runs()
        self.values: dict[str, Value] = {}
        self.waiting: dict[str, Claim] = dict(asked)
        self.pool = pool
        self.progress = progress
        self.futures: dict[Future[Any], Job] = {}
        self.known: set[Job] = set()

    def settle(self) -> dict[str, Value]:
        """Runs until every claim has its value."""
        self._advance()
        while self.futures:
            finished, _ = wait(self.futures, return_when=FIRST_COMPLETED)
            for future in finished:
                self.runs.done[self.futures.pop(future)] = future.result()
            self._advance()
        return self.values

    def _advance(self) -> None:
        """Asks every waiting claim again, and starts the runs that are new, the longest first."""
        wanted: list[Job] = []
        for name, claim in list(self.waiting.items()):
            try:
                self.values[name] = _value(claim, self.runs)
                del self.waiting[name]
            except Pending as needs:
                wanted += needs.jobs
        fresh = [job for job in dict.fromkeys(wanted) if job not in self.known]
        for job in sorted(fresh, key=lambda job: -job.weight):
            self.known.add(job)
            self.futures[self.pool.submit(perform, job)] = job
        self._tell()

    def _tell(self) -> None:
        total = math.fsum(job.weight for job in self.known)
        done = math.fsum(job.weight for job in self.runs.done)
        words = f"{len(self.runs.done)} of {len(self.known)} runs, {len(self.values)} claims"
        self.progress(done / total if total else 1.0, words)
