"""Training, sessions' caches and decode on the CPU: laws, and answers that a person can check."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

import tierloom
from tierloom import offload
from tierloom.errors import PlacementError, RequestError
from tierloom.linear_program import Programme
from tierloom.offload import cpu_only, session_caches, train_planner
from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host, block_tier, host_of
from tierloom.offload.model import Model
from tierloom.offload.train_planner import TrainProblem

ROOM = Path(offload.__file__).parent
ROOMY = host_of(tierloom.Machine.load("bytedance-spr-a1000"))
DOORS = {
    "length_files.py",
    "catalog.py",
    "gguf_header.py",
    "gguf_keys.py",
    "gguf_reader.py",
    "gguf_shards.py",
    "__init__.py",
}


def without_scores(name: str) -> Model:
    """A model whose attention computes nothing: what is left is its products and its cache."""
    model = load_model(name)
    return replace(model, caches=tuple(replace(cache, score_flop=0.0) for cache in model.caches))


@pytest.fixture
def trained(a10: Gpu, liu_a: Host) -> TrainProblem:
    return TrainProblem(model=load_model("gpt2-8b"), gpu=a10, host=liu_a, batch=3)


@pytest.mark.parametrize("stage", ["zero-offload", "zero-3"])
@pytest.mark.parametrize("policy", ["interleave", "first-touch", "prefer:cxl", "prefer:rdram"])
@pytest.mark.parametrize("machine", ["liu-a-llm", "liu-b", "micron-bergamo-cz120"])
def test_no_policy_trains_faster_than_the_plan(trained: TrainProblem, machine: str, policy: str, stage: str) -> None:
    host = host_of(tierloom.Machine.load(machine))
    problem = replace(trained, host=host, stage=stage)
    if policy.removeprefix("prefer:") not in {policy, *(tier.name for tier in host.memories)}:
        policy = f"prefer:{host.memories[-1].name}"
    assert train_planner.plan(problem).step_s <= train_planner.plan(problem, policy).step_s * (1 + 1e-6)


def test_states_take_18_bytes_a_parameter_and_move_44(trained: TrainProblem) -> None:
    assert sum(state.held for state in train_planner.STATES) == 18
    assert sum(state.read + state.written for state in train_planner.STATES) == 44
    plan = train_planner.plan(trained)
    assert sum(plan.held.values()) == pytest.approx(18 * trained.model.parameters)
    for tier in trained.host.memories:
        assert plan.held[tier.name] <= 0.9 * tier.capacity_bytes * (1 + 1e-6)


def test_a_step_adds_up_and_a_delayed_one_overlaps(trained: TrainProblem) -> None:
    plan, delayed = train_planner.plan(trained), train_planner.plan(replace(trained, delayed=True))
    assert plan.step_s == pytest.approx(sum(plan.pieces.values()))
    assert plan.step_s / 2 <= delayed.step_s < plan.step_s


def test_gradients_hide_behind_backward_until_it_is_too_short(trained: TrainProblem) -> None:
    long, short = (
        train_planner.plan(replace(trained, batch=8)),
        train_planner.plan(replace(trained, batch=1, sequence=64)),
    )
    out = 4 * trained.model.parameters / (trained.gpu.out_gb_s * 1e9)
    assert long.pieces["backward"] == pytest.approx(3 * long.pieces["forward"])
    assert short.pieces["backward"] == pytest.approx(out)


def test_a_micro_batch_is_the_largest_that_fits(trained: TrainProblem) -> None:
    plan = train_planner.plan(replace(trained, batch=None))
    assert plan.problem.batch is not None
    assert plan.gpu_bytes <= 0.9 * trained.gpu.memory_bytes
    with pytest.raises(PlacementError, match=f"largest micro-batch that fits is {plan.problem.batch}"):
        train_planner.plan(replace(trained, batch=plan.problem.batch + 1))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batch": 0}, "the batch is 0"),
        ({"stage": "zero-9"}, "there is no stage `zero-9`"),
        ({"batch": 30}, "the largest micro-batch that fits is 8"),
        ({"model": load_model("qwen3-30b-a3b"), "host": ROOMY}, "--stage zero-3 keeps the parameters on the host"),
        ({"model": load_model("llama-3.1-70b")}, "take shorter sequences"),
        ({"model": load_model("llama-3.1-405b"), "stage": "zero-3"}, "GiB are missing"),
        ({"model": load_model("llama-3.1-405b"), "batch": 1}, "with 1 sequence of"),
    ],
)
def test_training_that_cannot_be_says_what_is_missing(trained: TrainProblem, change: dict, told: str) -> None:
    with pytest.raises((RequestError, PlacementError)) as caught:
        train_planner.plan(replace(trained, **change))
    assert told in str(caught.value)
    assert "hint:" in str(caught.value)


def test_sessions_fill_the_quickest_tier_first(liu_a: Host) -> None:
    model, gpu = load_model("llama-3.1-70b"), load_gpu("h100")
    plan = session_caches.serve(model, gpu, liu_a, sessions=40, context=32768)
    assert [row.tier for row in plan.tiers] == ["ldram", "rdram", "cxl"]
    assert [row.sessions for row in plan.tiers] == [17, 17, 6]
    assert plan.session_bytes == 320 * 1024 * 32768
    assert all(row.worth for row in plan.tiers)


def test_the_break_even_bandwidth_is_where_fetching_takes_as_long_as_computing() -> None:
    """Published arithmetic: 320 KiB and 141 GFLOP a token at 400 TFLOP/s break even at 0.93 GB/s, scores left out."""
    model = without_scores("llama-3.1-70b")
    gpu = replace(load_gpu("h200"), tflop_s=400.0, prefill_efficiency=1.0)
    host = host_of(tierloom.Machine.load("liu-a-llm"))
    plan = session_caches.serve(model, gpu, host, sessions=1, context=4096)
    assert plan.break_even_bytes_s / 1e9 == pytest.approx(0.93, abs=0.02)
    drive = block_tier(1e12, 0.5, 0.5)
    slow = session_caches.serve(model, gpu, replace(host, tiers=(drive,)), sessions=1, context=4096)
    assert not slow.tiers[0].worth
    assert slow.mean_s == pytest.approx(slow.recompute_s)


def test_sessions_that_do_not_fit_are_counted(liu_a: Host) -> None:
    with pytest.raises(PlacementError, match="45 sessions fit"):
        session_caches.serve(load_model("llama-3.1-70b"), load_gpu("h100"), liu_a, sessions=60, context=32768)


@pytest.fixture(scope="module")
def measured() -> Host:
    return host_of(tierloom.Machine.load("bytedance-spr-a1000"))


def test_a_share_on_cxl_adds_its_bandwidth(measured: Host) -> None:
    """DRAM of two channels gives 68 GB/s and CXL 48: the best share of reads on CXL is near 0.41."""
    model = load_model("llama-7b").with_weight_bits(4.5)

    def rate(near: int, far: int, threads: int = 96) -> float:
        pages = {"ldram": near, "cxl": far}
        return cpu_only.decode(model, measured, pages, threads=threads, backends=8).bytes_s / 1e9

    alone, best = rate(1, 0), rate(3, 2)
    assert alone == pytest.approx(68, abs=2)
    assert best == pytest.approx(113, abs=6)
    assert rate(1, 3) < alone < rate(3, 1) < best


def test_few_threads_are_bound_by_latency_and_lose_by_cxl(measured: Host) -> None:
    model = without_scores("llama-7b")
    alone, mixed = (
        cpu_only.decode(model, measured, pages, threads=2) for pages in ({"ldram": 1, "cxl": 0}, {"ldram": 1, "cxl": 1})
    )
    assert alone.bound == mixed.bound == "latency"
    assert mixed.tokens_s < alone.tokens_s


def test_bandwidth_rises_with_threads_and_never_beyond_the_peaks(measured: Host) -> None:
    model = load_model("llama-7b").with_weight_bits(4.5)
    rates = [
        cpu_only.decode(model, measured, {"ldram": 3, "cxl": 1}, threads=threads).bytes_s
        for threads in (1, 2, 4, 8, 16, 32, 64)
    ]
    assert rates == sorted(rates)
    assert rates[-1] <= min(measured.tier("ldram").read_bytes_s / 0.75, measured.tier("cxl").read_bytes_s / 0.25)


def test_a_model_that_no_ratio_holds_is_refused(measured: Host) -> None:
    with pytest.raises(PlacementError, match="GiB are missing"):
        offload.cpu("llama-3.1-405b", measured)


def test_the_solver_says_when_there_is_no_answer() -> None:
    made = Programme()
    made.variable("x", high=1.0)
    made.at_most("far", {"x": -1.0}, -2.0)
    made.minimise({"x": 1.0})
    assert made.solve() is None


def test_engines_touch_neither_files_nor_clock() -> None:
    outside = {"os", "pathlib", "time", "datetime", "random", "subprocess", "tempfile", "socket", "shutil", "io"}
    for path in ROOM.rglob("*.py"):
        if path.name in DOORS:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        used = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        used |= {(node.module or "").split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not used & outside, f"{path.name} uses {used & outside}"
