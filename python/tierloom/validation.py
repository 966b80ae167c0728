"""Predicted times against measured ones, on this machine, of programs that the user names.

A program is profiled once. It runs without the profiler as often as asked, before and after, and with other numbers of
threads, and each time is held against the prediction that the one profile gives for it: anchored to the profiled run,
and by the model alone. Beside that stands how well one of its runs tells what the others take, which no prediction from
one run can be expected to beat.
"""

from __future__ import annotations

import os
import resource
import select
import statistics
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom import arguments, hosts, profiler
from tierloom.errors import MachineError, PlacementError, ProgramError, RecordingError, RequestError
from tierloom.nouns import Machine, Profile
from tierloom.policy_search import plan
from tierloom.program import THREADS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tierloom.schema import ValidationDoc, ValidationFailureDoc, ValidationRowDoc

LOCAL = "local"
"""First touch on the nearest memory: what the kernel does when nobody asks for anything."""


DISTURBED = 0.05
"""Share of the processors that others may have before a measured time tells of them, too: as much as the error that one
asks of a prediction."""

PIPE_BYTES = 1 << 16
"""What a pipe holds by default (pipe(7))."""


@dataclass(frozen=True)
class Timed:
    """A run: how long it took, the share of this machine's processors that others had meanwhile, and how it ended."""

    seconds: float
    others: float
    exit_code: int


@dataclass(frozen=True)
class Validation:
    """What was measured beside what was predicted; ``data`` is the document of ``--json``."""

    data: ValidationDoc


@arguments.reads(threads=arguments.or_none(arguments.each(arguments.THREADS)))
def validate(
    commands: Sequence[Sequence[str]],
    *,
    machine: Machine | str | Path | None = None,
    threads: Sequence[int] | None = None,
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
        runs: Runs without the profiler for each number of threads; the median counts. With the number that is
            profiled, half of them come before the profiled run: a machine whose clock drifts shows it.
        variable: The environment variable that tells the program its threads.
        progress: Called with the share that is done, the seconds left, and what is being done.

    Where there are several, one that cannot be started, recorded or predicted, or that does not always end alike, is
    left out and told (``failures``).

    Returns:
        ``.data`` has ``rows``, one a program and number of threads: ``measured_s`` (one value a run) beside
        ``predicted_s`` with its range ``low_s`` to ``high_s``, all in seconds, and ``error``, a share of the measured
        median; ``repeat`` is how far one run is from the median of the others (None of a single run); ``others`` is
        the largest share of the processors that other programs had during one of the runs; and a ``summary`` with the
        shares of rows that are within 5 % and 10 %.

    Raises:
        MachineError: This machine was never measured, or a file does not hold one.
        ProgramError: The only program cannot be started, or does not always end alike.
        RecordingError: The only program ran, but nothing could be recorded.
        RequestError: The only program cannot be predicted: it had more threads than the machine has cores.
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
    tell = _steps(len(commands) * (1 + len(counts) * runs), progress)
    here = None if machine is None else Machine.of(machine)
    for command in commands:
        try:
            measured: dict[int | None, list[Timed]] = {count: [] for count in counts}
            with telling(variable, counts[0]):
                measured[counts[0]] += _before(command, runs // 2, tell)
                tell(f"profiling {command[0]}")
                recorded = profiler.record(command)
            here = here or this_machine(recorded.profile)
            for count in counts:
                while len(measured[count]) < runs:
                    tell(f"running {command[0]}" + (f" with {count} threads" if count else ""))
                    with telling(variable, count):
                        measured[count].append(timed(command))
                ends_alike(command, measured[count], recorded.exit_code)
                rows.append(row(command, recorded.profile, here, count, counts[0], measured[count]))
        except (ProgramError, RecordingError, RequestError, PlacementError) as error:
            if len(commands) == 1:
                raise
            failures.append({"command": list(command), "why": str(error)})
    name = "" if here is None else here.name
    return Validation({"machine": name, "runs": runs, "rows": rows, "failures": failures, "summary": summary(rows)})


def _before(command: Sequence[str], runs: int, tell: Callable[[str], None]) -> list[Timed]:
    """Runs before the one that is profiled; none of what cannot be started, which the profiler says better."""
    measured = []
    for _ in range(runs):
        tell(f"running {command[0]}")
        try:
            measured.append(timed(command))
        except OSError:
            break
    return measured


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


@contextmanager
def telling(variable: str, threads: int | None) -> Iterator[None]:
    """The environment in which a program has so many threads."""
    before = os.environ.get(variable)
    if threads is not None:
        os.environ[variable] = str(threads)
    try:
        yield
    finally:
        if threads is not None and before is None:
            del os.environ[variable]
        elif threads is not None and before is not None:
            os.environ[variable] = before


def timed(command: Sequence[str]) -> Timed:
    """A run; its output is read, and kept nowhere.

    Some programs do less work where they see that nobody reads: GNU grep ends at its first match.

    Raises:
        OSError: It cannot be started.
    """
    began, busy_s, own_s = time.perf_counter(), machine_busy_s(), children_busy_s()
    with reader() as writing:
        ended = subprocess.run(command, stdout=writing, stderr=writing, check=False).returncode
    took_s = time.perf_counter() - began
    others_s = machine_busy_s() - busy_s - (children_busy_s() - own_s)
    others = max(0.0, others_s - TICKS_S) / (took_s * (os.cpu_count() or 1))
    return Timed(took_s, others, ended if ended >= 0 else 128 - ended)


def ends_alike(command: Sequence[str], runs: Sequence[Timed], exit_code: int) -> None:
    """Makes sure that runs end as the profiled one did.

    Raises:
        ProgramError: One of them does not.
    """
    for run in runs:
        if run.exit_code != exit_code:
            message = (
                f"{command[0]} ended with {run.exit_code}, and with {exit_code} under the profiler\n"
                "hint: give a program that can run several times in a row"
            )
            raise ProgramError(message, 1)


@contextmanager
def reader() -> Iterator[int]:
    """A pipe to write to, which is read meanwhile; what a program leaves behind may keep it open for ever."""
    reading, writing = os.pipe()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            if select.select([reading], [], [], LOOK_S)[0] and not os.read(reading, PIPE_BYTES):
                return

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield writing
    finally:
        over.set()
        os.close(writing)
        thread.join()
        os.close(reading)


LOOK_S = 0.1
"""How often the reader of a pipe that nobody writes to looks whether it is needed."""
TICKS_S = (os.cpu_count() or 1) / os.sysconf("SC_CLK_TCK")
"""How far two looks at `/proc/stat` may be off, in CPU seconds: it counts in ticks, by processor."""


def machine_busy_s(root: Path = Path("/")) -> float:
    """CPU seconds that all processors have worked since the start, with what their host took from them."""
    words = (root / "proc/stat").read_text(encoding="ascii").split(maxsplit=9)[1:9]
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = map(int, words)
    return (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")


def children_busy_s() -> float:
    """CPU seconds of the programs that this process has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(
    command: Sequence[str],
    profile: Profile,
    machine: Machine,
    told: int | None,
    told_first: int | None,
    measured: list[Timed],
) -> ValidationRowDoc:
    """One program, told one number of threads; `told_first` is what it was told when it was profiled."""
    had = profile.data["program"]["threads"]
    goes_by_it = told_first is not None and had <= told_first
    count = told if told is not None and goes_by_it else had
    answer = plan(profile, machine, threads=count, policies=[LOCAL], ran_on=machine).policy(LOCAL)["prediction"]
    alone = plan(unanchored(profile), machine, threads=count, policies=[LOCAL]).policy(LOCAL)["prediction"]
    measured_s = [run.seconds for run in measured]
    middle_s = statistics.median(measured_s)
    return {
        "command": list(command),
        "told": told,
        "threads": count,
        "profiled_threads": had,
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
