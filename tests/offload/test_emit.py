"""Plans in the words of other tools: taken by their parsers, true to the plan.

`parsers/*.json` record what the tools' own parsers take; `benches/offload_parsers.py` reads them out of the
packages and runs our output through them.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

import tierloom
from tierloom import offload
from tierloom.errors import RequestError
from tierloom.offload.answers import InferAnswer
from tierloom.offload.emit import EXECUTES, TOOLS, emit, mismatch
from tierloom.offload.emit.common import page_weights
from tierloom.offload.runtime import RUNTIMES

RECORDS = Path(__file__).parent / "parsers"


@pytest.fixture(scope="module")
def dense() -> InferAnswer:
    return offload.infer("opt-66b", "a10", "liu-a", compare=())


@pytest.fixture(scope="module")
def sparse() -> InferAnswer:
    return offload.infer("qwen3-30b-a3b", "a10", "liu-a", compare=(), prompt=512, generate=64)


@pytest.fixture(scope="module")
def grouped() -> InferAnswer:
    return offload.infer("llama-3.1-70b", "a10", "liu-a", compare=())


def known(tool: str) -> set[str]:
    return set(json.loads((RECORDS / f"{tool}.json").read_text())["options"])


def words(text: str) -> list[str]:
    return shlex.split(text, comments=True)


def after(line: list[str], option: str) -> str:
    return line[line.index(option) + 1]


def test_flexgen_takes_the_line_and_its_shares(dense: InferAnswer) -> None:
    line = words(emit("flexgen", dense))
    start = line.index("flexgen.flex_opt") + 1
    assert {word for word in line[start:] if word.startswith("-")} <= known("flexgen")
    percents = [int(word) for word in line[line.index("--percent") + 1 :][:6]]
    assert [a + b for a, b in zip(percents[::2], percents[1::2], strict=True)] == [100, 100, 100]
    batch = int(after(line, "--gpu-batch-size")) * int(after(line, "--num-gpu-batches"))
    assert batch == dense.plan.placement.batch
    assert percents[0] / 100 <= dense.plan.placement.weights_by_place["gpu"] / dense.plan.problem.model.weight_bytes


def test_llama_cpp_takes_the_line_and_its_patterns_name_the_layers_on_the_host(grouped: InferAnswer) -> None:
    line = words(emit("llama.cpp", grouped))
    start = line.index("llama-server") + 1
    assert {word for word in line[start:] if word.startswith("-")} <= known("llama.cpp")
    patterns = [line[i + 1] for i, word in enumerate(line) if word == "-ot"]
    assert patterns
    for part, tensor in (("mlp", "blk.79.ffn_down.weight"), ("attention", "blk.79.attn_q.weight")):
        on_host = any(re.match(pattern.removesuffix("=CPU"), tensor) for pattern in patterns)
        assert on_host == (grouped.whole.tensors[part]["gpu"] < grouped.whole.of[part])


def test_experts_go_to_the_host_by_their_own_pattern(sparse: InferAnswer) -> None:
    text = emit("llama.cpp", sparse)
    patterns = re.findall(r'-ot "(.*?)=CPU"', text)
    assert any(re.match(pattern, "blk.47.ffn_down_exps.weight") for pattern in patterns)
    for part, tensor in (("attention", "blk.47.attn_q.weight"), ("mlp", "blk.47.ffn_gate_inp.weight")):
        on_host = any(re.match(pattern, tensor) for pattern in patterns)
        assert on_host == (sparse.whole.tensors[part]["gpu"] < sparse.whole.of[part])


def test_ktransformers_takes_the_line(sparse: InferAnswer) -> None:
    line = words(emit("ktransformers", sparse))
    start = line.index("run") + 1
    assert {word for word in line[start:] if word.startswith("-")} <= known("ktransformers")
    experts = next(part for part in sparse.plan.problem.model.parts if part.name == "experts")
    assert 0 <= int(after(line, "--gpu-experts")) <= experts.tensors


def test_lmcache_takes_the_keys_and_the_host_part_of_the_cache(dense: InferAnswer) -> None:
    lines = [line for line in emit("lmcache", dense).splitlines() if not line.startswith("#")]
    said = dict(line.split(": ", 1) for line in lines)
    assert set(said) <= known("lmcache")
    host = sum(amount for place, amount in dense.whole.plan.placement.kv.items() if place != "gpu")
    assert float(said["max_local_cpu_size"]) == pytest.approx(host / 2**30, abs=0.1)


VLLM = {
    "--max-model-len",
    "--max-num-seqs",
    "--gpu-memory-utilization",
    "--cpu-offload-gb",
    "--kv-offloading-size",
    "--kv-offloading-backend",
}
"""Read in vLLM's `config/cache.py` and engine arguments: its wheel is too large to install for a test."""


def test_vllm_gets_what_is_outside_the_gpu_in_whole_gib(dense: InferAnswer) -> None:
    line = words(emit("vllm", dense))
    start = line.index("serve") + 1
    assert {word for word in line[start:] if word.startswith("--")} <= VLLM
    assert int(after(line, "--max-num-seqs")) * dense.plan.problem.kv_bytes <= max(
        dense.plan.placement.kv["gpu"], dense.plan.problem.kv_bytes
    )
    outside = dense.plan.problem.model.weight_bytes - dense.whole.plan.placement.weights_by_place["gpu"]
    assert 0 <= int(after(line, "--cpu-offload-gb")) - outside / 2**30 < 1


DEEPSPEED_OFFLOAD = {"device", "nvme_path", "buffer_count", "buffer_size", "max_in_cpu", "pin_memory"}
"""Fields of `DeepSpeedZeroOffloadParamConfig` in DeepSpeed's `runtime/zero/offload_config.py`."""


def test_deepspeed_gets_json_of_its_own_fields(dense: InferAnswer) -> None:
    config = json.loads(emit("deepspeed", dense))
    offloaded = config["zero_optimization"]["offload_param"]
    assert set(offloaded) <= DEEPSPEED_OFFLOAD
    assert offloaded["device"] == "cpu"
    assert config["zero_optimization"]["stage"] == 3
    assert config["train_micro_batch_size_per_gpu"] == dense.plan.placement.batch


@pytest.mark.parametrize("answer", ["dense", "sparse", "grouped"])
def test_our_own_plan_is_read_back_and_tells_tensors_apart_by_size(answer: str, request: pytest.FixtureRequest) -> None:
    plan = tierloom.Plan(emit("tierloom-plan", request.getfixturevalue(answer)))
    sizes = [rule["select"]["size_at_least"] for rule in plan.data["rules"]]
    assert sizes == sorted(sizes, reverse=True)
    assert plan.data["nodes"] == ["rdram", "ldram", "cxl"]
    assert all(set(rule["place"]) <= {"bind", "weighted"} for rule in plan.data["rules"])


@pytest.mark.parametrize(
    ("tool", "model", "told"),
    [
        ("flexgen", "grouped", "FlexGen runs OPT models"),
        ("llama.cpp", "dense", "no architecture 'opt'"),
        ("ktransformers", "dense", "places experts"),
        ("notepad", "dense", "there is no tool `notepad`"),
    ],
)
def test_a_tool_that_cannot_run_the_model_says_so(
    tool: str, model: str, told: str, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(RequestError, match=re.escape(told)):
        emit(tool, request.getfixturevalue(model))


def test_a_plan_for_another_kind_of_runtime_is_doubted(dense: InferAnswer) -> None:
    assert mismatch("flexgen", dense) is None
    assert mismatch("tierloom-plan", dense) is None
    assert "executes as `copied`" in (mismatch("vllm", dense) or "")
    assert {name for names in EXECUTES.values() for name in names} <= set(RUNTIMES)


def test_page_weights_are_small_and_near() -> None:
    assert page_weights({"gpu": 9.0, "a": 2.0, "b": 1.0}) == {"a": 2, "b": 1}
    assert page_weights({"a": 1.0}) == {"a": 1}
    assert page_weights({"a": 999.0, "b": 1.0}) == {"a": 1}
    assert page_weights({"gpu": 1.0}) == {}


def test_every_tool_is_recorded_or_said_not_to_be() -> None:
    recorded = {path.stem for path in RECORDS.glob("*.json")}
    assert recorded == set(TOOLS) - {"vllm", "deepspeed", "tierloom-plan"}
