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
    if cpus is None:
        cpus = os.sched_getaffinity(0) if Path(root) == HERE else ()
    found = _core.match_nodes(plan.core, dict(given or {}), sorted(cpus), root)
    return cast("list[NodeMatchDoc]", found)
