"""The offloading findings of the 2024 study of real CXL cards: inputs, predictions, and conflicts as such."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tierloom.offload import study, study_training, training
from tierloom.offload.catalog import load_model
from tierloom.offload.flexgen import Blind, opt_shape
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host
from tierloom.offload.model import Model
from tierloom.offload.problem import Problem
from tierloom.offload.runtime import FLEXGEN
from tierloom.offload.steps import steps

POINTS = 0.05
"""Five points, the study's gains being shares."""


@pytest.fixture(scope="module")
def table3() -> dict:
    return study.table3()


@pytest.mark.parametrize(
    ("model", "memories", "batch"),
    [
        ("llama-65b", "L", 14),
        ("llama-65b", "L+R", 40),
        ("llama-65b", "L+R+C", 56),
        ("opt-66b", "L", 9),
        ("opt-66b", "L+C", 28),
        ("opt-66b", "L+R", 40),
    ],
)
def test_the_published_planner_picks_the_published_batch(table3: dict, model: str, memories: str, batch: int) -> None:
    assert table3[model][memories].batch == batch


@pytest.mark.parametrize(
    ("model", "memories", "ours", "published"), [("opt-66b", "L+R+C", 56, 64), ("llama-65b", "L+C", 32, 30)]
)
def test_two_batches_differ_and_are_said_to(table3: dict, model: str, memories: str, ours: int, published: int) -> None:
    assert table3[model][memories].batch == ours
    assert study.PUBLISHED_BATCHES[model][memories] == published


def test_a_margin_of_0835_brings_the_published_64() -> None:
    from tierloom.offload.flexgen import ALL_WEIGHTS_ON_CPU, GIB, Constants

    def at(alpha: float) -> Blind:
        return Blind(
            shape=opt_shape(*study.OPT_66B, study.PROMPT, study.GENERATE),
            gpu_bytes=24 * GIB,
            cpu_bytes=520 * GIB,
            forced=ALL_WEIGHTS_ON_CPU,
            constants=Constants(alpha=alpha),
        )

    assert at(0.84).policy(2, 32) is not None
    assert at(0.82).policy(2, 32) is None


def test_the_share_of_the_cache_on_the_gpu_is_within_two_points(table3: dict) -> None:
    for model, by_set in study.PUBLISHED_CACHE.items():
        for memories, share in by_set.items():
            assert table3[model][memories].cache[0] == pytest.approx(share, abs=0.02), (model, memories)


def test_footprints_are_exact(studied: list[Model], a10: Gpu, liu_a: Host) -> None:
    assert study.footprints(studied, a10, liu_a) == study.PUBLISHED_FOOTPRINTS


def test_decode_and_overall_gains_are_within_five_points(studied: list[Model], a10: Gpu, liu_a: Host) -> None:
    decode = study.decode_gains(studied, a10, liu_a)
    overall = study.overall_gains(decode)
    for memories in study.DECODE_GAINS:
        assert decode[memories] == pytest.approx(study.DECODE_GAINS[memories], abs=POINTS), memories
        assert overall[memories] == pytest.approx(study.OVERALL_GAINS[memories], abs=POINTS), memories


def test_three_published_gains_imply_one_share_of_prefill() -> None:
    for share in study.implied_prefill_shares().values():
        assert share == pytest.approx(study.PREFILL_SHARE, abs=0.01)


def test_equal_footprints_over_other_media_are_a_conflict(studied: list[Model], a10: Gpu, liu_a: Host) -> None:
    """3 % apart at 324 GB, says one figure; 51 % apart in decode, says another: no model can serve both."""
    found = {finding.name: finding for finding in study.findings(studied, a10, liu_a)}
    conflict = found["L+R over L+C, overall, at 324 GB"]
    assert conflict.verdict == "conflict"
    assert 0.2 < conflict.ours < 0.6


def test_cxl_beats_nvme_by_more_than_published(problem: Problem) -> None:
    """Published: 24 and 20 % overall. The drive is not named; with one of 6.8 GB/s ours is about 40 %."""
    from tierloom.offload.host import block_tier
    from tierloom.offload.planner import plan

    near = problem.host.only(["ldram"])
    drive = near.with_tier(block_tier(2e12, 6.8, 5.0))
    cxl = plan(replace(problem, host=problem.host.only(["ldram", "cxl"])))
    nvme = plan(replace(problem, host=drive, batch=None))
    assert 1.1 < cxl.tokens_s / nvme.tokens_s < 1.5


def test_staged_copies_explain_the_prefill_gap_of_remote_dram(liu_a: Host) -> None:
    apart = study.staged_gb_s(liu_a, "L+R") / study.staged_gb_s(liu_a, "L+C") - 1.0
    assert apart == pytest.approx(0.20, abs=0.10)


def test_the_gpu_reads_all_memories_alike_in_large_copies(a10: Gpu, liu_a: Host) -> None:
    assert study.link_spread(a10, liu_a, 2.0**20) < 0.03
    assert study.link_spread(a10, liu_a, 2.0**24) < study.link_spread(a10, liu_a, 2.0**20)
    assert study.link_spread(a10, liu_a, 4096.0) > 0.05


@pytest.fixture(scope="module")
def anchored(a10: Gpu, liu_a: Host) -> dict[str, training.TrainPlan]:
    """Steps of the 8 billion parameter model with the published share of the optimizer, an input."""
    steps_of = study_training.anchored_steps(load_model("gpt2-8b"), a10, liu_a)
    assert steps_of["L"].pieces["optimizer"] / steps_of["L"].step_s == pytest.approx(0.31)
    return steps_of


def test_interleaving_slows_the_optimizer_as_published(anchored: dict[str, training.TrainPlan]) -> None:
    adam = {memories: plan.pieces["optimizer"] for memories, plan in anchored.items()}
    assert adam["L+C"] / adam["L"] - 1.0 == pytest.approx(0.18, abs=0.01), "the one fitted figure"
    assert adam["L+R+C"] / adam["L+R"] - 1.0 == pytest.approx(0.08, abs=0.03)
    assert 0.0 <= adam["L+R+C"] / adam["L"] - 1.0 <= 0.20


def test_step_gains_beyond_the_optimizers_share_are_not_reached(anchored: dict[str, training.TrainPlan]) -> None:
    """Published: 14, 16 and 11 % a step; 31 % of a step slowed by 18 % cannot give that. Sign, and below."""
    for (fast, slow), published in study_training.STEP_GAINS.items():
        assert 0.0 < anchored[slow].step_s / anchored[fast].step_s - 1.0 < published
    assert anchored["L+C"].step_s / anchored["L"].step_s - 1.0 == pytest.approx(0.056, abs=0.005)


def test_a_smaller_model_trains_within_five_percent_on_any_medium_and_a_middle_one_just_not(
    a10: Gpu, liu_a: Host
) -> None:
    """Published: below 5 % for both. At 1,024 tokens, which the study does not say, the second misses it."""
    assert study_training.step_spread(load_model("gpt2-4b"), a10, liu_a) < 0.05
    assert study_training.step_spread(load_model("gpt2-6b"), a10, liu_a) == pytest.approx(0.057, abs=0.005)


def test_the_documents_verdicts_are_what_the_study_gives(studied: list[Model], a10: Gpu, liu_a: Host) -> None:
    gpt2 = [load_model(f"gpt2-{size}b") for size in (4, 6, 8)]
    found = [*study.findings(studied, a10, liu_a), *study_training.training_findings(*gpt2, a10, liu_a)]
    assert {finding.name for finding in found if finding.verdict == "missed"} == {
        "opt-66b, L+R+C: batch",
        "llama-65b, L+C: batch",
        "gpt2-6b: slowest step over quickest, less one",
    }
    assert sum(finding.verdict == "conflict" for finding in found) == 4


def test_movement_is_below_five_percent_of_long_steps(a10: Gpu, liu_a: Host) -> None:
    linked = replace(a10, in_gb_s=20.0, out_gb_s=20.0)
    problem = training.TrainProblem(model=load_model("gpt2-8b"), gpu=linked, host=liu_a.only(["ldram"]), batch=8)
    long = training.plan(problem, "interleave")
    assert long.step_s >= 16.0
    assert long.pieces["parameters in"] / long.step_s < 0.05


def test_flexgens_published_runs_are_within_a_fifth() -> None:
    """OPT-30B on a T4: 7.32 tokens/s published at 512 + 32 tokens, 48 x 3, 20 % of the weights on the GPU."""
    from tierloom.offload.flexgen import GIB, Constants

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


def test_steps_of_the_study_are_timed_by_the_same_clock_as_plans(problem: Problem, studied: list[Model]) -> None:
    from tierloom.offload.planner import plan

    found = plan(problem)
    assert steps(problem, found.placement) == found.steps
    assert problem.runtime is FLEXGEN
    assert studied[0].name == problem.model.name
