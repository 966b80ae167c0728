"""The offloading planner's speed against the published search, and its gains over other placements.

What was published is in `tierloom reproduce --only liu24`.

    python benches/offload_study.py              # speed, gains on a few presets
    python benches/offload_study.py --all        # gains on every preset and machine (minutes)

Times are CPU seconds of this process: other programs on the machine do not change them much.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import tierloom
from tierloom.errors import TierloomError
from tierloom.offload import layers, planner
from tierloom.offload.catalog import load_gpu, load_model, model_names
from tierloom.offload.flexgen import ALL_WEIGHTS_ON_CPU, Blind, opt_shape
from tierloom.offload.host import host_of
from tierloom.offload.problem import Problem
from tierloom.offload.runtime import FLEXGEN
from tierloom.offload.tier_blind import blind_plan
from tierloom.published_claims.offload import SHAPES
from tierloom.units import GIB

BITS = (None, 8.0, 4.5)


def cpu_s(work: Callable[[], object]) -> tuple[float, object]:
    """CPU seconds of one call, and its answer."""
    start = time.process_time()
    answer = work()
    return time.process_time() - start, answer


def speed() -> None:
    """One plan against the published search, in this process."""
    for name, shape in SHAPES.items():
        problem = ask(name, "liu-a-llm", 2048, 256)
        assert problem
        ours, _ = cpu_s(lambda problem=problem: planner.plan(problem))
        blind = Blind(
            shape=opt_shape(*shape, 2048, 256), gpu_bytes=24 * GIB, cpu_bytes=520 * GIB, forced=ALL_WEIGHTS_ON_CPU
        )
        theirs, _ = cpu_s(blind.search)
        print(
            f"{name}: a plan {ours:.3f} s, the published search {theirs:.3f} s ({blind.solved} programmes): "
            f"{theirs / ours:.1f}x"
        )


def ask(model: str, machine: str, prompt: int, generate: int) -> Problem | None:
    """A preset on a machine in as few bits as it takes."""
    host = host_of(tierloom.Machine.load(machine))
    for bits in BITS:
        found = load_model(model)
        found = found if bits is None else found.with_weight_bits(bits)
        if found.weight_bytes < 0.7 * host.capacity_bytes:
            gpu = load_gpu("a10")
            return Problem(model=found, gpu=gpu, host=host, runtime=FLEXGEN, prompt=prompt, generate=generate)
    return None


def gains(models: list[str], machines: list[str]) -> None:
    """The plan against interleaving and the tier-blind planner: never slower."""
    slowest = worst = 0.0
    heads = f"{'machine':24} {'model':16} {'batch':>6} {'tokens/s':>9}"
    print(f"{heads} {'interleave':>11} {'tier-blind':>11} {'cut':>7} {'CPU s':>6}")
    for machine in machines:
        for model in models:
            problem = ask(model, machine, 512, 128)
            if problem is None or len(problem.host.memories) < 2:
                print(f"{machine:24} {model:16} does not fit, or one memory")
                continue
            seconds, plan = cpu_s(lambda problem=problem: planner.plan(problem))
            assert isinstance(plan, planner.InferPlan)
            rivals = [rival(problem, name) for name in ("interleave", "tier-blind")]
            plan = planner.at_least_as(plan, [each for each in rivals if each])
            loss = layers.whole_layers(plan).loss
            slowest, worst = max(slowest, seconds), max(worst, loss)
            against = [
                f"{(plan.tokens_s / each.tokens_s - 1) * 100:+10.1f}%" if each else "          -" for each in rivals
            ]
            assert all(plan.tokens_s >= each.tokens_s * (1 - 1e-6) for each in rivals if each)
            print(
                f"{machine:24} {model:16} {plan.placement.batch:6d} {plan.tokens_s:9.2f} {against[0]} {against[1]} "
                f"{loss * 100:6.2f}% {seconds:6.2f}",
                flush=True,
            )
    print(f"slowest plan {slowest:.2f} CPU s, most lost by whole tensors {worst * 100:.2f} %")


def percent(share: float) -> str:
    """A gain, in per cent."""
    return f"{share * 100:+10.1f}%"


def rival(problem: Problem, name: str) -> planner.InferPlan | None:
    """Another planner's plan, if it finds one."""
    try:
        return blind_plan(problem) if name == "tier-blind" else planner.plan(problem, name)
    except TierloomError:
        return None


def main() -> None:
    """Prints all."""
    speed()
    every = "--all" in sys.argv
    decoders = [name for name in model_names() if not name.startswith("bert")]
    some = ["opt-66b", "llama-65b", "llama-3.1-70b", "mixtral-8x7b", "gpt-oss-120b"]
    gains(decoders if every else some, tierloom.Machine.names() if every else ["liu-a-llm", "liu-b"])


if __name__ == "__main__":
    main()
