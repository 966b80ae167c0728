"""Predicted times against measured ones, on this machine, of programs that the user names.

A program is profiled once. It runs without the profiler as often as asked, before and after, with other numbers of
threads, with its data placed elsewhere, and with an object always in the cache. Each time is held against the
prediction that the one profile gives for it: anchored to the profiled run, and by the model alone. Beside that stands
how well one of its runs tells what the others take, which no prediction from one run can be expected to beat.
"""

from __future__ import annotations

import itertools
import shlex
import statistics
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tierloom import ablation, arguments, measured_hosts, profiler, progress_bar
from tierloom.errors import MachineError, PlacementError, ProgramError, RecordingError, RequestError
from tierloom.notebook_tables import Charted
from tierloom.nouns import Machine, Profile
from tierloom.placed_runs import LOCAL, checked, timed_under
from tierloom.plan_runner import NODES
from tierloom.policy_search import plan, predict
from tierloom.program import THREADS_VARIABLE
from tierloom.timed_runs import beside, ends_alike, telling, timed
from tierloom.units import bandwidth_gb_s
from tierloom.what_if import Change, changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tierloom.policy_search import Comparison
    from tierloom.schema import ValidationDoc, ValidationFailureDoc, ValidationRowDoc
    from tierloom.timed_runs import Timed

DISTURBED = 0.05
"""Share of the processors that others may have before a measured time tells of them, too: as much as the error that one
asks of a prediction."""

SIZE = "{size}"
"""What a size stands for in a command."""

ASTRAY = 0.05
"""Share of pages that may be elsewhere than a placement wants them, alike."""


@dataclass(frozen=True)
class Condition:
    """What a program runs under.

    The threads that it is told, what neighbours read, GB/s, where its data are, and the object that is always in cache.
    """

    told: int | None
    neighbours_gb_s: float
    placement: str = LOCAL
    ablated: str | None = None

    def __str__(self) -> str:
        threads = f" with {self.told} threads" if self.told else ""
        beside_it = f" beside {self.neighbours_gb_s:g} GB/s" if self.neighbours_gb_s else ""
        placed = f" under {self.placement}" if self.placement != LOCAL else ""
        without = f" with {self.ablated} in the cache" if self.ablated else ""
        return f"{threads}{beside_it}{placed}{without}"


@dataclass(frozen=True)
class Trial:
    """What each program is tried under; it is profiled, and its objects are ablated, under the first condition."""

    machine: Machine
    conditions: Sequence[Condition]
    ablate: Sequence[str]
    nodes: Mapping[str, int]
    runs: int
    repeat: int
    variable: str
    steps: progress_bar.Steps
    failures: list[ValidationFailureDoc] = field(default_factory=list)

    def leave_out(self, command: Sequence[str], why: Exception) -> None:
        """Keeps what there is no row of."""
        self.failures.append({"command": list(command), "why": str(why)})


@dataclass(frozen=True)
class Validation(Charted):
    """What was measured beside what was predicted; ``data`` is the document that the verb prints as JSON."""

    data: ValidationDoc


def _traffic(text: str) -> float:
    """Traffic beside a program, as it is typed.

    Raises:
        RequestError: The text is no bandwidth.
    """
    if not (rate := bandwidth_gb_s(text)):
        raise arguments.refused(text, "neighbours", "no traffic", "write it as 5GB/s, and several as 5GB/s,10GB/s")
    return rate


@arguments.reads(
    threads=arguments.or_none(arguments.parts(arguments.THREADS, arguments.number_in)),
    neighbours=arguments.parts(arguments.real(), _traffic),
    placements=arguments.names,
    sizes=arguments.names,
    ablate=arguments.names,
    nodes=NODES,
)
def validate(
    commands: Sequence[Sequence[str]],
    *,
    machine: Machine | str | Path | None = None,
    threads: Sequence[int] | None = None,
    neighbours: Sequence[float] = (),
    placements: Sequence[str] = (),
    nodes: Mapping[str, int] | None = None,
    sizes: Sequence[str] = (),
    ablate: Sequence[str] = (),
    runs: int = 3,
    repeat: int = 0,
    variable: str = THREADS_VARIABLE,
    progress: progress_bar.Tell | None = None,
) -> Validation:
    """Profiles programs, runs them again, and compares predicted with measured times.

    Args:
        commands: Programs with their arguments.
        machine: This machine, measured; the last `tierloom machine measure` by default.
        threads: Numbers of threads to run with; the first one is profiled. By default the environment stays as it is.
        neighbours: Run them beside threads, too, that read near memory at about these rates (GB/s), from other cores.
        placements: Run them with their data placed so, too, without neighbours: policies as of `tierloom plan`, such as
            ``"bind:NODE,interleave"``.
        nodes: Which node of this machine a memory is, where :func:`tierloom.run` would ask.
        sizes: Run the program with each of these for {size} among its arguments, as ./app {size}; each is profiled by
            itself.

            How counts grow with the input is not to be seen in one profile.
        ablate: Run the program with each of these objects always in the cache, too, so that its results are wrong;
            ``"all"``: each that is waited for, one after the other.

            It is predicted to wait for all but that.
        runs: Runs to measure, without the profiler, for each number of threads; the median counts.

            With the number that is profiled, half of them come before the profiled run: a machine whose clock drifts
            shows it.
        repeat: Have each profile know what so many runs before it took, as `tierloom profile` does.

            These are none of the runs that are measured.
        variable: Environment variable that tells the program its threads.
        progress: Called with the share that is done, the seconds left (None before a run has been timed), and what is
            being done. In a notebook a bar shows it by default.

    Where there are several, one that cannot be started, recorded or predicted, or that does not always end alike, is
    left out and told (``failures``); so is a placement that the data do not fit in, or that the kernel lacks, and an
    object that the program cannot do without.

    Returns:
        ``.data`` has ``rows``, one a program, number of threads, and traffic of neighbours, placement or ``ablated``
        object: ``measured_s`` (one value a run) beside ``predicted_s`` with its range ``low_s`` to ``high_s``, all in
        seconds, and ``error``, a share of the measured median; ``neighbours_gb_s`` is what neighbours really read, for
        which is predicted; ``repeat`` is how far one run is from the median of the others (None of a single run);
        ``others`` is the largest share of the processors that other programs had during one of the runs (None of runs
        that are too short for the kernel's clock); ``elsewhere``
        is the largest share of pages that were not where the placement wants them (None where that is not seen); and a
        ``summary`` with the shares of rows that are within 5 % and 10 %.

    Raises:
        MachineError: This machine was never measured, or a file does not hold one.
        ProgramError: The only program cannot be started, or does not always end alike.
        RecordingError: The only program ran, but nothing could be recorded.
        RequestError: The only program cannot be predicted: it had more threads than the machine has cores. Or it has
            not the object that is to be ablated. Or no core is left for neighbours, or they reach less than was asked.
            Or this machine has not the memories of a placement, or it is not clear which of its nodes they are.
        PlacementError: The only program cannot be predicted: it does not fit on the machine.

    Example:
        >>> import sys
        >>> program = [sys.executable, "-c", "sum(i * i for i in range(3_000_000))"]
        >>> answer = validate([program], machine="dram 64GiB 100ns 100GB/s", runs=1)
        >>> [(row["threads"], len(row["measured_s"])) for row in answer.data["rows"]]
        [(1, 1)]
    """
    commands = of_sizes(commands, sizes)
    here = this_machine() if machine is None else Machine.of(machine)
    counts = list(threads) if threads else [None]
    given = nodes or {}
    elsewhere = checked(placements, here, given) if placements else []
    conditions = [Condition(*each) for each in itertools.product(counts, (0.0, *neighbours))]
    conditions += [Condition(*each) for each in itertools.product(counts, (0.0,), elsewhere)]
    with progress_bar.in_notebook("validating") as bar:
        steps = progress_bar.Steps(len(commands) * (1 + len(conditions) * runs), progress or bar)
        trial = Trial(here, conditions, ablation.checked(ablate), given, runs, repeat, variable, steps)
        rows = list(_all_rows(commands, trial))
    totals, failures = summary(rows), trial.failures
    return Validation({"machine": here.name, "runs": runs, "rows": rows, "failures": failures, "summary": totals})


def _all_rows(commands: Sequence[Sequence[str]], trial: Trial) -> Iterator[ValidationRowDoc]:
    """Rows of all programs; what cannot be tried is left out where there are several."""
    for command in commands:
        try:
            yield from _rows(command, trial)
        except (ProgramError, RecordingError, RequestError, PlacementError) as error:
            if len(commands) == 1:
                raise
            trial.leave_out(command, error)


def _rows(command: Sequence[str], trial: Trial) -> Iterator[ValidationRowDoc]:
    """A row for each condition; a placement that the program cannot have is left out."""
    first = trial.conditions[0]
    with telling(trial.variable, first.told):
        before = _before(command, trial)
        trial.steps.tell(f"profiling {command[0]}")
        recorded = profiler.record(command, repeat=trial.repeat)
    alone: list[Timed] = []
    for condition in trial.conditions:
        count = _threads(recorded.profile, condition.told, first.told)
        had = before if condition == first else []
        try:
            run = _as_placed(command, recorded.profile, condition, count, trial)
            rest = partial(_runs, run, trial.runs - len(had), f"running {command[0]}{condition}", trial)
            with telling(trial.variable, condition.told):
                gb_s, after = beside(condition.neighbours_gb_s, count, rest)
        except PlacementError as error:
            trial.leave_out(command, error)
            continue
        ends_alike(command, [*had, *after], recorded.exit_code)
        if condition == first:
            alone = [*had, *after]
        met = replace(condition, neighbours_gb_s=gb_s)
        yield row(command, recorded.profile, trial.machine, met, count, [*had, *after])
    yield from _ablated(command, recorded.profile, alone, trial)


def _ablated(
    command: Sequence[str], profile: Profile, alone: Sequence[Timed], trial: Trial
) -> Iterator[ValidationRowDoc]:
    """A row for each object that costs no memory in it; one that does not allow it is left out."""
    if not (trial.ablate and alone):
        return
    first = trial.conditions[0]
    count = _threads(profile, first.told, first.told)
    planned = _under(first, profile, trial.machine, count, trial.machine)
    unselected = planned.brief.get("unselected", [])
    names = ablation.objects(profile, planned.chosen["prediction"], trial.ablate, unselected)
    trial.steps.add(len(names) * trial.runs)
    for name in names:
        condition = replace(first, ablated=name)
        try:
            ablation.allowed(profile, name, unselected)
            named = _under(condition, profile, trial.machine, count, trial.machine).plan()
            run = partial(ablation.timed_without, named, command, alone, count)
            with telling(trial.variable, first.told):
                measured = _runs(run, trial.runs, f"running {command[0]}{condition}", trial)
        except PlacementError as error:
            trial.leave_out(command, error)
            continue
        yield row(command, profile, trial.machine, condition, count, measured)


def _as_placed(
    command: Sequence[str], profile: Profile, condition: Condition, threads: int, trial: Trial
) -> Callable[[], Timed]:
    """What runs the program as the condition places it."""
    if condition.placement == LOCAL:
        return partial(timed, command)
    placed = _under(condition, profile, trial.machine, threads, trial.machine).plan()
    return partial(timed_under, placed, command, trial.nodes)


def _runs(run: Callable[[], Timed], runs: int, what: str, trial: Trial) -> list[Timed]:
    measured = []
    for _ in range(runs):
        trial.steps.tell(what)
        measured.append(run())
    return measured


def _threads(profile: Profile, told: int | None, told_first: int | None) -> int:
    """Threads to predict for: as told, if the program goes by it, so that it had no more when it was profiled."""
    had = profile.data["program"]["threads"]
    goes_by_it = told_first is not None and had <= told_first
    return told if told is not None and goes_by_it else had


def _before(command: Sequence[str], trial: Trial) -> list[Timed]:
    """Runs before the one that is profiled; none of what cannot be started, which the profiler says better."""
    try:
        what = f"running {command[0]}{trial.conditions[0]}"
        return _runs(partial(timed, command), trial.runs // 2, what, trial)
    except OSError:
        return []


def of_sizes(commands: Sequence[Sequence[str]], sizes: Sequence[str]) -> Sequence[Sequence[str]]:
    """Each command with each size in the place of ``{size}``; as they are without sizes.

    Raises:
        RequestError: A command has no place for one.

    Example:
        >>> of_sizes([["./app", "--cells={size}"]], ["10", "20"])
        [['./app', '--cells=10'], ['./app', '--cells=20']]
    """
    if not sizes:
        return commands
    for command in commands:
        if not any(SIZE in word for word in command):
            message = (
                f"sizes: `{shlex.join(command)}` has no {SIZE}\nhint: write {SIZE} where the program is told its input"
            )
            raise RequestError(message)
    return [[word.replace(SIZE, size) for word in command] for command in commands for size in sizes]


def this_machine() -> Machine:
    """The machine that programs run on here.

    Raises:
        MachineError: It was never measured.
    """
    known = measured_hosts.kept(profiler.this_host())
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
    chosen = _under(condition, profile, loaded, threads, machine).chosen
    answer = chosen["prediction"]
    ablated = _ablated_names(condition)
    alone = predict(unanchored(profile), loaded, chosen["fractions"], threads=threads, ablated=ablated)
    measured_s = [run.seconds for run in measured]
    middle_s = statistics.median(measured_s)
    return {
        "command": list(command),
        "told": condition.told,
        "threads": threads,
        "profiled_threads": profile.data["program"]["threads"],
        "neighbours_gb_s": condition.neighbours_gb_s,
        "placement": chosen["policy"],
        "ablated": condition.ablated,
        "measured_s": measured_s,
        "repeat": repeat(measured_s),
        "others": max((run.others for run in measured if run.others is not None), default=None),
        "elsewhere": max((run.elsewhere for run in measured if run.elsewhere is not None), default=None),
        "notes": list(dict.fromkeys(note for run in measured for note in run.notes)),
        "predicted_s": answer["time_s"],
        "low_s": answer["low_s"],
        "high_s": answer["high_s"],
        "error": answer["time_s"] / middle_s - 1,
        "inside": answer["low_s"] <= middle_s <= answer["high_s"],
        "modelled_s": alone["time_s"],
        "residual": alone["time_s"] / middle_s - 1,
    }


def _under(condition: Condition, profile: Profile, beside_it: Machine, threads: int, machine: Machine) -> Comparison:
    """The condition's placement alone, planned beside neighbours and anchored to the run on the machine."""
    policies, ablated = [condition.placement], _ablated_names(condition)
    return plan(profile, beside_it, threads=threads, policies=policies, ran_on=machine, ablated=ablated)


def _ablated_names(condition: Condition) -> list[str]:
    return [condition.ablated] if condition.ablated else []


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
