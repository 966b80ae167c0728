"""What a tier-blind plan costs: FlexGen's choice, spread over the host's tiers as the kernel would, on our clock.

The published search (`flexgen`) sees one host memory as large as all tiers together and chooses block and
shares; the kernel interleaves what it leaves to the host. Where that does not fit in truth (the published
equations count some models too small), batches are taken away one by one, as a person would.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError
from tierloom.offload import audit
from tierloom.offload.flexgen import ALL_WEIGHTS_ON_CPU, Blind, BlindPolicy, shape_of
from tierloom.offload.kernel_policies import shares
from tierloom.offload.placement import Placement
from tierloom.offload.planner import InferPlan, rooms
from tierloom.offload.problem import GPU, GPU_BATCHES
from tierloom.offload.step_times import steps
from tierloom.units import GIB

if TYPE_CHECKING:
    from tierloom.offload.problem import Problem

NAME = "tier-blind"
NAMES = (NAME, "flexgen")
"""What `compare` calls it."""


def blind_plan(problem: Problem) -> InferPlan:
    """The published planner's choice under uniform interleave.

    Raises:
        PlacementError: The published search finds nothing, or nothing that fits.
    """
    planner = planner_for(problem)
    policy = _chosen(problem, planner)
    while policy is not None:
        placement = spread(problem, policy)
        held = audit.count(problem, placement)
        if all(place.total <= place.allowed * (1.0 + audit.ROUNDING) for place in held):
            return InferPlan(
                problem=problem,
                policy=NAME,
                placement=placement,
                steps=steps(problem, placement),
                held=held,
                bound_tokens_s=None,
                programmes=planner.solved,
            )
        fewer = policy.gpu_batches - 1
        policy = planner.policy(policy.gpu_batch, fewer) if fewer and problem.batch is None else None
    message = f"the tier-blind search finds nothing that fits\nhint: its GPU work alone may exceed {problem.gpu.name}"
    raise PlacementError(message)


def planner_for(problem: Problem) -> Blind:
    """The published planner for a problem; host memory is one number, block devices are its disk.

    Weights and hidden states stay on the CPU, as it is run for models much larger than the GPU, unless
    the model fits the GPU's margin.
    """
    disk = sum(tier.capacity_bytes for tier in problem.host.tiers if tier.block)
    planner = Blind(
        shape=shape_of(problem),
        gpu_bytes=problem.gpu.memory_bytes,
        cpu_bytes=sum(tier.capacity_bytes for tier in problem.host.memories),
        disk_bytes=disk,
    )
    small = problem.model.weight_bytes < planner.constants.alpha * problem.gpu.memory_bytes
    return planner if small or disk else replace(planner, forced=ALL_WEIGHTS_ON_CPU)


def _chosen(problem: Problem, planner: Blind) -> BlindPolicy | None:
    if problem.batch is None:
        return planner.quick_search()
    sizes = [size for size in GPU_BATCHES if problem.batch % size == 0]
    found = [planner.policy(size, problem.batch // size) for size in sizes]
    return max((each for each in found if each), key=lambda each: each.tokens_s, default=None)


def spread(problem: Problem, policy: BlindPolicy) -> Placement:
    """FlexGen's shares as a placement: what is left to the host goes where interleaving puts it."""
    batch = policy.batch
    sizes = {part.name: part.bytes for part in problem.model.parts}
    kv, hidden = batch * problem.kv_bytes, batch * problem.hidden_bytes
    host_weights = (1.0 - policy.weights[0]) * sum(sizes.values())
    host_kv = (1.0 - policy.cache[0]) * kv + (1.0 - policy.hidden[0]) * hidden
    forced = shares("interleave", rooms(problem, policy.gpu_batch), host_weights, host_kv)

    def over(size: float, on_gpu: float, tiers: dict[str, float]) -> dict[str, float]:
        rest = size * (1.0 - on_gpu)
        return {GPU: size * on_gpu, **{t.name: rest * tiers.get(t.name, 0.0) for t in problem.host.tiers}}

    return Placement(
        batch=batch,
        gpu_batch=policy.gpu_batch,
        weights={name: over(size, max(policy.weights[0], 0.0), dict(forced.weights)) for name, size in sizes.items()},
        kv=over(kv, max(policy.cache[0], 0.0), dict(forced.kv)),
        hidden=over(hidden, max(policy.hidden[0], 0.0), dict(forced.kv)),
    )


def footprint_gib(problem: Problem, batch: int) -> float:
    """Weights, KV cache and hidden states of a block at full length, GiB: how the 2024 study counts it."""
    model = problem.model
    tokens = problem.prompt + problem.generate
    each = problem.kv_bytes + tokens * model.hidden * model.element_bytes
    return (model.weight_bytes + batch * each) / GIB
