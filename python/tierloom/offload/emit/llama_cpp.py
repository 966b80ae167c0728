"""llama.cpp: a command line of ``llama-server``; ``-ot`` sends tensors to host memory by pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.emit.common import interleave_prefix
from tierloom.offload.placement import share
from tierloom.offload.problem import GPU

if TYPE_CHECKING:
    from tierloom.offload.answers import InferAnswer

PATTERNS = {"attention": "attn_.*", "mlp": "ffn_(gate|up|down|gate_inp|.*shexp).*", "experts": "ffn_.*_exps.*"}
"""Names of tensors of a layer in GGUF files, by part."""

FAMILIES = {"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "deepseek_v2", "deepseek_v3", "gpt_oss"}
FAMILIES_OF_GGUF = {"qwen2moe", "qwen3moe", "deepseek2", "gpt-oss", "gpt2", "gemma2", "gemma3", "phi3"}


def llama_cpp(answer: InferAnswer) -> str:
    """A command line: layers beyond what the GPU holds go to host memory, part by part.

    Raises:
        RequestError: llama.cpp does not run models of this family.
    """
    problem, placement = answer.plan.problem, answer.plan.placement
    if problem.model.family not in FAMILIES | FAMILIES_OF_GGUF:
        message = f"llama.cpp has no architecture {problem.model.family!r}\nhint: write for flexgen or vllm"
        raise RequestError(message)
    notes, prefix = interleave_prefix(answer)
    tokens = placement.batch * (problem.prompt + problem.generate)
    words = [
        f"{prefix}llama-server -m {problem.model.name}.gguf",
        f"-c {tokens} -np {placement.batch} -ngl 999",
        *_overrides(answer),
    ]
    if share(placement.kv, GPU) < 0.5:
        words.append("--no-kv-offload")
    if prefix:
        words.append("--numa numactl")
    return "\n".join([*notes, " ".join(words)]) + "\n"


def _overrides(answer: InferAnswer) -> list[str]:
    """``-ot`` of every part whose last layers are in host memory."""
    found = []
    for part in answer.plan.problem.model.parts:
        if part.name not in PATTERNS:
            continue
        on_gpu = answer.whole.tensors[part.name][GPU] * part.layers // answer.whole.of[part.name]
        layers = range(on_gpu, part.layers)
        if layers:
            numbers = "|".join(str(layer) for layer in layers)
            found.append(f'-ot "blk\\.({numbers})\\.{PATTERNS[part.name]}=CPU"')
    return found
