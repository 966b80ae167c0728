"""What published runs say of the offloading engines beyond the ledger of claims (tests/published_claims)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tierloom.offload import train_planner
from tierloom.offload.catalog import load_model
from tierloom.offload.flexgen import ALL_WEIGHTS_ON_CPU, Blind, Constants, opt_shape
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host
from tierloom.offload.planner import plan
from tierloom.offload.problem import Problem, copy_s_per_byte
from tierloom.offload.step_times import steps
from tierloom.published_claims.offload import GENERATE, PROMPT, SHAPES
from tierloom.units import GIB


def test_a_margin_of_0835_brings_the_published_64() -> None:
    def at(alpha: float) -> Blind:
        return Blind(
            shape=opt_shape(*SHAPES["opt-66b"], PROMPT, GENERATE),
            gpu_bytes=24 * GIB,
            cpu_bytes=520 * GIB,
            forced=ALL_WEIGHTS_ON_CPU,
            constants=Constants(alpha=alpha),
        )

    assert at(0.84).policy(2, 32) is not None
    assert at(0.82).policy(2, 32) is None


def test_small_copies_tell_memories_apart_and_large_ones_do_not(a10: Gpu, liu_a: Host) -> None:
    def spread(size: float) -> float:
        seconds = [max(copy_s_per_byte(a10, tier, size), 1.0 / tier.read_bytes_s) for tier in liu_a.memories]
        return max(seconds) / min(seconds) - 1.0

    assert spread(2.0**24) < spread(2.0**20) < spread(4096.0)
    assert spread(4096.0) > 0.05


def test_movement_is_small_only_in_long_steps(a10: Gpu, liu_a: Host) -> None:
    linked = replace(a10, in_gb_s=20.0, out_gb_s=20.0)
    problem = train_planner.TrainProblem(model=load_model("gpt2-8b"), gpu=linked, host=liu_a.only(["ldram"]), batch=8)
    assert train_planner.plan(problem, "interleave").step_s >= 16.0


def test_flexgens_published_runs_are_within_a_fifth() -> None:
    """OPT-30B on a T4: 7.32 tokens/s published at 512 + 32 tokens, 48 x 3, 20 % of the weights on the GPU."""
    blind = Blind(
        shape=opt_shape(48, 7168, 28672, 56, 512, 32),
        gpu_bytes=16 * GIB,
        cpu_bytes=200 * GIB,
        constants=Constants(alpha=1.2),
        forced={"wg": 0.2, "wc": 0.8, "cg": 0.0, "cc": 1.0, "hg": 0.0, "hc": 1.0},
    )
    found = blind.policy(48, 3)
    assert found is not None
    assert found.tokens_s == pytest.approx(7.32, rel=0.05)


def test_the_clock_of_the_study_is_the_clock_of_plans(problem: Problem) -> None:
    found = plan(problem)
    assert steps(problem, found.placement) == found.steps
