"""What experiments share: a fresh process for every run, control groups, a seeded order.

An order that mixes memory sizes and repeats keeps a machine that slows down over time from looking like a
memory effect.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tierloom.capacity.experiment import limits
from tierloom.capacity.runs import FIGURES, Run
from tierloom.errors import MeasurementError
from tierloom.units import MIB, bytes_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Progress = Callable[[int, int, str], None]
"""Called before each run with how many are done, how many there are, and words."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """What every study is told.

    Attributes:
        folder: Where data and spill files are; its disk is the storage.
        memories: Memory limits, bytes.
        repeats: Runs of each.
        storage_bytes_s: Limit of storage bandwidth; none by default.
        seed: Of the order.
    """

    folder: Path
    memories: tuple[int, ...]
    repeats: int = 3
    storage_bytes_s: int | None = None
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The runs, whether control groups held them, and which engine it was."""

    runs: list[Run]
    grouped: bool
    engine: str


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One run: the memory that the job is given, that of its control group, streams, and files of groups to join."""

    memory_bytes: int
    group_bytes: int
    streams: int = 1
    groups: tuple[str, ...] = ()


def silent(done: int, of: int, words: str) -> None:
    """Tells nobody."""


def run_all(
    study: Study,
    one: Callable[[Setting], dict[str, Any]],
    group_bytes: Callable[[int], int],
    progress: Progress,
    streams: Sequence[int] = (1,),
) -> Measured:
    """Runs a study in a seeded order, each run by `one` under a control group of the memory that its limit takes.

    Raises:
        MeasurementError: Two runs gave different answers.
    """
    every = itertools.product(range(study.repeats), study.memories, streams)
    plan = [Setting(memory_bytes=size, group_bytes=group_bytes(size), streams=many) for _, size, many in every]
    random.Random(study.seed).shuffle(plan)  # noqa: S311 (an order, no secret)
    device = limits.device_of(study.folder)
    runs, answers, grouped, engine = [], set(), True, ""
    for number, setting in enumerate(plan):
        progress(number, len(plan), f"{setting.memory_bytes / MIB:.0f} MiB, streams: {setting.streams}")
        wanted = limits.Limits(memory_bytes=setting.group_bytes, storage_bytes_s=study.storage_bytes_s, device=device)
        with limits.group(wanted) as groups:
            found = one(replace(setting, groups=tuple(map(str, groups))))
        grouped, engine = grouped and bool(groups), found["engine"]
        answers.add(tuple(found["answers"]))
        figures = {name: found[name] for name in FIGURES}
        runs.append(Run(memory_bytes=setting.memory_bytes, streams=setting.streams, **figures))
    if len(answers) > 1:
        message = "two runs gave different answers\nhint: this is a fault of the engine or the machine; trust none"
        raise MeasurementError(message)
    return Measured(runs=sorted(runs, key=lambda run: (run.streams, run.memory_bytes)), grouped=grouped, engine=engine)


def ask(worker: str, request: dict[str, Any], setting: Setting) -> dict[str, Any]:
    """Hands a request to a fresh process of one of this room's workers.

    Raises:
        MeasurementError: The run failed.
    """
    command = [sys.executable, "-m", f"tierloom.capacity.experiment.{worker}"]
    asked = {**request, "memory_bytes": setting.memory_bytes, "groups": setting.groups}
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    answer: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    problem = answer.get("problem") or (None if answer else f"ended with code {done.returncode}")
    if problem:
        first = problem.split("\n")[0]
        message = (
            f"a run with {bytes_text(setting.memory_bytes)} failed: {first}\nhint: give more memory or fewer streams"
        )
        raise MeasurementError(message)
    return answer
