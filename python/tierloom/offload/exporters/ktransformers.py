"""KTransformers: a command line of ``kt run`` (kt-kernel 0.7); experts in host memory, the rest on the GPU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.exporters.common import process_policy
from tierloom.offload.problem import GPU

if TYPE_CHECKING:
    from tierloom.offload.answers import InferAnswer


def ktransformers(answer: InferAnswer) -> str:
    """A command line; experts of a layer that the GPU keeps, CPU threads, and the node of the threads.

    Raises:
        RequestError: The model has no experts.
    """
    problem, placement = answer.plan.problem, answer.plan.placement
    if not problem.model.experts:
        message = f"KTransformers places experts; {problem.model.name} has none\nhint: write for llama.cpp or vllm"
        raise RequestError(message)
    policy = process_policy(answer)
    experts = next(part for part in problem.model.parts if part.name == "experts")
    on_gpu = answer.whole.tensors["experts"][GPU] // experts.layers
    tokens = math.ceil(placement.batch * problem.stored_tokens)
    command = (
        f"{policy.prefix}kt run {problem.model.name} --gpu-experts {on_gpu} --cpu-threads {problem.host.cores} "
        f"--numa-nodes 1 --max-running-requests {placement.batch} --max-total-tokens {tokens} "
        f"--chunked-prefill-size {problem.runtime.chunk_tokens}"
    )
    return "\n".join([*policy.notes, command]) + "\n"
