"""Runs of a program in which an object costs no memory, timed: they judge what waiting for it is predicted to take.

All pages of the object are the same few, so that whatever the program touches of it is in a cache; the library of
``run`` sees to that. What the object holds is lost. Where the program cannot do without it, or the library cannot do
it, the object is told not to allow it, which says nothing about the prediction.
"""

from __future__ import annotations

import signal
import statistics
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError, RequestError
from tierloom.placed_runs import reported
from tierloom.plan_runner import run_ablated
from tierloom.timed_runs import Timed, watched
from tierloom.units import percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tierloom.nouns import Plan, Profile
    from tierloom.schema import PredictionDoc, RuleOutcomeDoc, RunDoc

ALL = "all"
"""Each object that is worth it, one at a time."""

WORTH_IT = 0.03
"""Share of all waiting from which on an object is worth it: less cannot be told from how runs differ. Assumed."""

MOST_TIMES = 3.0
"""A run that takes so many times as long as without ablation is ended: it computes something else, or for ever.
Assumed."""

WHOLE = 0.9
"""Share of an object's bytes that must have been ablated: the pages at the ends of its blocks hold other data, too.
Assumed."""

LEAST_S = 1.0
"""And it may always run for so long: a short program takes longer to prepare than to run."""


def checked(names: Sequence[str]) -> Sequence[str]:
    """Names of objects, or ``all`` by itself.

    Raises:
        RequestError: ``all`` stands among names.

    Example:
        >>> checked(["A", "B"])
        ['A', 'B']
    """
    if ALL in names and len(names) > 1:
        message = (
            f"ablate: `{ALL}` stands for every object, and there are others beside it\nhint: give one or the other"
        )
        raise RequestError(message)
    return names


def objects(
    profile: Profile, predicted: PredictionDoc, names: Sequence[str], unselected: Collection[str]
) -> Sequence[str]:
    """Which objects are ablated, one after the other.

    Args:
        profile: What the program does with its data.
        predicted: How long it waits for each object.
        names: As asked, or ``all``.
        unselected: Objects that no rule of a plan can select.

    Raises:
        RequestError: The program has no object of a name.
    """
    if list(names) == [ALL]:
        waits = {each["object"]: each["stall_s"] for each in predicted["objects"]}
        least_s = WORTH_IT * sum(waits.values())
        worth_it = [name for name, wait_s in waits.items() if wait_s > 0.0 and wait_s >= least_s]
        return [name for name in worth_it if name not in unselected]
    known = [each["name"] for each in profile.data["objects"]]
    for name in names:
        if name not in known:
            hint = f"give one of: {', '.join(known)}" if known else "it has none at all"
            message = f"ablate: {profile.data['program']['command'][0]} has no object `{name}`\nhint: {hint}"
            raise RequestError(message)
    return names


def allowed(profile: Profile, name: str, unselected: Collection[str]) -> None:
    """Makes sure that nothing known of an object is against ablating it.

    Raises:
        PlacementError: Something is.
    """
    if name in unselected:
        raise _refused(name, "no rule of a plan can select it", "name an object that the program allocates by itself")
    if _is_shared(profile, name):
        why = "several threads write it, and would write the same lines, which caches then hand to and fro"
        raise _refused(name, why, "run the program with one thread, such as --threads 1")


def _is_shared(profile: Profile, name: str) -> bool:
    """Whether several threads write an object."""
    phases = [phase for phase in profile.data["phases"] if phase["threads"] > 1]
    return any(each["object"] == name and each["writes"] > 0.0 for phase in phases for each in phase["accesses"])


def timed_without(named: Plan, command: Sequence[str], alone: Sequence[Timed], threads: int) -> Timed:
    """A run of a program in which the objects that a plan names cost no memory; its output is read, and kept nowhere.

    Pages that are there already cost the kernel less than new ones, and the mappings cost it something. Neither is what
    a prediction is about, so the kernel's time is taken to be what it is without ablation, evenly over the threads.

    Args:
        named: A plan with a rule for each of the objects; where it places them does not matter.
        command: Program and arguments.
        alone: Runs of it without ablation.
        threads: Threads that it has.

    Raises:
        PlacementError: An object does not allow it.
        ProgramError: The program cannot be started.
    """
    most_s = max(MOST_TIMES * statistics.median(run.seconds for run in alone), LEAST_S)
    exit_codes = {each.exit_code for each in alone}
    rules = named.data["rules"]
    run = partial(run_ablated, named, command, most_s)

    def ablated(writing: int) -> Timed:
        report = reported(command, run, writing)
        for asked_for, rule in zip(rules, report["rules"], strict=False):
            allows(rule, asked_for["size_bytes"], report, exit_codes, most_s)
        return Timed(report["wall_s"], 0.0, report["exit_code"])

    ended = watched(ablated)
    system_s = statistics.median(each.system_s for each in alone)
    return replace(ended, seconds=ended.seconds + (system_s - ended.system_s) / threads)


def allows(rule: RuleOutcomeDoc, size_bytes: int, report: RunDoc, exit_codes: set[int], most_s: float) -> None:
    """Makes sure that an object was ablated, and that the program ran as it does otherwise.

    Args:
        rule: What became of the object.
        size_bytes: What it has in the profile.
        report: What became of the run.
        exit_codes: How the program ends otherwise.
        most_s: Time after which it was killed, s.

    Raises:
        PlacementError: It was not, or the program did not.
    """
    name, hint = rule["object"], "ablate arrays of numbers, whose values may be anything"
    if rule["problems"]:
        raise _refused(name, "; ".join(rule["problems"]), "name another object")
    # Who ends early has not asked for all of it: how it ended is the reason.
    if report.get("cut_off"):
        raise _refused(name, f"the program was ended after {seconds_text(most_s)}, much longer than without", hint)
    if report["exit_code"] not in exit_codes:
        usual = " or ".join(map(str, sorted(exit_codes)))
        raise _refused(name, f"the program ended with {_ending(report['exit_code'])}, and with {usual} without", hint)
    if rule["ranges"] == 0:
        raise _refused(name, "the program did not ask for it this time", "name another object")
    if rule["bytes"] < WHOLE * size_bytes:
        share = percent_text(rule["bytes"] / size_bytes)
        raise _refused(name, f"only {share} of it are whole pages of large blocks", "name another object")


def _ending(code: int) -> str:
    """An exit code, and the signal that it stands for."""
    known = {128 + number: number.name for number in signal.Signals}
    return f"{code} ({known[code]})" if code in known else str(code)


def _refused(name: str, why: str, hint: str) -> PlacementError:
    return PlacementError(f"`{name}` does not allow to be ablated: {why}\nhint: {hint}")
