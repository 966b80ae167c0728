"""Whole tensors: the plan that can be applied.

The optimum of `rows` cuts tensors anywhere. A runtime moves whole tensors of a layer, and the KV cache of
one layer and GPU batch. Here the same programme is solved at the plan's block with whole numbers of
those; HiGHS' branch and bound stops within `GAP` of the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError
from tierloom.offload import audit, lp_rows
from tierloom.offload.lp_rows import Guess
from tierloom.offload.planner import TIER_AWARE, InferPlan, placed
from tierloom.offload.step_times import steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.linear_program import Programme
    from tierloom.offload.problem import Problem

GAP = 2e-3
"""Share of the optimum at which branch and bound stops."""

WELL = 2e-2
"""Loss against cut tensors above which the solver is asked again, without its presolve."""

NEARER = GAP / 10
"""Share of the time that bringing all bytes one place nearer is worth: it decides between equals only."""


@dataclass(frozen=True, kw_only=True)
class LayerPlan:
    """A plan of whole tensors.

    Attributes:
        plan: Placement and times.
        tensors: By part, whole tensors in each place; of the KV cache (``kv``), pieces of one layer and
            GPU batch.
        of: By part, tensors or pieces in all.
        loss: Throughput lost against the optimum that cuts tensors, a share.
    """

    plan: InferPlan
    tensors: Mapping[str, Mapping[str, int]]
    of: Mapping[str, int]
    loss: float


def whole_layers(cut: InferPlan) -> LayerPlan:
    """The best plan of whole tensors for the block of a plan; a policy's shares are only counted.

    Raises:
        PlacementError: No whole tensors fit where cut ones do.
    """
    if cut.policy != TIER_AWARE:
        return _counted(cut)
    problem, placement = cut.problem, cut.placement
    made = lp_rows.programme(problem, placement.gpu_batch, Guess(placement.batch), placement.batch)
    of = pieces(problem, placement.gpu_batches)
    for part in problem.model.parts:
        for place in problem.places:
            _count(
                made, f"n {part.name} {place}", lp_rows.w(part.name, place), part.bytes / placement.batch, of[part.name]
            )
    for place in problem.places:
        _count(made, f"n kv {place}", lp_rows.k(place), problem.kv_bytes, of["kv"])
    nearer = NEARER * cut.steps.total_s / placement.batch
    far = lp_rows.distance(problem, placement.batch)
    made.minimise(made.cost | {name: nearer * factor for name, factor in far.items()})
    found = _attempt(cut, made, of, presolve=True)
    if found is None or found.loss > WELL:
        for name, count in of.items():  # the solver's tolerance on bytes may lose one
            made.exactly(f"all pieces of {name}", {f"n {name} {place}": 1.0 for place in problem.places}, float(count))
        again = _attempt(cut, made, of, presolve=False)
        found = min((each for each in (found, again) if each), key=lambda each: each.loss, default=None)
    if found is None:
        message = "whole tensors do not fit where cut ones do\nhint: take a smaller batch"
        raise PlacementError(message)
    return found


def _attempt(cut: InferPlan, made: Programme, of: Mapping[str, int], *, presolve: bool) -> LayerPlan | None:
    """One solution, timed and counted; none where there is none, or the solver's tolerance loses or overfills."""
    problem, placement = cut.problem, cut.placement
    solution = made.solve_whole(GAP, presolve=presolve)
    if solution is None:
        return None
    tensors = {name: {place: round(solution.values[f"n {name} {place}"]) for place in problem.places} for name in of}
    found = replace(
        placed(problem, placement.gpu_batch, placement.batch, solution),
        weights={
            part.name: {place: n * part.bytes / of[part.name] for place, n in tensors[part.name].items()}
            for part in problem.model.parts
        },
        kv={place: n * problem.kv_bytes * placement.batch / of["kv"] for place, n in tensors["kv"].items()},
    )
    timed = steps(problem, found)
    try:
        held = audit.check(problem, found)
    except PlacementError:
        return None
    plan = replace(cut, placement=found, steps=timed, held=held)
    return LayerPlan(plan=plan, tensors=tensors, of=of, loss=max(0.0, 1.0 - timed.tokens_s / cut.tokens_s))


def pieces(problem: Problem, gpu_batches: int) -> dict[str, int]:
    """Tensors of each part, and pieces of the KV cache."""
    of = {part.name: part.layers * part.tensors for part in problem.model.parts}
    return of | {"kv": problem.model.layers * gpu_batches}


def _counted(cut: InferPlan) -> LayerPlan:
    """Whole pieces nearest to the shares that a policy gives: the kernel cuts tensors at pages."""
    of = pieces(cut.problem, cut.placement.gpu_batches)
    placed_ = {**cut.placement.weights, "kv": cut.placement.kv}
    tensors = {name: _largest_remainders(placed_[name], count) for name, count in of.items()}
    return LayerPlan(plan=cut, tensors=tensors, of=of, loss=0.0)


def _largest_remainders(parts: Mapping[str, float], count: int) -> dict[str, int]:
    whole = sum(parts.values())
    exact = {place: amount / whole * count for place, amount in parts.items()}
    given = {place: int(amount) for place, amount in exact.items()}
    for place in sorted(exact, key=lambda each: given[each] - exact[each])[: count - sum(given.values())]:
        given[place] += 1
    return given


def _count(made: Programme, name: str, variable: str, size: float, of: int) -> None:
    """Ties a variable of bytes to a whole number of equal pieces."""
    made.variable(name, high=float(of), whole=True)
    made.exactly(f"whole {name}", {variable: 1.0, name: -size / of}, 0.0)
