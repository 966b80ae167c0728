"""LLM offloading that knows its memory tiers: which tensor goes where, how big the batch, how fast it runs.

`infer` answers for serving, `train` for training, `serve` for the KV caches of idle sessions, `cpu` for
decode without a GPU: `inference`, `training`, `idle_sessions`, `cpu_decode`. Each is one question to engines that know
no files (`planner`, `user_search`, `train_planner`, `session_caches`, `cpu_only` and their helpers); `system` reads
what a question names, and `catalog` is the door to files.

Example:
    >>> from tierloom.offload import infer
    >>> answer = infer("opt-66b", "a10", "liu-a-llm", throughput=True)
    >>> answer.plan.placement.batch
    60
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.on_demand import attribute

if TYPE_CHECKING:
    from tierloom.offload.answers import InferAnswer
    from tierloom.offload.cpu_decode import cpu
    from tierloom.offload.idle_sessions import serve
    from tierloom.offload.inference import infer
    from tierloom.offload.training import TrainAnswer, train

__all__ = ["InferAnswer", "TrainAnswer", "cpu", "infer", "serve", "train"]

HOMES = {
    "answers": ("InferAnswer",),
    "cpu_decode": ("cpu",),
    "idle_sessions": ("serve",),
    "inference": ("infer",),
    "training": ("TrainAnswer", "train"),
}
"""Modules by what they offer here, as in :mod:`tierloom`: they bring SciPy, which a table of an answer does without."""


def __getattr__(name: str) -> object:
    """Loads the module of a name when it is asked for."""
    return attribute(__name__, HOMES, name)


def __dir__() -> list[str]:
    """What there is to complete, loaded or not."""
    return sorted({*globals(), *__all__})
