"""What would make a plan faster: the programme's duals in words that people act on.

A dual says how much the optimum gains from one unit more of a resource. For a capacity that is tokens
per second a GiB; for a bandwidth or a rate it is the share of throughput that one per cent more brings.
Both hold for small changes only: a larger one moves the optimum to other limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.offload import lp_rows
from tierloom.offload.lp_rows import Guess
from tierloom.offload.planner import TIER_AWARE, InferPlan
from tierloom.offload.problem import GPU
from tierloom.units import GIB

if TYPE_CHECKING:
    from tierloom.linear_program import Programme, Solution
    from tierloom.offload.problem import Problem

TIMES = {"load", "move", "gpu", "prefill", "decode"}
WORTH = 1e-4
"""Least share of throughput that is worth a word."""

RESOURCES = {
    "decode: GPU link": "bandwidth of the GPU's link in",
    "prefill: GPU link in": "bandwidth of the GPU's link in",
    "prefill: GPU link out": "bandwidth of the GPU's link out",
    "decode: root complex": "bandwidth of the root complex",
    "decode: CPU waits": "lines that the cores keep in flight",
    "decode: step": "arithmetic of the CPU",
    "decode: step, CPU": "arithmetic of the CPU",
    "decode: GPU products": "speed of the GPU",
    "decode: GPU memory": "bandwidth of the GPU's memory",
    "prefill: GPU": "speed of the GPU",
    "prefill: GPU memory": "bandwidth of the GPU's memory",
    "prefill: staged stores": "threads of staged copies",
}


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What limits a plan.

    Attributes:
        per_gib: Tokens per second that one more GiB of a place brings, by place; only those that bring any.
        per_percent: Share of throughput that one per cent more of a resource brings, in per cent, by
            resource, the most valuable first.
        phase: ``prefill`` or ``decode``: which takes longer.
    """

    per_gib: dict[str, float]
    per_percent: dict[str, float]
    phase: str


def advise(plan: InferPlan) -> Advice | None:
    """What limits a tier-aware plan; none for a policy's placement, which has no optimum to move."""
    if plan.policy != TIER_AWARE:
        return None
    problem, placement = plan.problem, plan.placement
    batch = problem.batch
    made = lp_rows.programme(problem, placement.gpu_batch, Guess(placement.batch), batch)
    solution = made.solve()
    if solution is None:
        return None
    decode = problem.decode_steps * plan.steps.decode_s
    return Advice(
        per_gib=_capacities(problem, solution),
        per_percent=_speeds(problem, made, solution),
        phase="decode" if decode > plan.steps.prefill_s else "prefill",
    )


def _capacities(problem: Problem, solution: Solution) -> dict[str, float]:
    tokens_s = problem.generate / solution.value
    worth = {}
    for place in problem.places:
        margin = problem.runtime.gpu_margin if place == GPU else problem.runtime.host_margin
        seconds = -solution.duals[f"capacity of {place}"] * margin * solution.values["u"] * GIB
        worth[place] = tokens_s * seconds / solution.value
    return {place: gain for place, gain in worth.items() if gain > WORTH * tokens_s}


def _speeds(problem: Problem, made: Programme, solution: Solution) -> dict[str, float]:
    gains: dict[str, float] = {}
    for row, terms, right in made.upper:
        resource = _resource(problem, row)
        if resource is None:
            continue
        demand = sum(factor * solution.values[name] for name, factor in terms.items() if name not in TIMES) - right
        gains[resource] = gains.get(resource, 0.0) - solution.duals[row] * demand / solution.value
    ranked = sorted(gains.items(), key=lambda item: (-item[1], item[0]))
    return {resource: gain for resource, gain in ranked if gain > WORTH}


def _resource(problem: Problem, row: str) -> str | None:
    if row in RESOURCES:
        return RESOURCES[row]
    for tier in problem.host.tiers:
        if row.split(": ")[-1] in {f"loads from {tier.name}", f"CPU reads {tier.name}", f"all of {tier.name}"}:
            return f"bandwidth of {tier.name}"
    return None
