"""LLM offloading that knows its memory tiers: which tensor goes where, how big the batch, how fast it runs.

`infer` answers for serving, `train` for training, `serve` for the KV caches of idle sessions, `cpu` for
decode without a GPU. Each is one question to engines that know no files (`planner`, `user_search`,
`training`, `session_caches`, `cpu_only` and their helpers); `catalog` is the door to files.

Example:
    >>> answer = infer("opt-66b", "a10", "liu-a-llm", throughput=True)
    >>> answer.plan.placement.batch
    60
"""

from tierloom.offload.answers import InferAnswer
from tierloom.offload.other_requests import TrainAnswer, cpu, serve, train
from tierloom.offload.requests import infer

__all__ = ["InferAnswer", "TrainAnswer", "cpu", "infer", "serve", "train"]
