"""Answers as documents: what ``--json`` prints, and what the faces read.

The keys are described in `documents`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.notebook_tables import Charted, Tabular
from tierloom.offload.ceilings import Ceiling, ceiling, ties
from tierloom.offload.columns import PLACES, place_rows
from tierloom.offload.planner import TIER_AWARE
from tierloom.offload.sentences import opening
from tierloom.offload.step_times import steps
from tierloom.offload.user_figures import PREFILLED_TOGETHER, TAKEN_IN_TURN
from tierloom.units import count_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.columns import Column, Row
    from tierloom.offload.advice import Advice
    from tierloom.offload.documents import AdviceDoc, GoalDoc, InferDoc, PlaceDoc, RivalDoc, TieDoc, UsersDoc, WholeDoc
    from tierloom.offload.goals import Goal
    from tierloom.offload.layers import LayerPlan
    from tierloom.offload.placement import Placement
    from tierloom.offload.planner import InferPlan
    from tierloom.offload.problem import Problem
    from tierloom.offload.runtime_choice import Choice
    from tierloom.offload.user_figures import UserFigures
    from tierloom.offload.user_search import Served

UNSURE = 0.2
"""Share by which constants that nobody measured on this machine may be off, for the range."""

ASSUMPTIONS = (
    "loads from several tiers run at the same time: pages interleaved, or more than one layer prefetched",
    "attention looks at s + n/2 tokens in the mean decode step, where answers vary at s + E[n^2]/2E[n]",
    "nothing else uses the memories' bandwidth or the GPU's link",
    "the range moves the link, the GPU's and the CPU's rates by 20 % each way; the machine's own figures stay",
)


@dataclass(frozen=True, kw_only=True, repr=False)
class InferAnswer(Charted, Tabular):
    """The chosen plan, what other policies would bring, and what would make it faster.

    A row a place: what it holds.

    Attributes:
        plan: The optimum, which cuts tensors.
        whole: The plan of whole tensors, to apply.
        rivals: By policy, its plan, or why it has none.
        advice: What limits the plan.
        goal: What was asked for.
        choice: The runtime, and why it is that one.
        figures: What each user gets of the plan.
        table: Plans for 1, 4, 16, ... users; empty where a goal was given.
        knee: Index of the plan in the table.
    """

    plan: InferPlan
    whole: LayerPlan
    rivals: Mapping[str, InferPlan | str]
    advice: Advice | None
    goal: Goal
    choice: Choice
    figures: UserFigures
    table: Sequence[Served] = ()
    knee: int = 0

    @property
    def data(self) -> InferDoc:
        """The answer as a document, as the verb prints it in JSON."""
        return document(self)

    @property
    def columns(self) -> Sequence[Column]:
        """Of a place."""
        return PLACES

    def told(self) -> list[Row]:
        """A row a place, the GPU first: bytes of weights, KV cache and hidden states, and what may be filled."""
        return place_rows(self.data["places"])

    def __repr__(self) -> str:
        problem, batch = self.plan.problem, self.plan.placement.batch
        where = f"{problem.model.name} on {problem.gpu.name} and {problem.host.name}"
        each = f"{self.figures.tokens_s:.3g} each"
        return f"<InferAnswer for {where}: {self.plan.tokens_s:.3g} tokens/s, {count_text(batch, 'user')}, {each}>"


def document(answer: InferAnswer) -> InferDoc:
    """The document of one answer."""
    plan, problem = answer.plan, answer.plan.problem
    low, high = spread(problem, plan.placement)
    return {
        "answer": opening(answer.goal.kind, answer.figures, [row.figures for row in answer.table]),
        "goal": _goal(answer.goal),
        "users": _users(answer.figures, plan),
        "table": [
            {**_users(row.figures, row.plan), "knee": index == answer.knee} for index, row in enumerate(answer.table)
        ],
        "why_runtime": answer.choice.sentence,
        "tool": answer.choice.tool,
        "model": problem.model.name,
        "parameters": problem.model.parameters,
        "weight_bytes": problem.model.weight_bytes,
        "kv_bytes_per_token": problem.model.kv_bytes_per_token,
        "gpu": problem.gpu.name,
        "machine": problem.host.name,
        "socket": problem.host.socket,
        "tiers": [tier.name for tier in problem.host.tiers],
        "runtime": problem.runtime.name,
        "prompt": problem.prompt,
        "generate": problem.generate,
        "longest_request": problem.variation.longest or problem.prompt + problem.generate,
        "shared_prefix": problem.shared,
        "tokens_a_step": problem.speculation.expected,
        "policy": plan.policy,
        "batch": plan.placement.batch,
        "gpu_batch": plan.placement.gpu_batch,
        "gpu_batches": plan.placement.gpu_batches,
        "tokens_s": plan.tokens_s,
        "low_tokens_s": low,
        "high_tokens_s": high,
        "bound_tokens_s": plan.bound_tokens_s,
        "prefill_s": plan.steps.prefill_s,
        "decode_step_s": plan.steps.decode_s,
        "total_s": plan.steps.total_s,
        "prefill_bound": plan.steps.prefill_bound,
        "decode_bound": plan.steps.decode_bound,
        "prefill_pieces_s": dict(plan.steps.prefill),
        "decode_pieces_s": dict(plan.steps.decode),
        "places": places(plan),
        "weights_bytes": {part: dict(placed) for part, placed in plan.placement.weights.items()},
        "kv_bytes": dict(plan.placement.kv),
        "whole_tensors": _whole(answer.whole),
        "policies": [_rival(name, rival, plan) for name, rival in answer.rivals.items()],
        "advice": _advice(answer.advice),
        "programmes": plan.programmes,
        "assumptions": [
            *problem.model.guesses,
            TAKEN_IN_TURN if problem.runtime.continuous else PREFILLED_TOGETHER,
            *ASSUMPTIONS,
        ],
    }


def _goal(goal: Goal) -> GoalDoc:
    limits = goal.limits
    return {"kind": goal.kind, "users": goal.users, "ttft_s": limits.ttft_s, "tokens_s_user": limits.tokens_s}


def _users(figures: UserFigures, plan: InferPlan) -> UsersDoc:
    return {
        "users": figures.users,
        "tokens_s_user": figures.tokens_s,
        "quiet_tokens_s_user": figures.quiet_tokens_s,
        "ttft_s": figures.ttft_s,
        "ttft_alone_s": figures.ttft_alone_s,
        "ttft_last_s": figures.ttft_last_s,
        "tokens_s": figures.total_tokens_s,
        "weights_bytes": plan.placement.weights_by_place,
        "kv_bytes": dict(plan.placement.kv),
    }


def places(plan: InferPlan) -> list[PlaceDoc]:
    """What every place holds."""
    return [
        {
            "place": held.place,
            "weights_bytes": held.weights,
            "kv_bytes": held.kv,
            "hidden_bytes": held.hidden,
            "buffer_bytes": held.buffers,
            "allowed_bytes": held.allowed,
            "capacity_bytes": held.capacity,
        }
        for held in plan.held
    ]


def spread(problem: Problem, placement: Placement) -> tuple[float, float]:
    """Throughput of a placement with all unmeasured rates a fifth lower, and a fifth higher."""
    low, high = (steps(_scaled(problem, factor), placement).tokens_s for factor in (1.0 - UNSURE, 1.0 + UNSURE))
    return low, high


def _scaled(problem: Problem, factor: float) -> Problem:
    gpu, runtime = problem.gpu, problem.runtime
    gpu = replace(
        gpu,
        in_gb_s=gpu.in_gb_s * factor,
        out_gb_s=gpu.out_gb_s * factor,
        prefill_efficiency=gpu.prefill_efficiency * factor,
        decode_efficiency=gpu.decode_efficiency * factor,
        memory_efficiency=gpu.memory_efficiency * factor,
    )
    runtime = replace(
        runtime,
        attention_flop_s=runtime.attention_flop_s * factor,
        product_flop_s=runtime.product_flop_s * factor,
        amplification=runtime.amplification / factor,
    )
    return replace(problem, gpu=gpu, runtime=runtime)


def _whole(whole: LayerPlan) -> WholeDoc:
    return {
        "tensors": {part: dict(placed) for part, placed in whole.tensors.items()},
        "of": dict(whole.of),
        "tokens_s": whole.plan.tokens_s,
        "loss": whole.loss,
    }


def _rival(name: str, rival: InferPlan | str, plan: InferPlan) -> RivalDoc:
    if isinstance(rival, str):
        return {"policy": name, "problem": rival}
    told: RivalDoc = {
        "policy": name,
        "tokens_s": rival.tokens_s,
        "batch": rival.placement.batch,
        "gpu_batch": rival.placement.gpu_batch,
        "against": plan.tokens_s / rival.tokens_s - 1.0,
        "places": places(rival),
    }
    if plan.policy == TIER_AWARE and ties(plan, rival):
        told["tie"] = _tie(ceiling(plan, rival))
    return told


def _tie(found: Ceiling) -> TieDoc:
    return {
        "ceiling_tokens_s": found.tokens_s,
        "room": found.room,
        "bound": found.bound,
        "best_tokens_s": found.block_tokens_s,
    }


def _advice(advice: Advice | None) -> AdviceDoc | None:
    if advice is None:
        return None
    return {
        "phase": advice.phase,
        "tokens_s_per_gib": advice.per_gib,
        "share_per_share": advice.per_percent,
    }
