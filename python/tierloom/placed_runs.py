"""Runs of a program under placements of its data, timed: named as for ``plan``, applied as by ``run``.

Only on the memories that are meant. Where one node would stand for another, as ``run`` rehearses it, the time says
nothing, and the placement is refused.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom import plan_runner
from tierloom.errors import PlacementError, RequestError
from tierloom.node_match import is_rehearsal, match_nodes, nodes_to_give
from tierloom.nouns import Machine, Plan, Profile
from tierloom.policy_search import named, plan
from tierloom.timed_runs import Timed, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tierloom.schema import RunDoc

LOCAL = "local"
"""First touch on the nearest memory: what the kernel does when nobody asks for anything."""

WEIGHTS = Path("/sys/kernel/mm/mempolicy/weighted_interleave")
"""The host's interleave weights, a file a node (Linux 6.9)."""

ANY_PROGRAM: dict[str, Any] = {
    "kind": "profile",
    "version": 1,
    "name": "any program",
    "program": {"command": ["any"], "wall_s": 1.0, "cpu_s": 1.0, "threads": 1, "cpu": "any", "llc_bytes": 1},
    "sources": {},
    "objects": [
        {
            "name": "data",
            "kind": "heap",
            "site": {"name": "data"},
            "size_bytes": 4096,
            "allocations": 1,
            "first_s": 0.0,
            "last_s": 1.0,
            "first_touch_s": 0.0,
        }
    ],
    "phases": [],
}
"""A profile for what must be known of a placement before anything runs: whether there is such a one on a machine."""


def checked(placements: Sequence[str], machine: Machine, nodes: Mapping[str, int]) -> list[str]:
    """Each placement once, by the name that stands for it alone; first touch, which needs nothing, is left out.

    Args:
        placements: Names of policies, as `plan` takes them.
        machine: The machine that programs run on.
        nodes: As for :func:`tierloom.run`.

    Raises:
        RequestError: There is no such placement, or this machine's nodes are not the memories that it needs.
    """
    names, own = named(placements)
    brought = [each.name for each in own]
    ours = [name for name in names or [] if name not in brought]
    answer = plan(Profile.from_data(ANY_PROGRAM), machine, policies=[LOCAL, *ours])
    listed = [each for each in answer.brief["policies"] if each["policy"] != LOCAL]
    for each in listed:
        if "prediction" in each:
            here(answer.plan(each["policy"]), nodes)
    return [*(each["policy"] for each in listed), *brought]


def here(placed: Plan, nodes: Mapping[str, int]) -> None:
    """Makes sure that this machine has the memories of a plan, and that it is clear which nodes they are.

    Raises:
        RequestError: It has not, or it is not; the message holds the options to type.
    """
    matches = match_nodes(placed, {**nodes_to_give(placed), **nodes})
    if is_rehearsal(placed, matches):
        stands = ", ".join(f"node {each['node']} ({each['kind']}) would stand for {each['memory']}" for each in matches)
        message = (
            f"{placed.data['policy']}: this machine has not all memories of {placed.data['machine']}; {stands}, and "
            "the time would say nothing\n"
            "hint: leave it out, or validate on the machine of that file"
        )
        raise RequestError(message)
    match_nodes(placed, nodes)


def timed_under(placed: Plan, command: Sequence[str], nodes: Mapping[str, int]) -> Timed:
    """A run of a program with its data where a plan puts them; its output is read, and kept nowhere.

    Raises:
        PlacementError: The kernel has no weights to set, or nothing was placed.
        ProgramError: The program cannot be started.
        RequestError: This machine's nodes are not the plan's memories.
        RecordingError: It could not be placed.
    """
    here(placed, nodes)
    by_the_kernel = weighs_all_alike(placed)
    if by_the_kernel:
        weights_can_be_set(placed)
    run = partial(plan_runner.run, placed, command, nodes=nodes, set_host_weights=by_the_kernel)

    def placed_run(writing: int) -> Timed:
        report = reported(command, run, writing)
        notes = tuple(warning["text"] for warning in report["warnings"])
        return Timed(report["wall_s"], 0.0, report["exit_code"], elsewhere(report), notes)

    return watched(placed_run)


def weighs_all_alike(placed: Plan) -> bool:
    """Whether a plan deals out all memory by the same weights, as the kernel itself does once the host has them.

    Tierloom alone would leave static arrays and stacks where they are first touched.
    """
    default = placed.data["default"]
    return not placed.data.get("rules") and isinstance(default, dict) and len(default.get("weighted", {})) > 1


def weights_can_be_set(placed: Plan) -> None:
    """Makes sure that the host can have a plan's weights.

    Raises:
        PlacementError: It cannot.
    """
    files = sorted(WEIGHTS.glob("node*"))
    if not files:
        raise _not_by_the_kernel(placed, f"this kernel has no {WEIGHTS}", "take Linux 6.9 or later")
    if not all(os.access(file, os.W_OK) for file in files):
        raise _not_by_the_kernel(placed, f"{WEIGHTS} cannot be written", "run as root")


def _not_by_the_kernel(placed: Plan, why: str, remedy: str) -> PlacementError:
    what = f"{placed.data['policy']} takes the kernel's own weighted interleave, and {why}"
    return PlacementError(f"{what}\nhint: {remedy}, or leave it out")


def reported(command: Sequence[str], run: Callable[[], RunDoc], writing: int) -> RunDoc:
    """What became of a run whose output goes there.

    Raises:
        PlacementError: Nothing was placed.
    """
    with _output_to(writing):
        report = run()
    for warning in report["warnings"]:
        if warning["kind"] == "nothing_placed":
            message = f"{command[0]}: {warning['text']}\nhint: link it dynamically, and run no program with set-user-ID"
            raise PlacementError(message)
    return report


def elsewhere(report: RunDoc) -> float | None:
    """Share of the pages that were looked at and were not where they were meant to be; None where none was.

    Of a placement that is the policy of threads, which the kernel follows by itself, none is.
    """
    seen = [rule["residency"] for rule in report["rules"]]
    there = sum(each["looked"] - each["absent"] for each in seen)
    return sum(each["elsewhere"] for each in seen) / there if there else None


@contextmanager
def _output_to(writing: int) -> Iterator[None]:
    """What a program that is started meanwhile writes goes there; it inherits our own streams."""
    sys.stdout.flush()
    sys.stderr.flush()
    ours = {stream: os.dup(stream) for stream in (1, 2)}
    try:
        for stream in ours:
            os.dup2(writing, stream)
        yield
    finally:
        for stream, before in ours.items():
            os.dup2(before, stream)
            os.close(before)
