"""Our own plan file: ``tierloom run`` binds each tensor's pages by the size of its allocation.

A runtime allocates tensors of a few sizes; rules select by size, the largest first, and give each class
the page weights of its shares. Classes of nearly one size cannot be told apart and share a rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.offload.answers import spread
from tierloom.offload.exporters.common import page_weights
from tierloom.offload.problem import GPU
from tierloom.toml_values import toml_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.offload.answers import InferAnswer

ALIKE = 0.02
"""Share by which two sizes may differ and still be one class."""

SLACK = 0.01
"""Share by which a tensor may be smaller than its class says: norms and biases are counted with the matrices."""


def tierloom_plan(answer: InferAnswer) -> str:
    """A plan file of the format that :class:`tierloom.Plan` reads."""
    plan, problem = answer.whole.plan, answer.plan.problem
    bytes_ = [int(_held(answer, node)) for node in problem.host.nodes]
    slow, quick = spread(problem, plan.placement)
    tokens = plan.placement.batch * problem.generate
    predicted = {"time_s": plan.steps.total_s, "low_s": tokens / quick, "high_s": tokens / slow}
    lines = [
        'kind = "plan"',
        "version = 1",
        f"machine = {toml_value(problem.host.name)}",
        f"profile = {toml_value(problem.model.name)}",
        f"policy = {toml_value(answer.plan.policy)}",
        f"nodes = {toml_value(list(problem.host.nodes))}",
        'default = "first_touch"',
        "",
        "[predicted]",
        *(f"{key} = {value!r}" for key, value in predicted.items()),
        f"threads = {problem.host.cores}",
        f"bytes = {toml_value(bytes_)}",
    ]
    for memory in problem.host.planned:
        lines += ["", "[[memories]]", *(f"{key} = {toml_value(value)}" for key, value in memory.items())]
    for name, size, placed in _classes(answer):
        lines += ["", "[[rules]]", f"object = {toml_value(name)}", f"size_bytes = {size}"]
        lines += [f"select = {{ size_at_least = {max(1, int(size * (1.0 - SLACK)))} }}", f"place = {_place(placed)}"]
    return "\n".join(lines) + "\n"


def _held(answer: InferAnswer, node: str) -> float:
    return next((held.total for held in answer.whole.plan.held if held.place == node), 0.0)


def _classes(answer: InferAnswer) -> list[tuple[str, int, dict[str, float]]]:
    """Name, size and host bytes by tier of each class of allocations, the largest first."""
    problem, placement = answer.plan.problem, answer.whole.plan.placement
    found = [
        (part.name, int(problem.weight_grain(part)), dict(placement.weights[part.name])) for part in problem.model.parts
    ]
    found.append(("KV cache", int(problem.kv_grain(placement.gpu_batch)), dict(placement.kv)))
    on_host = [each for each in found if sum(amount for place, amount in each[2].items() if place != GPU) > 0.0]
    merged: list[tuple[str, int, dict[str, float]]] = []
    for name, size, placed in sorted(on_host, key=lambda each: -each[1]):
        if merged and size > merged[-1][1] * (1.0 - ALIKE):
            before, _, both = merged.pop()
            both = {place: both.get(place, 0.0) + placed.get(place, 0.0) for place in {**both, **placed}}
            merged.append((f"{before} and {name}", size, both))
        else:
            merged.append((name, size, placed))
    return merged


def _place(placed: Mapping[str, float]) -> str:
    pages = page_weights(placed)
    if len(pages) == 1:
        return f"{{ bind = [{toml_value(next(iter(pages)))}] }}"
    inner = ", ".join(f"{toml_value(node)} = {count}" for node, count in pages.items())
    return f"{{ weighted = {{ {inner} }} }}"
