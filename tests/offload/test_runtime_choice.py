"""Which runtime is planned for: what the model and the machine allow, and why in one sentence."""

from __future__ import annotations

import pytest

from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.exporters import EXECUTES, TOOLS
from tierloom.offload.host import Host
from tierloom.offload.problem import Problem
from tierloom.offload.runtime import PAGED, RUNTIMES
from tierloom.offload.runtime_choice import asked_for, choose


def asked(host: Host, model: str, gpu: str, bits: float | None = None, users: int | None = None) -> Problem:
    found = load_model(model) if bits is None else load_model(model).with_weight_bits(bits)
    return Problem(model=found, gpu=load_gpu(gpu), host=host, runtime=PAGED, prompt=2048, generate=256, batch=users)


@pytest.mark.parametrize(
    ("model", "gpu", "bits", "users", "tool"),
    [
        ("opt-66b", "a10", None, None, "flexgen"),
        ("llama-3.1-8b", "a10", None, None, "vllm"),
        ("llama-3.1-8b", "a10", None, 1000, "llama.cpp"),
        ("llama-3.1-70b", "a10", None, None, "llama.cpp"),
        ("llama-3.1-70b", "h100", 4.5, 16, "vllm"),
        ("qwen3-235b-a22b", "a10", 4.5, None, "ktransformers"),
        ("deepseek-v3", "t4", None, None, "llama.cpp"),
    ],
)
def test_a_runtime_is_chosen_by_what_fits(
    liu_a: Host, model: str, gpu: str, bits: float | None, users: int | None, tool: str
) -> None:
    choice = choose(asked(liu_a, model, gpu, bits, users))
    assert choice.tool == tool
    assert choice.tool in TOOLS
    assert choice.runtime.name in EXECUTES[tool]
    assert choice.sentence.count(".") >= 1
    assert choice.sentence.startswith("Planned for ")


def test_a_gguf_file_is_for_llama_cpp(liu_a: Host) -> None:
    choice = choose(asked(liu_a, "llama-3.1-8b", "a10"), gguf=True)
    assert choice.tool == "llama.cpp"
    assert "GGUF" in choice.sentence


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_runtime_that_was_named_is_kept(name: str) -> None:
    choice = asked_for(RUNTIMES[name])
    assert choice.runtime is RUNTIMES[name]
    assert "was asked for" in choice.sentence
    assert choice.tool is None or name in EXECUTES[choice.tool]
