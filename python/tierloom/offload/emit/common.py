"""What several tools need: shares of the host as page weights, and amounts in GiB."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tierloom.offload.problem import GPU

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.offload.answers import InferAnswer

ROUNDS = 20
"""Largest sum of weights that is tried: pages of a round; the kernel takes weights up to 255."""

SHOWN = 0.01
"""Share of a tier below which it gets no page of a round."""


def page_weights(placed: Mapping[str, float]) -> dict[str, int]:
    """Whole pages of a round that come nearest to the shares of the host's tiers; the GPU is left out.

    Example:
        >>> page_weights({"gpu": 5.0, "ldram": 6.0, "cxl": 2.0})
        {'ldram': 3, 'cxl': 1}
    """
    host = {place: amount for place, amount in placed.items() if place != GPU and amount > 0.0}
    whole = sum(host.values())
    shares = {place: amount / whole for place, amount in host.items() if amount / whole >= SHOWN}

    def missed(pages: int) -> float:
        rounded = {place: round(share * pages) for place, share in shares.items()}
        given = sum(rounded.values())
        if not all(rounded.values()):
            return float("inf")
        return max(abs(count / given - shares[place]) for place, count in rounded.items())

    if not shares:
        return {}
    best = min(range(len(shares), ROUNDS + 1), key=lambda pages: (round(missed(pages), 6), pages))
    pages = {place: max(1, round(share * best)) for place, share in shares.items()}
    common = math.gcd(*pages.values())
    return {place: count // common for place, count in pages.items()}


def host_bytes(answer: InferAnswer) -> dict[str, float]:
    """Everything on the host, by tier."""
    return {held.place: held.total for held in answer.whole.plan.held if held.place != GPU}


def kv_on_host(answer: InferAnswer) -> float:
    """KV cache outside the GPU, bytes."""
    return sum(amount for place, amount in answer.whole.plan.placement.kv.items() if place != GPU)


def weights_on_host(answer: InferAnswer) -> float:
    """Weights outside the GPU, bytes."""
    placed = answer.whole.plan.placement.weights_by_place
    return sum(amount for place, amount in placed.items() if place != GPU)


def node_numbers(answer: InferAnswer) -> dict[str, int]:
    """The kernel's node numbers, by tier."""
    return {name: number for number, name in enumerate(answer.plan.problem.host.nodes)}


def interleave_prefix(answer: InferAnswer) -> tuple[list[str], str]:
    """How to start a process that has one memory policy for all it allocates.

    Returns:
        Comment lines that set the kernel's page weights, and the command that goes before the program's.
    """
    numbers = node_numbers(answer)
    pages = {place: count for place, count in page_weights(host_bytes(answer)).items() if place in numbers}
    if len(pages) < 2:
        only = ",".join(str(numbers[place]) for place in pages)
        return [], f"numactl --membind={only} " if only else ""
    lines = [
        f"# echo {count} > /sys/kernel/mm/mempolicy/weighted_interleave/node{numbers[place]}  # {place}"
        for place, count in pages.items()
    ]
    nodes = ",".join(str(number) for number in sorted(numbers[place] for place in pages))
    return lines, f"numactl --weighted-interleave={nodes} "
