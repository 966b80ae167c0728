"""What to say when nothing fits: how much is missing, and the nearest question that has an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.offload import lp_rows
from tierloom.offload.lp_rows import Guess
from tierloom.offload.problem import GPU_BATCHES
from tierloom.units import bytes_text, count_text

if TYPE_CHECKING:
    from tierloom.offload.problem import Problem

BITS = (8.0, 4.5)
"""Bits a weight that are offered, with the scales of common formats."""


def explain(problem: Problem) -> str:
    """Why nothing fits, and what would: for the message of an error."""
    return f"{_what(problem)}\nhint: {_nearest(problem)}"


def fits(problem: Problem) -> bool:
    """Whether any GPU batch and placement fits; at the given batch, if one is given."""
    sizes = [size for size in GPU_BATCHES if problem.batch is None or size <= problem.batch]
    return any(lp_rows.programme(problem, size, Guess(1.0), problem.batch).solve() is not None for size in sizes[:1])


def _what(problem: Problem) -> str:
    model, runtime, host = problem.model, problem.runtime, problem.host
    work = problem.gpu_work_bytes(1) + 2.0 * model.layer_bytes
    room = runtime.gpu_margin * problem.gpu.memory_bytes
    if work > room:
        return (
            f"the GPU's work on one sequence of {problem.prompt} tokens takes {bytes_text(work)} with the buffers "
            f"for weights; {problem.gpu.name} may fill {bytes_text(room)}: {bytes_text(work - room)} are missing"
        )
    batch = problem.batch or 1
    needed = model.weight_bytes + batch * (problem.kv_bytes + problem.hidden_bytes) + work
    needed += problem.staging_bytes(1)
    capacity = room + runtime.host_margin * host.capacity_bytes
    if runtime.kv_on_gpu and batch * problem.kv_bytes + work > room:
        return (
            f"the KV cache of {count_text(batch, 'sequence')} of {problem.prompt} + {problem.generate} tokens takes "
            f"{bytes_text(batch * problem.kv_bytes)} of GPU memory beside {bytes_text(work)} of work; "
            f"{problem.gpu.name} may fill {bytes_text(room)}"
        )
    if needed > capacity:
        return (
            f"{model.name} with {count_text(batch, 'sequence')} of {problem.prompt} + {problem.generate} tokens takes "
            f"{bytes_text(needed)}; {problem.gpu.name} and {host.name} may fill {bytes_text(capacity)}: "
            f"{bytes_text(needed - capacity)} are missing"
        )
    memories = sum(tier.capacity_bytes for tier in host.memories) * runtime.host_margin
    short = batch * problem.kv_bytes - memories
    return (
        f"the KV cache of {count_text(batch, 'sequence')} has to be where the CPU can attend to it: "
        f"{bytes_text(max(short, 0.0))} of memory are missing"
    )


def _nearest(problem: Problem) -> str:
    if problem.batch is not None and fits(replace(problem, batch=None)):
        return f"the largest batch that fits is {largest_batch(problem)}"
    one = replace(problem, batch=1)
    tokens = _longest(one)
    if tokens:
        return f"the longest prompt that fits with one sequence is {tokens} tokens"
    for bits in BITS:
        smaller = replace(one, model=one.model.with_weight_bits(bits))
        if fits(smaller):
            return f"weights of {bits:g} bits fit: --weight-bits {bits:g}"
        shorter = _longest(smaller)
        if shorter:
            return f"weights of {bits:g} bits fit with prompts of at most {shorter} tokens: --weight-bits {bits:g}"
    return "take a machine with more memory, or a smaller model"


def largest_batch(problem: Problem) -> int:
    """The largest block that fits, in GPU batches of one sequence; 0 when none does."""
    made = lp_rows.programme(replace(problem, batch=None), 1, Guess(1.0))
    made.minimise({"u": 1.0})
    found = made.solve()
    return 0 if found is None else int(1.0 / found.values["u"] + 1e-6)


def _longest(problem: Problem) -> int:
    """The longest prompt with which the question has an answer, to one part in 64; 0 when none has."""
    low, high = 0, problem.prompt
    while high - low > max(1, high // 64):
        middle = (low + high) // 2
        if middle > 0 and fits(replace(problem, prompt=middle)):
            low = middle
        else:
            high = middle
    return low
