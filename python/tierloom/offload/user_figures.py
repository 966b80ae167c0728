"""What one user gets of a plan: tokens per second, and the time to the first token.

Where a block is served as a whole (FlexGen), all its prompts are prefilled before any answer begins: everybody's
first token comes when that is done, and a user's tokens come at the pace of the decode steps.

Where prompts are taken as they come (vLLM, llama.cpp), a prompt is prefilled before the next decode step, first
come first served. With b users in flight, b prompts are prefilled in the time of one answer. Of the others'
prompts each interrupts the answer once, so a user's n - 1 tokens after the first take ``(b - 1) p + steps d``
with p one prompt's prefill and d a decode step. A prompt that comes at a random moment waits for the rest of the
step or of the prompt that is under way, and for those before it. That is a queue with one server, M/G/1 with
priority over decode (Kleinrock 1976, volume 2, section 3.6): ``d/2 + (b - 1) E[p^2] / (2 steps d)``,
and never more than all the others' prompts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.offload.step_times import steps

if TYPE_CHECKING:
    from tierloom.offload.placement import Placement
    from tierloom.offload.planner import InferPlan
    from tierloom.offload.problem import Problem

TAKEN_IN_TURN = (
    "prompts come at random moments, as often as answers end, and each is prefilled before the next decode step: "
    "the first token waits for its own prefill, half a decode step, and the prompts before it"
)
PREFILLED_TOGETHER = "the prompts of all users are prefilled together before any answer begins"


@dataclass(frozen=True, kw_only=True)
class UserFigures:
    """What one of the users in flight gets.

    Attributes:
        users: Users in flight.
        tokens_s: Tokens per second of one user's answer, others' prompts in between.
        quiet_tokens_s: The same while no prompt is prefilled.
        ttft_alone_s: Time to the first token where nobody else asks.
        ttft_s: Time to the first token behind the others, on average.
        ttft_last_s: Time to the first token of the last, where all ask at once.
        total_tokens_s: Tokens per second of all users together.
    """

    users: int
    tokens_s: float
    quiet_tokens_s: float
    ttft_alone_s: float
    ttft_s: float
    ttft_last_s: float
    total_tokens_s: float


def figures(plan: InferPlan) -> UserFigures:
    """The figures of one user under a plan."""
    problem, timed, users = plan.problem, plan.steps, plan.placement.batch
    alone = prefill_alone_s(plan)
    quiet = problem.speculation.expected / timed.decode_s
    interrupted, ttft = 0.0, timed.prefill_s
    if problem.runtime.continuous:
        interrupted = (users - 1) * timed.prefill_s / users
        ttft = _in_turn_s(problem, users, timed.prefill_s / users, timed.decode_s)
    answer_s = interrupted + problem.decode_steps * timed.decode_s
    return UserFigures(
        users=users,
        tokens_s=(problem.generate - 1) / answer_s if problem.generate > 1 else quiet,
        quiet_tokens_s=quiet,
        ttft_alone_s=alone,
        ttft_s=max(ttft, alone),
        ttft_last_s=max(timed.prefill_s, alone),
        total_tokens_s=plan.tokens_s,
    )


def prefill_alone_s(plan: InferPlan) -> float:
    """Prefill of one prompt with all else where the plan puts it."""
    return steps(plan.problem, _of_one(plan)).prefill_s


def _of_one(plan: InferPlan) -> Placement:
    placed, batch = plan.placement, plan.placement.batch
    kv = {place: amount / batch for place, amount in placed.kv.items()}
    hidden = {place: amount / batch for place, amount in placed.hidden.items()}
    return replace(placed, batch=1, gpu_batch=1, kv=kv, hidden=hidden)


def _in_turn_s(problem: Problem, users: int, prefill_s: float, decode_s: float) -> float:
    """Own prefill, and the wait behind the prompts of the other users."""
    others = (users - 1) * prefill_s
    decoding = problem.decode_steps * decode_s
    step = decode_s / 2.0 if users > 1 else 0.0
    queue = others * prefill_s * problem.variation.prompt_squares / (2.0 * decoding) if decoding > 0.0 else others
    return prefill_s + step + min(queue, others)
