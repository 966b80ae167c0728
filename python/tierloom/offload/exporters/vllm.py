"""vLLM: a command line of ``vllm serve``; sizes in GiB, one kind of host memory.

Options are those of `vllm/config/cache.py` and `vllm/config/offload.py`.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from tierloom.offload.exporters.common import kv_on_host, process_policy, weights_on_host
from tierloom.offload.problem import GPU
from tierloom.units import GIB

if TYPE_CHECKING:
    from tierloom.offload.answers import InferAnswer
    from tierloom.offload.speculation import Speculation


NGRAM = 4
"""Longest n-gram that is looked for in the prompt."""


def vllm(answer: InferAnswer) -> str:
    """A command line: weights and KV cache outside the GPU, tiers through the process's memory policy."""
    problem, placement = answer.plan.problem, answer.plan.placement
    policy = process_policy(answer)
    notes = list(policy.notes)
    running = min(placement.batch, max(1, int(placement.kv.get(GPU, 0.0) / problem.kv_bytes + 1e-6)))
    if running < placement.batch:
        notes.append(
            f"# {running} of {placement.batch} sequences run at a time: vLLM attends on the GPU, where their KV fits"
        )
    words = [
        f"{policy.prefix}vllm serve {problem.model.name}",
        f"--max-model-len {problem.variation.longest or problem.prompt + problem.generate}",
        f"--max-num-seqs {running}",
        f"--gpu-memory-utilization {problem.runtime.gpu_margin:g}",
    ]
    if problem.shared:
        words.append("--enable-prefix-caching")
    words += _drafting(problem.speculation)
    weights, cache = weights_on_host(answer), kv_on_host(answer)
    if weights > 0.0:
        words.append(f"--cpu-offload-gb {math.ceil(weights / GIB)}")
    if cache > 0.0:
        words.append(f"--kv-offloading-size {math.ceil(cache / GIB)} --kv-offloading-backend native")
    return "\n".join([*notes, " ".join(words)]) + "\n"


def _drafting(speculation: Speculation) -> list[str]:
    """Options of `vllm/config/speculative.py`; n-grams of the prompt where no model drafts."""
    if not speculation.tokens:
        return []
    drafted = speculation.draft
    by = {"model": drafted.name} if drafted else {"method": "ngram", "prompt_lookup_max": NGRAM}
    return [f"--speculative-config '{json.dumps({**by, 'num_speculative_tokens': speculation.tokens})}'"]
