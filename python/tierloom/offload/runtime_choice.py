"""Which runtime serves a model on a machine: chosen by what fits where, and said why.

OPT is FlexGen's; a model that fits the GPU with its users' caches is vLLM's; experts that do not fit are
KTransformers', whose CPU kernels compute them where they lie; any other split is llama.cpp's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.offload.runtime import COPIED, FLEXGEN, PAGED, RESIDENT, Runtime
from tierloom.units import bytes_text, count_text

if TYPE_CHECKING:
    from tierloom.offload.problem import Problem

USUAL_TOOL = {FLEXGEN.name: "flexgen", COPIED.name: "deepspeed", PAGED.name: "vllm", RESIDENT.name: "llama.cpp"}
"""The tool that executes as a runtime does, where a person named the runtime."""

NAMES = {"flexgen": "FlexGen", "vllm": "vLLM", "ktransformers": "KTransformers", "deepspeed": "DeepSpeed"}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A runtime, the tool that executes so, and why.

    Attributes:
        runtime: How it executes.
        tool: Name of its exporter; none where no tool that is known executes so.
        why: The reason, as the end of a sentence.
    """

    runtime: Runtime
    tool: str | None
    why: str

    @property
    def sentence(self) -> str:
        """The choice in one sentence."""
        named = NAMES.get(self.tool or "", self.tool) or f"A runtime like `{self.runtime.name}`"
        return f"Planned for {named}, {self.why}." if self.tool else f"{named}, {self.why}."


def asked_for(runtime: Runtime, experts: int = 0) -> Choice:
    """The choice of a person who named a runtime."""
    tool = "ktransformers" if runtime.name == RESIDENT.name and experts else USUAL_TOOL.get(runtime.name)
    return Choice(runtime=runtime, tool=tool, why=f"because `{runtime.name}` was asked for")


def choose(problem: Problem, *, gguf: bool = False) -> Choice:
    """The runtime for a question, whatever runtime it has now.

    Args:
        problem: What is asked.
        gguf: The model is a GGUF file, which is llama.cpp's own format.
    """
    model, gpu = problem.model, problem.gpu
    users = problem.batch or 1
    who = count_text(users, "user")
    if model.family == "opt":
        return Choice(runtime=FLEXGEN, tool="flexgen", why="which offloads OPT models")
    if gguf:
        return Choice(runtime=RESIDENT, tool="llama.cpp", why="because the model is a GGUF file")
    needed, room = on_gpu_bytes(problem, users), PAGED.gpu_margin * gpu.memory_bytes
    if needed <= room:
        why = (
            f"because the weights and the KV cache of {who} fit {gpu.name}: {bytes_text(needed)} of {bytes_text(room)}"
        )
        return Choice(runtime=PAGED, tool="vllm", why=why)
    why = f"because {model.name} with {who} takes {bytes_text(needed)} and {gpu.name} may fill {bytes_text(room)}"
    dense = sum(part.bytes for part in model.parts if part.active != "routed")
    if model.experts and needed - model.weight_bytes + dense <= room:
        return Choice(runtime=RESIDENT, tool="ktransformers", why=f"{why}, but all except the experts fits it")
    return Choice(runtime=RESIDENT, tool="llama.cpp", why=f"{why}: it is split between GPU and host")


def on_gpu_bytes(problem: Problem, users: int) -> float:
    """GPU memory that a question takes with everything on the GPU."""
    whole = replace(problem, runtime=PAGED, batch=users)
    cached = users * (whole.kv_bytes + whole.draft_kv_bytes)
    return problem.model.weight_bytes + cached + whole.gpu_work_bytes(users)
