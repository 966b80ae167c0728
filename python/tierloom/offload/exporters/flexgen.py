"""FlexGen: a command line of ``flexgen.flex_opt`` (flexgen 0.1.8), which knows OPT models only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.exporters.common import process_policy
from tierloom.offload.placement import share
from tierloom.offload.problem import GPU

if TYPE_CHECKING:
    from tierloom.offload.answers import InferAnswer


def flexgen(answer: InferAnswer) -> str:
    """A command line; tiers of the host through the process's memory policy, as FlexGen has none.

    Raises:
        RequestError: The model is none of the OPT family.
    """
    problem, placement = answer.plan.problem, answer.plan.placement
    if problem.model.family != "opt":
        message = f"FlexGen runs OPT models, not {problem.model.name}\nhint: write for llama.cpp or vllm"
        raise RequestError(message)
    policy = process_policy(answer)
    shares = [placement.weights_by_place, placement.kv, placement.hidden]
    percents = [percent for placed in shares for percent in _percents(share(placed, GPU))]
    command = (
        f"{policy.prefix}python -m flexgen.flex_opt --model facebook/{problem.model.name} "
        f"--gpu-batch-size {placement.gpu_batch} --num-gpu-batches {placement.gpu_batches} "
        f"--percent {' '.join(map(str, percents))} --prompt-len {problem.prompt} --gen-len {problem.generate}"
    )
    attention = " --cpu-cache-compute" if problem.runtime.cpu_attention else ""
    return "\n".join([*policy.notes, command + attention]) + "\n"


def _percents(on_gpu: float) -> tuple[int, int]:
    """Whole per cent on the GPU, rounded down so that it cannot overflow, and the rest on the CPU."""
    percent = int(on_gpu * 100 + 1e-6)
    return percent, 100 - percent
