"""DeepSpeed: the JSON of ``deepspeed.initialize``, for ZeRO-Inference and for training with ZeRO-Offload.

Keys are those of `deepspeed/runtime/zero/config.py` and `offload_config.py`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tierloom.offload.exporters.common import weights_on_host

if TYPE_CHECKING:
    from tierloom.offload.answers import InferAnswer
    from tierloom.offload.train_planner import TrainPlan

BUFFERS = 5
"""Layers under way between host and GPU: DeepSpeed's default."""


def deepspeed(answer: InferAnswer) -> str:
    """A configuration; JSON has no comments, so the memory policy is for the process that reads it."""
    problem, placement = answer.plan.problem, answer.plan.placement
    elements = max(part.parameters // part.layers for part in problem.model.parts)
    zero: dict[str, object] = {"stage": 3, "contiguous_gradients": True, "overlap_comm": True}
    if weights_on_host(answer) > 0.0:
        block = any(tier.block for tier in problem.host.tiers)
        zero["offload_param"] = {
            "device": "nvme" if block else "cpu",
            "pin_memory": True,
            "buffer_count": BUFFERS,
            "buffer_size": elements,
            **({"nvme_path": "/nvme"} if block else {}),
        }
    config = {
        "train_micro_batch_size_per_gpu": placement.batch,
        "bf16": {"enabled": True},
        "zero_optimization": zero,
    }
    return json.dumps(config, indent=2) + "\n"


def deepspeed_training(plan: TrainPlan) -> str:
    """A configuration for a plan of `offload train`; Adam's states on the host, in ZeRO-3 the parameters too."""
    problem = plan.problem
    on_host = {"device": "cpu", "pin_memory": True}
    zero: dict[str, object] = {
        "stage": 3 if problem.stage == "zero-3" else 2,
        "contiguous_gradients": True,
        "overlap_comm": True,
        "offload_optimizer": on_host,
    }
    if problem.stage == "zero-3":
        zero["offload_param"] = on_host
    config = {
        "train_micro_batch_size_per_gpu": problem.batch,
        "gradient_accumulation_steps": problem.accumulate,
        "bf16": {"enabled": True},
        "zero_optimization": zero,
    }
    return json.dumps(config, indent=2) + "\n"
