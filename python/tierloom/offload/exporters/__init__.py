"""A plan in the words of the tools that people run: one file a tool, each an entry of `TOOLS`.

Contract: a tool's function takes the answer of `offload.infer` and returns the text of a command line or
configuration file that the tool's own parser accepts, with what the tool cannot express said in comments
where its format has any. It raises a ``RequestError`` when the tool cannot run the model at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.exporters.deepspeed import deepspeed
from tierloom.offload.exporters.flexgen import flexgen
from tierloom.offload.exporters.ktransformers import ktransformers
from tierloom.offload.exporters.llama_cpp import llama_cpp
from tierloom.offload.exporters.lmcache import lmcache
from tierloom.offload.exporters.tierloom_plan import tierloom_plan
from tierloom.offload.exporters.vllm import vllm

if TYPE_CHECKING:
    from collections.abc import Callable

    from tierloom.offload.answers import InferAnswer

TOOLS: dict[str, Callable[[InferAnswer], str]] = {
    "flexgen": flexgen,
    "llama.cpp": llama_cpp,
    "vllm": vllm,
    "deepspeed": deepspeed,
    "ktransformers": ktransformers,
    "lmcache": lmcache,
    "tierloom-plan": tierloom_plan,
}
"""Tools by name."""

EXECUTES: dict[str, set[str]] = {
    "flexgen": {"flexgen"},
    "llama.cpp": {"resident"},
    "vllm": {"paged", "copied"},
    "deepspeed": {"copied"},
    "ktransformers": {"resident"},
    "lmcache": {"copied"},
}
"""Runtimes that a tool executes as; a plan for another predicts another tool's speed."""


def mismatch(tool: str, answer: InferAnswer) -> str | None:
    """What to tell a person whose plan is for another kind of runtime than the tool is; none when it fits."""
    planned, fitting = answer.plan.problem.runtime.name, EXECUTES.get(tool)
    if fitting is None or planned in fitting:
        return None
    executes = "` or `".join(sorted(fitting))
    return f"{tool} executes as `{executes}`, the plan is for `{planned}`: plan with --runtime for its speed"


def emit(tool: str, answer: InferAnswer) -> str:
    """The plan of an answer for a tool.

    Raises:
        RequestError: There is no such tool, or it cannot run the model.
    """
    if tool not in TOOLS:
        message = f"there is no tool `{tool}` to write for\nhint: there are {', '.join(TOOLS)}"
        raise RequestError(message)
    return TOOLS[tool](answer)
