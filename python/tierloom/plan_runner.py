"""Running a program with its objects placed as a plan says, and moving them while it runs.

The program keeps its standard streams, its exit code and its signals; everything here happens
around it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import tierloom._core as _core
from tierloom.arguments import Reader, instance, or_none, reads, real, refused, table, truth, whole
from tierloom.node_match import match_nodes
from tierloom.nouns import Plan
from tierloom.program import interrupts_go_to_the_program, preload_library

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tierloom.schema import AppliedDoc, RunDoc, SnapshotDoc


PLAN = instance(Plan, "give a plan, such as Plan.load(path)")
NODES: Reader = or_none(table(whole(0, 1023)))
"""Numbers of nodes, of which Linux has no more (CONFIG_NODES_SHIFT), by the plan's memories."""


def _watch(name: str, value: Any) -> tuple[float, Callable[[SnapshotDoc], None]]:  # noqa: ANN401 (whatever was handed in)
    """Seconds, and what is called."""
    if not isinstance(value, tuple) or len(value) != 2 or not callable(value[1]):
        raise refused(value, name, "no pair of seconds and a function", "give them as (0.5, print)")
    return real(0.0)(name, value[0]), cast("Callable[[SnapshotDoc], None]", value[1])


@reads(plan=PLAN, nodes=NODES, hold=truth, set_host_weights=truth, watch=or_none(_watch))
def run(
    plan: Plan,
    command: Sequence[str],
    *,
    nodes: Mapping[str, int] | None = None,
    hold: bool = False,
    hint_faults: bool | None = None,
    set_host_weights: bool = False,
    watch: tuple[float, Callable[[SnapshotDoc], None]] | None = None,
) -> RunDoc:
    """Runs a program with its objects placed as a plan says.

    Args:
        plan: Which object goes where.
        command: Program and arguments.
        nodes: Which node of this machine a memory of the plan is, by its name; what is not given is found by what
            both are, and refused where that leaves a choice.

            :func:`match_nodes` says which would be found.
        hold: Lock pages where they are put: the kernel must not demote them.
        hint_faults: Whether the kernel may take hint faults on placed objects, and so migrate their pages; by default
            as each policy has it.
        set_host_weights: Set the host's interleave weights to the plan's one ratio while the program runs (root); put
            back at its end.

            The kernel then deals out all memory of weighted rules by itself.
        watch: Seconds between two snapshots of where pages are, and what is called with each.

    Returns:
        The program's exit code, where every object ended up, and what could not be done.

    Raises:
        ProgramError: The program cannot be started.
        RequestError: It is not certain which nodes the plan's memories are here, or the plan cannot be what the
            host does.
        RecordingError: It could not be placed.

    Example:
        >>> import tierloom
        >>> plan = tierloom.plan("cg-e", "liu-a", nodes=["ldram", "cxl"], policies=["bind:cxl"]).plan()
        >>> report = run(plan, ["true"], nodes={"cxl": 0})
        >>> report["exit_code"], report["memories"][0]["node"]
        (0, 0)
    """
    options = {"hold": hold, **({} if hint_faults is None else {"hint_faults": hint_faults})}
    every_s, watcher = watch or (None, None)
    memories = match_nodes(plan, nodes)
    asked = {
        "nodes": {match["memory"]: match["node"] for match in memories},
        "options": options,
        "set_host_weights": set_host_weights,
        "watch_s": every_s,
    }
    with interrupts_go_to_the_program():
        report: Any = _core.run_plan(plan.core, list(command), preload_library(), asked, watcher)
    return cast("RunDoc", {**report, "memories": memories})


def run_ablated(named: Plan, command: Sequence[str], most_s: float) -> RunDoc:
    """Runs a program with the objects of a plan's rules always in the cache; what it computes with them means nothing.

    Args:
        named: A plan with a rule for each of the objects; where it places them does not matter.
        command: Program and arguments.
        most_s: Seconds after which the program is killed (``cut_off``).

    Raises:
        ProgramError: The program cannot be started.
        RecordingError: Nothing could be ablated.
    """
    asked = {"ablate": True, "most_s": most_s}
    with interrupts_go_to_the_program():
        report: Any = _core.run_plan(named.core, list(command), preload_library(), asked, None)
    return cast("RunDoc", {**report, "memories": []})


@reads(plan=PLAN, nodes=NODES)
def apply(pid: int, plan: Plan, *, nodes: Mapping[str, int] | None = None) -> AppliedDoc:
    """Moves the objects of a running program to where another plan wants them.

    The program must have been started by :func:`run`, in whatever process. What it allocates from now
    on goes by the new plan, too.

    Args:
        pid: Process id of the program.
        plan: Which object goes where from now on.
        nodes: As for :func:`run`.

    Returns:
        What was moved, by rule.

    Raises:
        RequestError: There is no such program, it does not run under a plan, or it is not certain which nodes
            the plan's memories are.
    """
    memories = match_nodes(plan, nodes, cpus=_cpus_of(pid))
    numbers = {match["memory"]: match["node"] for match in memories}
    return cast("AppliedDoc", {**_core.apply_plan(pid, plan.core, numbers), "memories": memories})


def _cpus_of(pid: int) -> set[int]:
    """CPUs that a process may run on; this process's where there is none, which `apply` says better."""
    try:
        return os.sched_getaffinity(pid)
    except OSError:
        return os.sched_getaffinity(0)


def left_host_weights(root: Path = Path("/")) -> dict[int, int] | None:
    """The host's interleave weights as they were, by node, if a run that had set others was killed.

    Args:
        root: Folder with ``proc``, ``run`` and ``sys``.
    """
    left = _core.left_host_weights(root)
    return None if left is None else {int(node): weight for node, weight in left["weights"].items()}


def restore_host_weights(root: Path = Path("/")) -> bool:
    """Puts back the host's interleave weights that a killed run left; whether there were any.

    Args:
        root: Folder with ``proc``, ``run`` and ``sys``.

    Raises:
        RecordingError: Not root.
    """
    return _core.restore_host_weights(root)
