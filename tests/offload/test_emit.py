"""Plans in the words of other tools: taken by their parsers, true to the plan.

`parsers/*.json` record what the tools' own parsers take; `benches/offload_parsers.py` reads them out of the
packages and runs our output through them.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

import tierloom
from tierloom import offload
from tierloom.errors import RequestError
from tierloom.offload.answers import InferAnswer
from tierloom.offload.architectures import FAMILIES
from tierloom.offload.exporters import EXECUTES, TOOLS, emit, mismatch
from tierloom.offload.exporters.common import near_first, page_weights, process_policy, under
from tierloom.offload.exporters.deepspeed import deepspeed_training
from tierloom.offload.exporters.llama_cpp import FAMILIES as OF_LLAMA_CPP
from tierloom.offload.runtime import RUNTIMES
from tierloom.offload.train_planner import Stage

NEMOTRON = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
"""Blocks of Nemotron 3 Nano: Mamba-2, experts, attention."""

RECORDS = Path(__file__).parent / "parsers"


@pytest.fixture(scope="module")
def dense() -> InferAnswer:
    return offload.infer("opt-66b", "a10", "liu-a-llm", compare=(), throughput=True)


@pytest.fixture(scope="module")
def sparse() -> InferAnswer:
    return offload.infer("qwen3-30b-a3b", "a10", "liu-a-llm", compare=(), throughput=True, prompt=512, generate=64)


@pytest.fixture(scope="module")
def grouped() -> InferAnswer:
    return offload.infer("llama-3.1-70b", "a10", "liu-a-llm", compare=(), throughput=True)


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


def test_llama_cpp_knows_every_architecture_that_is_written_for_it() -> None:
    from gguf import MODEL_ARCH_NAMES

    assert set(OF_LLAMA_CPP.values()) <= set(MODEL_ARCH_NAMES.values())
    assert set(OF_LLAMA_CPP) <= set(FAMILIES)


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        ("kimi-k2.5", range(1, 61)),
        ("llama-4-maverick", range(1, 48, 2)),
        ("mimo-v2-flash", range(1, 48)),
        ("nemotron-3-nano-30b-a3b", [n for n, block in enumerate(NEMOTRON) if block == "E"]),
    ],
)
def test_experts_are_in_the_layers_that_have_them(model: str, layers: Sequence[int]) -> None:
    answer = offload.infer(model, "rtx-5090", "server-9355p", runtime="resident", batch=1, weight_bits=4.5, compare=())
    experts = next(part for part in answer.plan.problem.model.parts if part.name == "experts")
    assert list(experts.numbers) == list(layers)
    last = max(layers)
    on_host = answer.whole.tensors["experts"]["gpu"] < answer.whole.of["experts"]
    found = re.findall(r'-ot "(.*?)=CPU"', emit("llama.cpp", answer))
    assert any(re.match(pattern, f"blk.{last}.ffn_up_exps.weight") for pattern in found) == on_host
    assert not any(re.match(pattern, f"blk.{last + 1}.ffn_up_exps.weight") for pattern in found)


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


@pytest.mark.parametrize("users", [1, 4, 40])
def test_slots_and_context_follow_users_and_lengths(users: int) -> None:
    asked = {"users": users, "compare": (), "runtime": "resident"}
    same = offload.infer("qwen3-32b", "a10", "liu-a-llm", prompt=1000, answer=200, **asked)
    line = words(emit("llama.cpp", same))
    assert after(line, "-np") == str(users)
    assert after(line, "-c") == str(users * 1200)
    varied = offload.infer("qwen3-32b", "a10", "liu-a-llm", prompt="500..1500", answer="100..300", **asked)
    line = words(emit("llama.cpp", varied))
    assert "--kv-unified" in line
    assert users * 1200 <= int(after(line, "-c")) <= users * 1800
    assert int(after(line, "-c")) >= 1800, "the longest request fits"


def test_a_draft_and_a_prefix_are_in_the_line_or_said() -> None:
    asked = {"users": 4, "compare": (), "shared_prefix": 100, "speculative": "4:0.7", "runtime": "resident"}
    drafted = offload.infer("qwen3-32b", "a10", "liu-a-llm", draft="qwen3-8b", **asked)
    line = words(emit("llama.cpp", drafted))
    assert {word for word in line[line.index("llama-server") :] if word.startswith("-")} <= known("llama.cpp")
    assert after(line, "-md") == "qwen3-8b.gguf"
    assert after(line, "--draft-max") == "4"
    assert "# each slot keeps the shared prefix" in emit("llama.cpp", drafted)
    free = offload.infer("llama-3.1-8b", "h100", "liu-a-llm", **{**asked, "runtime": None})
    line = words(emit("vllm", free))
    assert {word for word in line if word.startswith("--")} <= known("vllm")
    assert "--enable-prefix-caching" in line
    assert json.loads(after(line, "--speculative-config"))["num_speculative_tokens"] == 4


SPLITS = [
    ("qwen3-32b", "rtx-4090", 4.5, "ldram,rdram,cxl"),
    ("qwen3-32b", "a10", None, "ldram,rdram,cxl"),
    ("llama-3.1-70b", "a10", 4.5, "ldram,cxl"),
    ("llama-3.1-70b", "a10", 4.5, "cxl"),
    ("qwen3-235b-a22b", "a10", 4.5, "ldram,rdram,cxl"),
    ("mixtral-8x7b", "rtx-4090", None, "ldram,cxl"),
]


@pytest.mark.parametrize(("model", "gpu", "bits", "nodes"), SPLITS)
@pytest.mark.parametrize("users", [1, 16])
def test_no_line_binds_a_process_to_slow_memory(
    model: str, gpu: str, bits: float | None, nodes: str, users: int
) -> None:
    answer = offload.infer(
        model, gpu, "liu-a", users=users, weight_bits=bits, nodes=nodes.split(","), runtime="resident", compare=()
    )
    for tool in ("llama.cpp", "vllm", "lmcache"):
        text = emit(tool, answer)
        assert "membind" not in text
        if "weighted-interleave=" in text and nodes != "cxl":
            assert re.search(r"weighted_interleave/node1 .*# ldram", text), "the near memory has its part"
        preferred = re.findall(r"--preferred=(\d)", text)
        assert preferred in ([], ["1"] if nodes != "cxl" else ["2"])


def test_a_process_gets_the_quicker_of_near_first_and_the_plans_shares(grouped: InferAnswer) -> None:
    policy = process_policy(grouped)
    near = under(grouped.whole.plan, near_first(grouped.whole.plan))
    assert policy.tokens_s >= near * 0.99
    assert policy.tokens_s <= grouped.plan.tokens_s * (1 + 1e-3)


def test_what_may_lie_anywhere_lies_near() -> None:
    """A read of the embedding costs nothing, so the card is no better a place than near memory."""
    answer = offload.infer("qwen3-32b", "a10", "liu-a", weight_bits=8, users=1, runtime="resident", compare=())
    embedding = answer.whole.tensors["embedding"]
    assert embedding["gpu"] + embedding["ldram"] == answer.whole.of["embedding"]


def test_vllm_gets_what_is_outside_the_gpu_in_whole_gib(dense: InferAnswer) -> None:
    line = words(emit("vllm", dense))
    start = line.index("serve") + 1
    assert {word for word in line[start:] if word.startswith("--")} <= known("vllm")
    assert int(after(line, "--max-num-seqs")) * dense.plan.problem.kv_bytes <= max(
        dense.plan.placement.kv["gpu"], dense.plan.problem.kv_bytes
    )
    outside = dense.plan.problem.model.weight_bytes - dense.whole.plan.placement.weights_by_place["gpu"]
    assert 0 <= int(after(line, "--cpu-offload-gb")) - outside / 2**30 < 1


def keys(document: dict[str, object], above: str = "") -> set[str]:
    """Paths of all keys, with dots between."""
    found = {f"{above}{key}" for key in document}
    return found.union(*(keys(value, f"{above}{key}.") for key, value in document.items() if isinstance(value, dict)))


def test_deepspeed_gets_json_of_its_own_fields(dense: InferAnswer) -> None:
    config = json.loads(emit("deepspeed", dense))
    offloaded = config["zero_optimization"]["offload_param"]
    assert keys(config) <= known("deepspeed")
    assert offloaded["device"] == "cpu"
    assert config["zero_optimization"]["stage"] == 3
    assert config["train_micro_batch_size_per_gpu"] == dense.plan.placement.batch


@pytest.mark.parametrize("stage", ["zero-offload", "zero-3"])
def test_deepspeed_knows_the_keys_of_training(stage: Stage) -> None:
    answer = offload.train("gpt2-8b", "a10", "liu-a", stage=stage, compare=())
    assert keys(json.loads(deepspeed_training(answer.plan))) <= known("deepspeed")


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
        ("llama.cpp", "dense", "we do not know llama.cpp's tensor names of 'opt'"),
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
    assert "executes as `copied` or `paged`" in (mismatch("vllm", dense) or "")
    assert {name for names in EXECUTES.values() for name in names} <= set(RUNTIMES)


def test_page_weights_are_small_and_near() -> None:
    assert page_weights({"gpu": 9.0, "a": 2.0, "b": 1.0}) == {"a": 2, "b": 1}
    assert page_weights({"a": 1.0}) == {"a": 1}
    assert page_weights({"a": 999.0, "b": 1.0}) == {"a": 1}
    assert page_weights({"a": 98.4, "b": 1.6}) == {"a": 1}, "one page of twenty is 5 %"
    assert page_weights({"a": 60.0, "b": 38.0, "c": 2.0}) == {"a": 3, "b": 2}
    assert page_weights({"gpu": 1.0}) == {}


def test_every_tool_is_recorded_or_said_not_to_be() -> None:
    recorded = {path.stem for path in RECORDS.glob("*.json")}
    assert recorded == set(TOOLS) - {"tierloom-plan"}
