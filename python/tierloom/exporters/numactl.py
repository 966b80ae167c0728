"""A plan as a shell script with ``numactl``: one policy for the whole program, and what that loses.

When every object goes the same way, that is the policy. Otherwise memory is spread by the plan's bytes
a node: the load of each memory is then about right, and which object lies where is lost. The kernel's
weights belong to the whole host and need Linux 6.9 and numactl 2.0.19.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.exporters.steps import Step, comment, title
from tierloom.nouns import FIRST_TOUCH
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from tierloom.schema import PlanDoc

WEIGHTS = "/sys/kernel/mm/mempolicy/weighted_interleave"
MOST_WEIGHT = 16
"""Largest weight we ask for: a page in 17 is finer than any prediction."""
NEAR = 0.01
"""A share of the pages that is off by this much is near enough."""


def write(plan: PlanDoc, steps: list[Step]) -> str:
    """The script: ``sh FILE PROGRAM ARGUMENTS`` runs a program under it."""
    mode, weights, exact = _whole(plan, steps)
    head = [
        "#!/bin/sh",
        f"# {title(plan)}: what numactl can do of it.",
        "# sh THIS-FILE PROGRAM ARGUMENTS runs a program so.",
    ]
    lost = [] if exact else ["# Cannot be expressed (numactl has one policy for the whole program):"]
    if not exact:
        lost += [f"#   {_line(step)}" for step in steps]
        lost += [
            "# So memory is spread as the plan's bytes are; `tierloom run --plan` or --emit libnuma places objects."
        ]
    return "\n".join([*head, *lost, *_command(mode, weights)]) + "\n"


def _line(step: Step) -> str:
    size = f", {bytes_text(step.size_bytes)}" if step.size_bytes else ""
    return comment("; ".join([f"{step.object}{size}: {step.words}", *step.lost]))


def _whole(plan: PlanDoc, steps: list[Step]) -> tuple[str, dict[int, int], bool]:
    """Policy of the whole program, and whether it is the plan's."""
    rules, default = steps[:-1], steps[-1]
    first = rules[0] if rules else default
    alike = all((step.mode, step.weights) == (first.mode, first.weights) for step in rules)
    if alike and (first.known or first.mode == FIRST_TOUCH):
        same = (default.mode, default.weights) == (first.mode, first.weights)
        return first.mode, first.weights, (same or not rules) and not any(step.lost for step in rules)
    shares = _shares(plan["predicted"]["bytes"])
    return ("prefer" if len(shares) == 1 else "weighted"), shares, False


def _shares(by_node: list[int]) -> dict[int, int]:
    """The smallest whole weights near the proportion of bytes; a node with a sliver gets one page in a round."""
    held = {node: bytes_ for node, bytes_ in enumerate(by_node) if bytes_ > 0}
    if not held:
        return {0: 1}
    most, total = max(held.values()), sum(held.values())

    def weights(scale: int) -> dict[int, int]:
        return {node: max(1, round(scale * share / most)) for node, share in held.items()}

    def error(scale: int) -> float:
        tried = weights(scale)
        return max(abs(tried[node] / sum(tried.values()) - share / total) for node, share in held.items())

    scales = range(1, MOST_WEIGHT + 1)
    near = next((scale for scale in scales if error(scale) <= NEAR), None)
    return weights(near or min(scales, key=error))


def _command(mode: str, weights: dict[int, int]) -> list[str]:
    nodes = ",".join(map(str, weights))
    if mode == "weighted" and len(set(weights.values())) == 1:
        mode = "interleave"
    match mode:
        case "bind":
            return [f'exec numactl --membind={nodes} -- "$@"']
        case "prefer":
            return [f'exec numactl --preferred={nodes} -- "$@"']
        case "prefer_many":
            return [f'exec numactl --preferred-many={nodes} -- "$@"']
        case "interleave":
            return [f'exec numactl --interleave={nodes} -- "$@"']
        case "weighted":
            asked = [f"#   echo {weight} > {WEIGHTS}/node{node}" for node, weight in weights.items()]
            told = "# The weights are the host's, for all programs; set them first, as root (Linux 6.9 or newer):"
            return [told, *asked, f'exec numactl --weighted-interleave={nodes} -- "$@"']
        case _:
            return ["# First touch is the kernel's default: nothing is asked of numactl.", 'exec "$@"']
