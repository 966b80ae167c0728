"""How ours is computed: functions that combine, and tasks that they ask for.

A task is one run of an engine, pure and slow: a simulation, a comparison of policies. A computation is
quick: it asks for the runs that it needs and combines them. Where one is missing, :class:`Runs` raises
:class:`Pending`; the caller has it run, in another process, and asks the computation again. So claims share
runs without knowing of each other, and every run is made once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

MODULES = ("capacity", "expansion", "hpc", "machines", "migration", "offload", "streams", "zero_offload")
"""Where computations and tasks are."""

Computation = Callable[..., "float | bool"]

_computations: dict[str, Computation] = {}
_tasks: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True)
class Job:
    """A task with its parameters; the same job twice is one run."""

    task: str
    given: tuple[tuple[str, Any], ...]
    weight: float
    """CPU seconds, roughly: the longest start first."""


class Pending(Exception):  # noqa: N818 (it is no error)
    """Runs that a computation needs first."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        super().__init__(f"{len(jobs)} runs are needed first")
        self.jobs = jobs


class Runs:
    """Finished runs by job.

    Args:
        eager: Makes missing runs on the spot.
    """

    def __init__(self, *, eager: bool = False) -> None:
        self.done: dict[Job, Any] = {}
        self.eager = eager

    def __call__(self, *jobs: Job) -> list[Any]:
        """Results in the order of the jobs.

        Raises:
            Pending: Some have not run.
        """
        missing = [job for job in dict.fromkeys(jobs) if job not in self.done]
        if missing and not self.eager:
            raise Pending(missing)
        for job in missing:
            self.done[job] = perform(job)
        return [self.done[job] for job in jobs]


def task(weight: float) -> Callable[[Callable[..., Any]], Callable[..., Job]]:
    """Makes a function a task: called, it is a job that has yet to run."""

    def register(function: Callable[..., Any]) -> Callable[..., Job]:
        name = f"{_room(function)}.{function.__name__}"
        _tasks[name] = function
        return partial(_job, name, weight)

    return register


def _job(name: str, weight: float, /, **given: Any) -> Job:  # noqa: ANN401 (whatever the task takes)
    return Job(name, tuple(sorted(given.items())), weight)


def computes(function: Computation) -> Computation:
    """Registers a computation under its module's and its own name."""
    _computations[f"{_room(function)}.{function.__name__}"] = function
    return function


def _room(function: Callable[..., Any]) -> str:
    return function.__module__.rpartition(".")[2]


def perform(job: Job) -> Any:  # noqa: ANN401 (whatever the task returns)
    """Runs a job here."""
    _load()
    return _tasks[job.task](**dict(job.given))


def computation(name: str) -> Computation:
    """A computation by the name that the ledger calls it.

    Raises:
        KeyError: There is none.
    """
    _load()
    return _computations[name]


def compute(name: str, given: Mapping[str, Any], runs: Runs) -> float | bool:
    """Ours, from finished runs.

    Raises:
        Pending: Runs are needed first.
    """
    return computation(name)(runs, **given)


def _load() -> None:
    for module in MODULES:
        importlib.import_module(f"{__package__}.{module}")
