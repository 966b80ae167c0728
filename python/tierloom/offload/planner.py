"""The inference planner: the best batch and placement for one question.

For each size of GPU batch one linear programme gives the optimum over continuous batch and placement
(`rows`); its value is convex in 1/b, so the best whole batch is one of its two neighbours, and a
programme with fixed batch each places the data for them. Where the rows depend on the batch (experts
that a step meets, products on the CPU, a policy that fills one tier after another), batches are tried
on a grid instead, and the guess is repeated until it holds.

Every plan is timed again by `steps` and counted again by `audit` before it is handed out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError
from tierloom.offload import audit, lp_rows, shortfall
from tierloom.offload.kernel_policies import Shares, shares
from tierloom.offload.lp_rows import Guess
from tierloom.offload.placement import Placement
from tierloom.offload.problem import GPU, GPU_BATCHES, Problem, check
from tierloom.offload.step_times import Steps, steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tierloom.linear_program import Programme, Solution
    from tierloom.offload.audit import Held

REPEATS = 6
"""Most times that a guess is repeated."""

SETTLED = 1e-4
"""Change of the shares at which a guess holds."""

EQUALLY_FAST = 5e-7
"""Relative difference at which two placements are equally fast, and the nearer one is taken."""

TIMED_ALIKE = 1e-4
"""Relative difference between programme and clock that floating point explains."""


@dataclass(frozen=True, kw_only=True)
class InferPlan:
    """The planner's answer to one question.

    Attributes:
        problem: The question.
        policy: ``tier-aware``, or the policy that was forced.
        placement: Where everything is.
        steps: How long it takes.
        held: What each place holds.
        bound_tokens_s: Throughput of the optimum over continuous batches: no plan of this GPU batch can
            be faster; none where the batch was given or tried on a grid.
        programmes: Linear programmes that were solved.
    """

    problem: Problem
    policy: str
    placement: Placement
    steps: Steps
    held: list[Held]
    bound_tokens_s: float | None
    programmes: int

    @property
    def tokens_s(self) -> float:
        """Tokens generated per second."""
        return self.steps.tokens_s


@dataclass
class Count:
    """How many programmes were solved."""

    solved: int = 0

    def solve(self, made: Programme) -> Solution | None:
        """Solves one and counts it."""
        self.solved += 1
        return made.solve()


TIER_AWARE = "tier-aware"


def plan(problem: Problem, policy: str = TIER_AWARE) -> InferPlan:
    """The fastest plan.

    Args:
        problem: What is asked.
        policy: ``tier-aware`` for the optimum, or a policy of `interleaving` that host memory is left to.

    Raises:
        RequestError: The question has no meaning, or there is no such policy.
        PlacementError: Nothing fits; the message says what is missing and the nearest that fits.
    """
    found = fastest(problem, policy)
    if found is None:
        raise PlacementError(shortfall.explain(problem))
    return found


def fastest(problem: Problem, policy: str = TIER_AWARE) -> InferPlan | None:
    """The fastest plan; none where nothing fits.

    Raises:
        RequestError: The question has no meaning, or there is no such policy.
    """
    check(problem)
    counted = Count()
    best: InferPlan | None = None
    for gpu_batch in _gpu_batches(problem):
        for found in _plans_of(problem, gpu_batch, policy, counted):
            if best is None or found.tokens_s > best.tokens_s * (1.0 + 1e-9):
                best = found
    if best is None:
        return None
    if problem.batch is None and best.bound_tokens_s is None:
        best = _climbed(best, counted)
    audit.check(problem, best.placement)
    return replace(best, programmes=counted.solved)


def at_least_as(plan: InferPlan, rivals: Iterable[InferPlan]) -> InferPlan:
    """The plan, or the optimum for the block of a rival that is faster.

    Where batches are tried on a grid, a rival may have found a better block; the best placement for that
    block is never slower than the rival's own.
    """
    best = plan
    for rival in rivals:
        if rival.tokens_s > best.tokens_s * (1.0 + 1e-6) and plan.policy == TIER_AWARE:
            found = best_of_block(plan.problem, rival)
            best = best if found is None else max(best, found, key=lambda each: each.tokens_s)
    return best


def best_of_block(problem: Problem, like: InferPlan) -> InferPlan | None:
    """The optimum over all placements of another plan's block; none where it does not fit."""
    block = like.placement
    return next(_fixed(problem, block.gpu_batch, block.batch, TIER_AWARE, None, Count()), None)


def _climbed(best: InferPlan, counted: Count) -> InferPlan:
    """The best of the grid, and of the batches around it in ever smaller steps."""
    problem, gpu_batch = best.problem, 1 if best.problem.runtime.continuous else best.placement.gpu_batch
    stride = best.placement.batch // gpu_batch // 2
    while stride >= 1:
        here = best.placement.batch
        sizes = [size for size in (here - stride * gpu_batch, here + stride * gpu_batch) if size >= gpu_batch]
        blocks = [(size if problem.runtime.continuous else gpu_batch, size) for size in sizes]
        found = [p for each, size in blocks for p in _fixed(problem, each, size, best.policy, None, counted)]
        best = max([best, *found], key=lambda each: each.tokens_s)
        stride = stride // 2 if best.placement.batch == here else stride
    return best


def _gpu_batches(problem: Problem) -> list[int]:
    """Sizes of GPU batch to try: of a given batch, its divisors; of one that every step takes whole, itself."""
    if problem.runtime.continuous:
        return [problem.batch or 1]
    if problem.batch is None:
        return list(GPU_BATCHES)
    most = GPU_BATCHES[-1]
    return [size for size in range(1, min(problem.batch, most) + 1) if problem.batch % size == 0]


def _plans_of(problem: Problem, gpu_batch: int, policy: str, counted: Count) -> Iterator[InferPlan]:
    if problem.batch is not None:
        yield from _fixed(problem, gpu_batch, problem.batch, policy, None, counted)
        return
    if policy == TIER_AWARE and not _depends_on_batch(problem):
        free = counted.solve(lp_rows.programme(problem, gpu_batch, Guess(1.0)))
        if free is None:
            return
        bound = problem.generate / free.value
        for batch in neighbours(1.0 / free.values["u"], gpu_batch):
            yield from _fixed(problem, gpu_batch, batch, policy, bound, counted)
        return
    for batch in _grid(problem, gpu_batch, counted):
        together = batch if problem.runtime.continuous else gpu_batch
        yield from _fixed(problem, together, batch, policy, None, counted)


def _depends_on_batch(problem: Problem) -> bool:
    return problem.model.experts > 0 or problem.runtime.cpu_weights or problem.runtime.continuous


def neighbours(batch: float, gpu_batch: int) -> list[int]:
    """The multiples of a GPU batch on both sides of a batch that is not whole."""
    below = math.floor(batch / gpu_batch + 1e-6) * gpu_batch
    return [each for each in (below, below + gpu_batch) if each >= gpu_batch]


def _grid(problem: Problem, gpu_batch: int, counted: Count) -> list[int]:
    """Batches to try: powers of two GPU batches, and the largest that fits."""
    made = lp_rows.programme(problem, gpu_batch, Guess(1.0))
    made.minimise({"u": 1.0})
    largest = counted.solve(made)
    if largest is None:
        return []
    most = neighbours(1.0 / largest.values["u"], gpu_batch)[0]
    steps_of = [gpu_batch * 2**power for power in range(24) if gpu_batch * 2**power < most]
    return [*steps_of, *(size for size in (most - gpu_batch, most) if size > 0 and size not in steps_of)]


def _fixed(
    problem: Problem, gpu_batch: int, batch: int, policy: str, bound: float | None, counted: Count
) -> Iterator[InferPlan]:
    """The best placement for a given block, if there is one."""
    solution = _settled(problem, gpu_batch, batch, policy, counted)
    if solution is None:
        return
    placement = placed(problem, gpu_batch, batch, solution)
    timed = steps(problem, placement)
    if policy == TIER_AWARE:
        _agree(problem, solution, timed, batch)
    held = audit.count(problem, placement)
    if _overfilled(held):
        return
    yield InferPlan(
        problem=problem,
        policy=policy,
        placement=placement,
        steps=timed,
        held=held,
        bound_tokens_s=bound,
        programmes=0,
    )


def _settled(problem: Problem, gpu_batch: int, batch: int, policy: str, counted: Count) -> Solution | None:
    """Solves with a policy's shares until they are those of what it left on the host."""
    if policy == TIER_AWARE:
        return _nearest(problem, gpu_batch, batch, counted)
    host_weights, host_kv = problem.model.weight_bytes, batch * (problem.kv_bytes + problem.hidden_bytes)
    solution = None
    before: Shares | None = None
    for _ in range(REPEATS):
        forced = shares(policy, rooms(problem, gpu_batch), host_weights, host_kv)
        if before is not None and _near(before, forced):
            return solution
        solution = counted.solve(lp_rows.programme(problem, gpu_batch, Guess(batch, forced), batch))
        if solution is None:
            return None
        found = placed(problem, gpu_batch, batch, solution)
        host_weights = sum(amount for place, amount in found.weights_by_place.items() if place != GPU)
        host_kv = sum(found.kv[place] + found.hidden[place] for place in problem.places if place != GPU)
        before = forced
    return solution


def _overfilled(held: Iterable[Held]) -> bool:
    return any(place.total > place.allowed * (1.0 + audit.ROUNDING) for place in held)


def _nearest(problem: Problem, gpu_batch: int, batch: int, counted: Count) -> Solution | None:
    """Of all optima the one whose bytes are nearest: what need not be far is not."""
    made = lp_rows.programme(problem, gpu_batch, Guess(batch), batch)
    fastest_ = counted.solve(made)
    if fastest_ is None:
        return None
    made.at_most("as fast", made.cost, fastest_.value * (1.0 + EQUALLY_FAST))
    made.minimise(lp_rows.distance(problem, batch))
    found = counted.solve(made)
    if found is None or _overfilled(audit.count(problem, placed(problem, gpu_batch, batch, found))):
        return fastest_
    return replace(found, value=fastest_.value)


def rooms(problem: Problem, gpu_batch: int) -> dict[str, float]:
    """Bytes that a plan may put into each memory of the host, nearest first."""
    nearest = problem.host.memories[0]
    return {
        tier.name: problem.runtime.host_margin * tier.capacity_bytes
        - (problem.staging_bytes(gpu_batch) if tier is nearest else 0.0)
        for tier in problem.host.memories
    }


def _near(before: Shares, now: Shares) -> bool:
    return all(
        abs(was[name] - is_[name]) < SETTLED
        for was, is_ in ((before.weights, now.weights), (before.kv, now.kv))
        for name in was
    )


def placed(problem: Problem, gpu_batch: int, batch: int, solution: Solution) -> Placement:
    """The placement that a solution stands for, free of the solver's rounding: sums are exact."""
    values, places = solution.values, problem.places
    weights = {
        part.name: exact({place: values[lp_rows.w(part.name, place)] for place in places}, part.bytes)
        for part in problem.model.parts
    }
    return Placement(
        batch=batch,
        gpu_batch=gpu_batch,
        weights=weights,
        kv=exact({place: values[lp_rows.k(place)] for place in places}, batch * problem.kv_bytes),
        hidden=exact({place: values[lp_rows.a(place)] for place in places}, batch * problem.hidden_bytes),
    )


def exact(parts: dict[str, float], whole: float) -> dict[str, float]:
    """Amounts scaled so that they come to `whole`; what rounding left below zero is zero."""
    kept = {place: max(0.0, amount) for place, amount in parts.items()}
    found = sum(kept.values())
    return {place: amount * whole / found for place, amount in kept.items()}


def _agree(problem: Problem, solution: Solution, timed: Steps, batch: int) -> None:
    said = batch * solution.value
    if not math.isclose(said, timed.total_s, rel_tol=TIMED_ALIKE):
        message = (
            f"programme and clock disagree on {problem.model.name}: {said:.6g} s and {timed.total_s:.6g} s\n"
            "hint: report this: it is a defect"
        )
        raise PlacementError(message)
