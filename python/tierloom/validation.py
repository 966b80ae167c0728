"""Predicted times against measured ones, on this machine, of programs that the user names.

A program is profiled once. It runs without the profiler as often as asked, before and after, and with other numbers of
threads, and each time is held against the prediction that the one profile gives for it: anchored to the profiled run,
and by the model alone. Beside that stands how well one of its runs tells what the others take, which no prediction from
one run can be expected to beat.
"""

from __future__ import annotations

import itertools
import statistics
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tierloom import arguments, hosts, profiler
from tierloom.errors import MachineError, PlacementError, ProgramError, RecordingError, RequestError
from tierloom.nouns import Machine, Profile
from tierloom.policy_search import plan
from tierloom.program import THREADS_VARIABLE
from tierloom.timed_runs import beside, ends_alike, telling, timed
from tierloom.what_if import Change, changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from tierloom.schema import ValidationDoc, ValidationFailureDoc, ValidationRowDoc
    from tierloom.timed_runs import Timed

LOCAL = "local"
"""First touch on the nearest memory: what the kernel does when nobody asks for anything."""

DISTURBED = 0.05
"""Share of the processors that others may have before a measured time tells of them, too: as much as the error that one
asks of a prediction."""


@dataclass(frozen=True)
class Condition:
    """What a program runs under: the threads that it is told, and what neighbours read beside it, GB/s."""

    told: int | None
    neighbours_gb_s: float


@dataclass(frozen=True)
class Validation:
    """What was measured beside what was predicted; ``data`` is the document of ``--json``."""

    data: ValidationDoc


@arguments.reads(
    threads=arguments.or_none(arguments.each(arguments.THREADS)), neighbours=arguments.each(arguments.real())
)
def validate(
    commands: Sequence[Sequence[str]],
    *,
    machine: Machine | str | Path | None = None,
    threads: Sequence[int] | None = None,
    neighbours: Sequence[float] = (),
    runs: int = 3,
    variable: str = THREADS_VARIABLE,
    progress: Callable[[float, float, str], None] | None = None,
) -> Validation:
    """Profiles programs, runs them again, and compares predicted with measured times.

    Args:
        commands: Programs with their arguments.
        machine: This machine, as :func:`measure` found it; by default the last that ``machine measure`` kept.
        threads: Numbers of threads to run with, told by `variable`; the first is profiled. By default the
            environment stays as it is.
        neighbours: Traffic beside the program to run it under as well, GB/s: threads on other cores read near memory
            at about that rate.
        runs: Runs without the profiler for each number of threads; the median counts. With the number that is
            profiled, half of them come before the profiled run: a machine whose clock drifts shows it.
        variable: The environment variable that tells the program its threads.
        progress: Called with the share that is done, the seconds left, and what is being done.

    Where there are several, one that cannot be started, recorded or predicted, or that does not always end alike, is
    left out and told (``failures``).

    Returns:
        ``.data`` has ``rows``, one a program, number of threads and traffic of neighbours: ``measured_s`` (one value a
        run) beside ``predicted_s`` with its range ``low_s`` to ``high_s``, all in seconds, and ``error``, a share of
        the measured median; ``neighbours_gb_s`` is what neighbours really read, for which is predicted; ``repeat`` is
        how far one run is from the median of the others (None of a single run); ``others`` is the largest share of
        the processors that other programs had during one of the runs; and a ``summary`` with the shares of rows that
        are within 5 % and 10 %.

    Raises:
        MachineError: This machine was never measured, or a file does not hold one.
        ProgramError: The only program cannot be started, or does not always end alike.
        RecordingError: The only program ran, but nothing could be recorded.
        RequestError: The only program cannot be predicted: it had more threads than the machine has cores. Or no core
            is left for neighbours, or they reach less than was asked.
        PlacementError: The only program cannot be predicted: it does not fit on the machine.

    Example:
        >>> import sys
        >>> program = [sys.executable, "-c", "sum(i * i for i in range(3_000_000))"]
        >>> answer = validate([program], machine="dram 64GiB 100ns 100GB/s", runs=1)
        >>> [(row["threads"], len(row["measured_s"])) for row in answer.data["rows"]]
        [(1, 1)]
    """
    rows: list[ValidationRowDoc] = []
    failures: list[ValidationFailureDoc] = []
    counts = list(threads) if threads else [None]
    conditions = [Condition(*each) for each in itertools.product(counts, (0.0, *neighbours))]
    tell = _steps(len(commands) * (1 + len(conditions) * runs), progress)
    here = None if machine is None else Machine.of(machine)
    for command in commands:
        try:
            with telling(variable, counts[0]):
                before = _before(command, conditions[0], runs // 2, tell)
                tell(f"profiling {command[0]}")
                recorded = profiler.record(command)
            here = here or this_machine(recorded.profile)
            for condition in conditions:
                count = _threads(recorded.profile, condition.told, counts[0])
                had = before if condition == conditions[0] else []
                rest = partial(_runs, command, condition, runs - len(had), tell)
                with telling(variable, condition.told):
                    gb_s, after = beside(condition.neighbours_gb_s, count, rest)
                ends_alike(command, [*had, *after], recorded.exit_code)
                met = Condition(condition.told, gb_s)
                rows.append(row(command, recorded.profile, here, met, count, [*had, *after]))
        except (ProgramError, RecordingError, RequestError, PlacementError) as error:
            if len(commands) == 1:
                raise
            failures.append({"command": list(command), "why": str(error)})
    name = "" if here is None else here.name
    return Validation({"machine": name, "runs": runs, "rows": rows, "failures": failures, "summary": summary(rows)})


def _runs(command: Sequence[str], condition: Condition, runs: int, tell: Callable[[str], None]) -> list[Timed]:
    measured = []
    for _ in range(runs):
        threads = f" with {condition.told} threads" if condition.told else ""
        beside_it = f" beside {condition.neighbours_gb_s:g} GB/s" if condition.neighbours_gb_s else ""
        tell(f"running {command[0]}{threads}{beside_it}")
        measured.append(timed(command))
    return measured


def _threads(profile: Profile, told: int | None, told_first: int | None) -> int:
    """Threads to predict for: as told, if the program goes by it, so that it had no more when it was profiled."""
    had = profile.data["program"]["threads"]
    goes_by_it = told_first is not None and had <= told_first
    return told if told is not None and goes_by_it else had


def _before(command: Sequence[str], condition: Condition, runs: int, tell: Callable[[str], None]) -> list[Timed]:
    """Runs before the one that is profiled; none of what cannot be started, which the profiler says better."""
    try:
        return _runs(command, condition, runs, tell)
    except OSError:
        return []


def _steps(steps: int, progress: Callable[[float, float, str], None] | None) -> Callable[[str], None]:
    """Tells of each step before it is done, and how long all others will take if they are like those before."""
    done, began = 0, time.monotonic()

    def tell(what: str) -> None:
        nonlocal done
        if progress:
            progress(done / steps, (time.monotonic() - began) / done * (steps - done) if done else 0.0, what)
        done += 1

    return tell


def this_machine(profile: Profile) -> Machine:
    """The machine that programs run on here.

    Raises:
        MachineError: It was never measured.
    """
    known = hosts.kept(profile.data["program"].get("host"))
    if known is None:
        message = (
            "this machine was never measured, so nothing can be predicted for it\n"
            "hint: run `tierloom machine measure` while nothing else runs, then this again"
        )
        raise MachineError(message)
    return known


def row(
    command: Sequence[str],
    profile: Profile,
    machine: Machine,
    condition: Condition,
    threads: int,
    measured: list[Timed],
) -> ValidationRowDoc:
    """One program under one condition, predicted with so many threads."""
    loaded = _loaded(machine, condition.neighbours_gb_s)
    answer = plan(profile, loaded, threads=threads, policies=[LOCAL], ran_on=machine).policy(LOCAL)["prediction"]
    alone = plan(unanchored(profile), loaded, threads=threads, policies=[LOCAL]).policy(LOCAL)["prediction"]
    measured_s = [run.seconds for run in measured]
    middle_s = statistics.median(measured_s)
    return {
        "command": list(command),
        "told": condition.told,
        "threads": threads,
        "profiled_threads": profile.data["program"]["threads"],
        "neighbours_gb_s": condition.neighbours_gb_s,
        "measured_s": measured_s,
        "repeat": repeat(measured_s),
        "others": max(run.others for run in measured),
        "predicted_s": answer["time_s"],
        "low_s": answer["low_s"],
        "high_s": answer["high_s"],
        "error": answer["time_s"] / middle_s - 1,
        "inside": answer["low_s"] <= middle_s <= answer["high_s"],
        "modelled_s": alone["time_s"],
        "residual": alone["time_s"] / middle_s - 1,
    }


def _loaded(machine: Machine, gb_s: float) -> Machine:
    """The machine as it is beside neighbours on its nearest memory."""
    return changed(machine, [Change(machine.nearest(), "neighbours", 1.0, gb_s)]) if gb_s else machine


def repeat(measured_s: Sequence[float]) -> float | None:
    """How far one run is from the median of the others, as a share of it, in the median; None of a single run."""
    if len(measured_s) == 1:
        return None
    others_s = [statistics.median([*measured_s[:at], *measured_s[at + 1 :]]) for at in range(len(measured_s))]
    return statistics.median(abs(run / other - 1) for run, other in zip(measured_s, others_s, strict=True))


def unanchored(profile: Profile) -> Profile:
    """The same profile of a host that nobody knows."""
    program: Any = {key: value for key, value in profile.data["program"].items() if key != "host"}
    return Profile.from_data({**profile.data, "program": program})


def summary(rows: Sequence[ValidationRowDoc]) -> dict[str, float | None]:
    """Medians, and shares of the rows that are as good as one asks of a prediction; None of nothing."""
    errors = [abs(each["error"]) for each in rows]
    residuals = [abs(each["residual"]) for each in rows]
    repeats = [each["repeat"] for each in rows if each["repeat"] is not None]
    return {
        "rows": len(rows),
        "median_error": _median(errors),
        "median_repeat": _median(repeats),
        "median_residual": _median(residuals),
        "within_5": _share(each <= 0.05 for each in errors),
        "within_10": _share(each <= 0.10 for each in errors),
        "repeat_within_5": _share(each <= 0.05 for each in repeats),
        "repeat_within_10": _share(each <= 0.10 for each in repeats),
        "residual_within_15": _share(each <= 0.15 for each in residuals),
        "inside": _share(each["inside"] for each in rows),
    }


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _share(good: Iterable[bool]) -> float | None:
    verdicts = list(good)
    return sum(verdicts) / len(verdicts) if verdicts else None
