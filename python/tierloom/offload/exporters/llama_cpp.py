"""llama.cpp: a command line of ``llama-server``; ``-ot`` sends tensors to host memory by pattern."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.exporters.common import WORTH, process_policy, weights_on_host
from tierloom.offload.exporters.tensor_overrides import from_gguf, overrides
from tierloom.offload.placement import share
from tierloom.offload.problem import GPU

if TYPE_CHECKING:
    from tierloom.offload.answers import InferAnswer
    from tierloom.offload.problem import Problem
    from tierloom.offload.speculation import Speculation

GIB = float(1 << 30)

FAMILIES = {
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3_text": "gemma3",
    "gemma4_text": "gemma4",
    "glm4_moe": "glm4moe",
    "glm4_moe_lite": "deepseek2",
    "glm_moe_dsa": "glm-dsa",
    "gpt2": "gpt2",
    "gpt_oss": "gpt-oss",
    "granite": "granite",
    "granitemoehybrid": "granitehybrid",
    "kimi_k2": "deepseek2",
    "llama": "llama",
    "llama4_text": "llama4",
    "mimo_v2_flash": "mimo2",
    "minimax_m2": "minimax-m2",
    "mistral": "llama",
    "mixtral": "llama",
    "nemotron_h": "nemotron_h_moe",
    "olmo2": "olmo2",
    "phi3": "phi3",
    "qwen2": "qwen2",
    "qwen2_moe": "qwen2moe",
    "qwen3": "qwen3",
    "qwen3_5_moe_text": "qwen35moe",
    "qwen3_5_text": "qwen35",
    "qwen3_moe": "qwen3moe",
    "qwen3_vl_moe_text": "qwen3vlmoe",
    "qwen3_vl_text": "qwen3vl",
    "qwen3_next": "qwen3next",
}
"""Architectures of a ``config.json``, and what llama.cpp's GGUF files call them."""


def llama_cpp(answer: InferAnswer) -> str:
    """A command line: layers beyond what the GPU holds go to host memory, part by part.

    Raises:
        RequestError: The model is of a ``config.json``, and what llama.cpp calls its tensors is not known.
    """
    problem, placement = answer.plan.problem, answer.plan.placement
    if problem.model.family not in FAMILIES and not from_gguf(problem.model):
        message = (
            f"we do not know llama.cpp's tensor names of {problem.model.family!r}\n"
            "hint: give its GGUF file as the model, which has them; or write for vllm"
        )
        raise RequestError(message)
    policy = process_policy(answer)
    words = [f"{policy.prefix}llama-server -m {problem.model.name}.gguf", *_context(answer), "-ngl 999"]
    if weights_on_host(answer) > 0.0:
        chunk = problem.runtime.chunk_tokens
        words.append(f"-b {chunk} -ub {chunk}")
    moved = overrides(answer)
    words += [f'-ot "{pattern}=CPU"' for pattern in moved.patterns]
    if share(placement.kv, GPU) < 0.5:
        words.append("--no-kv-offload")
    if policy.prefix:
        words.append("--numa numactl")
    words += _drafting(problem.speculation)
    return "\n".join([*policy.notes, *_untold(problem), *_cut(moved.gpu_bytes, answer), " ".join(words)]) + "\n"


def _context(answer: InferAnswer) -> list[str]:
    """Slots and their tokens: as long as the longest request each, or one pool where lengths vary."""
    problem, users = answer.plan.problem, answer.plan.placement.batch
    longest = problem.variation.longest
    if longest is None:
        return [f"-c {users * (problem.prompt + problem.generate)} -np {users}"]
    pool = math.ceil(users * problem.variation.reserved(problem.prompt + problem.generate, users))
    return [f"-c {max(pool, longest)} -np {users} --kv-unified"]


def _drafting(speculation: Speculation) -> list[str]:
    if speculation.draft is None:
        return []
    return [f"-md {speculation.draft.name}.gguf -ngld 999 --draft-max {speculation.tokens}"]


def _untold(problem: Problem) -> list[str]:
    """What the plan counts on and the command line cannot say."""
    told = []
    if problem.shared:
        told.append(
            f"# each slot keeps the shared prefix of {problem.shared} tokens for itself; the plan counts it once"
        )
    if problem.speculation.tokens and problem.speculation.draft is None:
        told.append("# the plan counts on drafts without a model: add the --spec-type that you use")
    return told


def _cut(stays: float, answer: InferAnswer) -> list[str]:
    """Where whole tensors come out at fewer bytes than the plan has on the GPU."""
    planned = answer.whole.plan.placement.weights_by_place[GPU]
    if stays > planned * (1.0 - WORTH):
        return []
    return [f"# whole tensors: {stays / GIB:.4g} GiB of weights stay on the GPU, of {planned / GIB:.4g} planned"]
