"""Which nodes of this machine the memories of a plan are.

The core decides (``crates/place/src/node_match.rs``); here it learns what the kernel tells and where the
program may run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

import tierloom._core as _core

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tierloom.nouns import Plan
    from tierloom.schema import NodeMatchDoc

HERE = Path("/")


def match_nodes(
    plan: Plan,
    given: Mapping[str, int] | None = None,
    *,
    cpus: Collection[int] | None = None,
    root: str | Path = HERE,
) -> list[NodeMatchDoc]:
    """Says which node of this machine each memory is that a plan uses.

    Memories and nodes are held against each other by kind, by whether they hang on the socket that the
    program runs on, and then by latency, bandwidth and capacity.

    Args:
        plan: Which object goes where.
        given: Nodes of memories that are not to be looked for.
        cpus: CPUs that the program may run on; those of this process, and in a recorded tree all.
        root: Folder that holds the machine's ``proc`` and ``sys``; this machine's by default.

    Raises:
        MachineError: No memory node is described there, or a file of it is damaged.
        RequestError: A memory has no node or may be several, or a given name or node does not exist; the
            message holds the options to type.
    """
    found = _core.match_nodes(plan.core, dict(given or {}), _cpus(cpus, root), root)
    return cast("list[NodeMatchDoc]", found)


def nodes_to_give(plan: Plan, *, cpus: Collection[int] | None = None, root: str | Path = HERE) -> dict[str, int]:
    """The nodes to give to :func:`match_nodes` so that each memory that a plan uses has one; none where it needs none.

    Args:
        plan: Which object goes where.
        cpus: As for :func:`match_nodes`.
        root: As for :func:`match_nodes`.

    Raises:
        MachineError: No memory node is described there, or a file of it is damaged.
    """
    return _core.nodes_to_give(plan.core, _cpus(cpus, root), root)


def is_rehearsal(plan: Plan, matches: Collection[NodeMatchDoc]) -> bool:
    """Whether a memory is of another kind here, or stands on the node of another one."""
    kinds = {memory["name"]: memory["kind"] for memory in plan.data.get("memories", [])}
    other = any(kinds.get(match["memory"], match["kind"]) != match["kind"] for match in matches)
    return other or len({match["node"] for match in matches}) < len(matches)


def _cpus(cpus: Collection[int] | None, root: str | Path) -> list[int]:
    if cpus is None:
        cpus = os.sched_getaffinity(0) if Path(root) == HERE else ()
    return sorted(cpus)
