"""Why a plan does not beat another policy: the ceiling that no placement over this host can pass.

The ceiling of a block is the optimum of the same programme with every memory of the host infinitely fast and
at no distance, its capacity as it is. Making a row's factors smaller never raises the optimum's time, so no
placement of the block over the real memories is faster. Where the plan reaches it, memory speed costs
nothing, and a policy that also reaches it ties: it is the duals of the GPU's rows that are not zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.offload import planner
from tierloom.offload.documents import TIED

if TYPE_CHECKING:
    from tierloom.offload.host import Host, Tier
    from tierloom.offload.planner import InferPlan

INFINITE_BYTES_S = 1e18
NO_DISTANCE_S = 1e-15


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """What a block could reach at most.

    Attributes:
        tokens_s: Tokens per second of the plan's block with infinitely fast memories.
        room: How far the plan is below it, a share of the plan.
        bound: What the ceiling itself waits for longest: nothing of the host's memories.
        block_tokens_s: The most that any placement of the rival's own block reaches over the real memories.
    """

    tokens_s: float
    room: float
    bound: str
    block_tokens_s: float

    def reached(self, tokens_s: float) -> bool:
        """Whether a rival of that throughput is as fast as infinitely fast memories."""
        return self.tokens_s <= tokens_s * (1.0 + TIED)


def ties(plan: InferPlan, rival: InferPlan) -> bool:
    """Whether a rival is as fast as the plan, to what can be told apart."""
    return plan.tokens_s <= rival.tokens_s * (1.0 + TIED)


def ceiling(plan: InferPlan, rival: InferPlan) -> Ceiling:
    """The ceiling over a plan that ties with a rival."""
    ideal = planner.best_of_block(replace(plan.problem, host=_infinitely_fast(plan.problem.host)), plan)
    block = planner.best_of_block(plan.problem, rival)
    most = ideal or plan
    pieces = dict(most.steps.prefill if _in_prefill(most) else most.steps.decode)
    return Ceiling(
        tokens_s=most.tokens_s,
        room=most.tokens_s / plan.tokens_s - 1.0,
        bound=max(pieces, key=lambda piece: pieces[piece]),
        block_tokens_s=max((block or rival).tokens_s, rival.tokens_s),
    )


def _in_prefill(plan: InferPlan) -> bool:
    return plan.steps.prefill_s > plan.problem.decode_steps * plan.steps.decode_s


def _infinitely_fast(host: Host) -> Host:
    nearest = min(tier.gpu_extra_s for tier in host.memories)
    return replace(host, fabric_bytes_s=None, tiers=tuple(_ideal(tier, nearest) for tier in host.tiers))


def _ideal(tier: Tier, gpu_extra_s: float) -> Tier:
    if tier.block:
        return tier
    return replace(
        tier,
        read_bytes_s=INFINITE_BYTES_S,
        write_bytes_s=INFINITE_BYTES_S,
        idle_s=NO_DISTANCE_S,
        gpu_extra_s=gpu_extra_s,
        curve=(),
    )
