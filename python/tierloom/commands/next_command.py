"""The one command that fits an answer: a verb tells it after its own words, as it can be typed.

Nothing comes next where no command would do: a program failed, or there are no packages that draw a page.
"""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tierloom import extras

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.differences import Difference
    from tierloom.migration_simulator import Simulation
    from tierloom.nouns import Machine, Plan
    from tierloom.schema import AppliedDoc, RunDoc, ValidationDoc

TYPED = "tierloom.typed"
"""Key of click's contexts: the words of the command that runs."""

GOOD = 0.1
"""Share by which a prediction may be off before there is something to find out, as in `within_10` of a validation."""

RUNS = 9
"""Runs of a program that does not take the same time twice: three times those that `validate` does by itself."""

OPENER = "xdg-open"
"""What opens a file in the reader's own browser."""

SERVER = ("python3", "-m", "http.server", "--bind", "localhost")
"""What shows the files of a folder to browsers that reach this machine by ssh alone: it prints its address."""

COUNTER = "valgrind"
"""What `profile --count` runs under."""


@dataclass(frozen=True)
class Place:
    """What is known of the program and the machine of a run.

    Attributes:
        is_of_another: The plan is for another program.
        is_here: The plan is for this machine.
        here: This machine, where it was measured.
        nodes: Values of `--node` that were typed.
    """

    is_of_another: bool
    is_here: bool
    here: Machine | None
    nodes: Sequence[str] = ()


def keep_typed(ctx: click.Context, words: Sequence[str]) -> None:
    """Keeps what was typed, for `again`."""
    ctx.meta[TYPED] = tuple(words)


def again(*added: str) -> str:
    """The command that runs, with more options, which count over the same ones before them."""
    ctx = click.get_current_context()
    words = ctx.meta[TYPED]
    at = words.index("--") if "--" in words else len(words) if ctx.allow_interspersed_args else 1
    return tierloom(*words[:at], *added, *words[at:])


def tierloom(*words: object) -> str:
    """A command of ours as a shell reads it."""
    return shlex.join(["tierloom", *map(str, words)])


def page() -> str | None:
    """The same answer as a page."""
    return None if extras.missing("report") else f"{again('--json')} | tierloom report -"


def of_plan(file: str) -> str | None:
    """A plan as a page."""
    return None if extras.missing("report") else tierloom("report", file)


def run(plan: Plan, file: str, report: RunDoc, command: Sequence[str], at: Place) -> str | None:
    """After `run`: how long the program takes without the plan, which `validate` measures; elsewhere the plan's page.

    Args:
        plan: What was asked for.
        file: Where it is.
        report: What came of it.
        command: What ran.
        at: What is known of program and machine.
    """
    if report["exit_code"]:
        return None
    if at.is_of_another:
        return tierloom("profile", "--", *command)
    if not at.is_here:
        return of_plan(file)
    if at.here is None:
        return tierloom("machine", "measure")
    policy, known = plan.data["policy"], {memory["name"] for memory in at.here.data["memories"]}
    if ":" not in policy or not {match["memory"] for match in report["memories"]} <= known:
        return tierloom("validate", "--", *command)
    given = [word for node in at.nodes for word in ("--node", node)]
    return tierloom("validate", "--placements", policy, *given, "--", *command)


def apply(done: AppliedDoc, file: str) -> str | None:
    """After `apply`: the same again where something could not be moved, else what the plan should bring."""
    return again() if any(rule["problems"] for rule in done["rules"]) else of_plan(file)


def validate(found: ValidationDoc, disturbed: float) -> str | None:
    """After `validate`: what tells more of the prediction that is off most, or how to use predictions that hold.

    Args:
        found: The answer.
        disturbed: Share of the processors from which on others are to blame.
    """
    if not found["rows"]:
        return None
    worst = max(found["rows"], key=lambda row: abs(row["error"]))
    off = abs(worst["error"])
    if off > GOOD and (worst["others"] or 0.0) > disturbed:
        return again()
    if off > GOOD and worst["repeat"] is not None and worst["repeat"] >= off:
        return again("--runs", str(max(RUNS, 3 * found["runs"])))
    counts = ["--count", "traffic"] if off > GOOD and shutil.which(COUNTER) else []
    return tierloom("profile", *counts, "--", *worst["command"])


def measure(file: Path) -> str:
    """After `machine measure`: a plan for it of a profile that lies here, the last one; else its figures."""
    from tierloom.profile_folder import ENDING, PROFILE_FILE

    here = max(Path().glob(f"*{ENDING}/{PROFILE_FILE}"), key=lambda path: path.stat().st_mtime, default=None)
    return tierloom("machine", "show", file) if here is None else tierloom("plan", here.parent, "--machine", file)


def simulate(runs: Sequence[Simulation], profile: str | None, asked: Mapping[str, str | int | None]) -> str | None:
    """After `simulate`: a plan where ours is the fastest or no page should move, else the runs on a page.

    Args:
        runs: All of them.
        profile: What ran, where that can be planned.
        asked: Options that `plan` has, too, by their names.
    """
    from tierloom.migration_simulator import OURS
    from tierloom.report import verdicts

    best = verdicts.fastest(runs).data["policy"]
    if profile is None or best not in {OURS, verdicts.STILL}:
        return page()
    options = [
        word for name, value in asked.items() if value is not None for word in (f"--{name.replace('_', '-')}", value)
    ]
    return tierloom("plan", profile, *options)


def diff(found: Difference) -> str | None:
    """After `diff`: the changes on a page, where there are some."""
    return page() if found.changes else None


def report(file: Path) -> str | None:
    """After `report`: opens the page where there is a display; elsewhere a port that can be forwarded leads to it."""
    if {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys() and shutil.which(OPENER):
        return shlex.join([OPENER, str(file)])
    return shlex.join([*SERVER, "--directory", str(file.parent)]) if shutil.which(SERVER[0]) else None
