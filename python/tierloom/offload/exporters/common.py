"""What several tools need: shares of the host as page weights, and amounts in GiB."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.offload import planner
from tierloom.offload.kernel_policies import Shares, shares
from tierloom.offload.problem import GPU
from tierloom.offload.step_times import steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.offload.answers import InferAnswer
    from tierloom.offload.planner import InferPlan

ROUNDS = 20
"""Largest sum of weights that is tried: pages of a round; the kernel takes weights up to 255."""

SHOWN = 0.01
"""Share of a tier below which it gets no page of a round."""

WORTH = 0.01
"""Share of throughput below which a policy is not worth setting, or a loss not worth a word."""


def page_weights(placed: Mapping[str, float]) -> dict[str, int]:
    """Whole pages of a round that come nearest to the shares of the host's tiers; the GPU is left out.

    Example:
        >>> page_weights({"gpu": 5.0, "ldram": 6.0, "cxl": 2.0})
        {'ldram': 3, 'cxl': 1}
    """
    host = {place: amount for place, amount in placed.items() if place != GPU and amount > 0.0}
    whole = sum(host.values())
    shares = {place: amount / whole for place, amount in host.items() if amount / whole >= SHOWN}

    def dealt(pages: int) -> dict[str, int]:
        """A share below half a page gets none."""
        rounded = {place: round(share * pages) for place, share in shares.items()}
        return {place: count for place, count in rounded.items() if count}

    def missed(pages: int) -> float:
        rounded = dealt(pages)
        given = sum(rounded.values())
        return max(abs(rounded.get(place, 0) / given - share) for place, share in shares.items())

    if not shares:
        return {}
    best = min(range(len(shares), ROUNDS + 1), key=lambda pages: (round(missed(pages), 6), pages))
    pages = dealt(best)
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


@dataclass(frozen=True, kw_only=True)
class ProcessPolicy:
    """The one memory policy of a process that stands for a plan.

    Attributes:
        notes: Comment lines: the kernel's page weights to set, and what the policy reaches.
        prefix: The command that goes before the program's.
        tokens_s: What the plan's block reaches with it.
    """

    notes: list[str]
    prefix: str
    tokens_s: float


def process_policy(answer: InferAnswer) -> ProcessPolicy:
    """How to start a process that has one memory policy for all it allocates.

    Either it prefers the nearest memory, or it interleaves by the plan's shares, whichever is faster. It is never
    bound to a memory: what lands in a slow one is a part of the plan's data, and a process also has stacks, code
    and buffers.
    """
    plan, numbers = answer.whole.plan, node_numbers(answer)
    near = next((tier.name for tier in plan.problem.host.memories if tier.name in numbers), None)
    if near is None or not any(amount > 0.0 for amount in host_bytes(answer).values()):
        return ProcessPolicy(notes=[], prefix="", tokens_s=plan.tokens_s)
    best = ProcessPolicy(
        notes=[],
        prefix=f"numactl --preferred={numbers[near]} ",
        tokens_s=under(plan, near_first(plan)),
    )
    pages = {place: count for place, count in page_weights(host_bytes(answer)).items() if place in numbers}
    if len(pages) > 1 and near in pages:
        reached = under(plan, Shares(_over(pages), _over(pages)))
        if reached > best.tokens_s * (1.0 + WORTH):
            nodes = ",".join(str(number) for number in sorted(numbers[place] for place in pages))
            lines = [
                f"# echo {count} > /sys/kernel/mm/mempolicy/weighted_interleave/node{numbers[place]}  # {place}"
                for place, count in pages.items()
            ]
            best = ProcessPolicy(notes=lines, prefix=f"numactl --weighted-interleave={nodes} ", tokens_s=reached)
    if best.tokens_s < plan.tokens_s * (1.0 - WORTH):
        said = f"# one policy for the whole process: {best.tokens_s:.3g} tokens/s, the plan's {plan.tokens_s:.3g}"
        best = replace(best, notes=[*best.notes, f"{said} take tierloom-plan"])
    return best


def near_first(plan: InferPlan) -> Shares:
    """Shares of a process that fills the nearest memory first, weights before the KV cache."""
    placed = plan.placement
    weights, kv = (_in_memories(plan, amounts) for amounts in (placed.weights_by_place, placed.kv))
    return shares("first-touch", planner.rooms(plan.problem, placed.gpu_batch), sum(weights), sum(kv))


def _in_memories(plan: InferPlan, placed: Mapping[str, float]) -> list[float]:
    return [placed.get(tier.name, 0.0) for tier in plan.problem.host.memories]


def _over(pages: Mapping[str, int]) -> dict[str, float]:
    return {place: count / sum(pages.values()) for place, count in pages.items()}


def under(plan: InferPlan, spread: Shares) -> float:
    """Tokens per second with everything that the plan has in memories of the host spread by shares."""

    def over(placed: Mapping[str, float], share: Mapping[str, float]) -> dict[str, float]:
        memories = sum(_in_memories(plan, placed))
        return dict(placed) | {t.name: memories * share.get(t.name, 0.0) for t in plan.problem.host.memories}

    placed = plan.placement
    moved = replace(
        placed,
        weights={part: over(amounts, spread.weights) for part, amounts in placed.weights.items()},
        kv=over(placed.kv, spread.kv),
        hidden=over(placed.hidden, spread.kv),
    )
    return steps(plan.problem, moved).tokens_s
