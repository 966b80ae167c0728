"""Training on one GPU with the optimizer's states on the host: a request in names and figures in, the answer out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.arguments import reads
from tierloom.errors import PlacementError
from tierloom.notebook_tables import Charted, Tabular
from tierloom.offload import train_planner
from tierloom.offload.columns import STEPS, step_rows
from tierloom.offload.system import the_gpu, the_host, the_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.columns import Column, Row
    from tierloom.nouns import Machine
    from tierloom.offload.documents import TrainDoc, TrainPolicyDoc
    from tierloom.offload.gpu import Gpu
    from tierloom.offload.host import Host
    from tierloom.offload.model import Model
    from tierloom.offload.train_planner import Stage, TrainPlan, TrainProblem

TRAIN_ASSUMPTIONS = (
    "18 bytes a parameter on the host, 44 moved by a step of Adam: DeepSpeed's buffers, single GPU",
    "Adam's arithmetic takes 1.13 ns a parameter on 32 cores and partly overlaps its memory traffic",
    "gradients go out behind the backward pass in fp32; parameters come back after the update, exposed",
)
ESTIMATE = {"zero-offload": 24.0, "zero-3": 27.0}
"""Bytes a parameter that DeepSpeed's own estimators ask of the host, by stage."""


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainAnswer(Charted, Tabular):
    """The chosen placement of the optimizer's states, and what other policies would bring.

    A row a policy, the chosen placement first.
    """

    plan: TrainPlan
    rivals: Mapping[str, TrainPlan | str]

    @property
    def data(self) -> TrainDoc:
        """The answer as a document, as the verb prints it in JSON."""
        return _train_document(self)

    @property
    def columns(self) -> Sequence[Column]:
        """Of a policy."""
        return STEPS

    def told(self) -> list[Row]:
        """A row a policy: time of a step and its pieces, throughput, or why it cannot be used."""
        return step_rows(self.data["policies"])

    def __repr__(self) -> str:
        told = self.data
        where = f"{told['model']} on {told['gpu']} and {told['machine']}"
        return f"<TrainAnswer for {where}: {told['policies'][0]['step_s']:.3g} s a step of {told['batch']} sequences>"


@reads()
def train(
    model: str | Model,
    gpu: str | Gpu,
    machine: str | Machine | Host,
    *,
    sequence: int = 1024,
    batch: int | None = None,
    accumulate: int = 1,
    stage: Stage = "zero-offload",
    recompute: bool = True,
    delayed: bool = False,
    compare: Sequence[str] = ("interleave", "first-touch"),
    socket: str | None = None,
    nodes: Sequence[str] | None = None,
    link_gb_s: float | None = None,
) -> TrainAnswer:
    """Places the optimizer's states of a model that is trained on one GPU.

    Args:
        model: As for :func:`infer`.
        gpu: As for :func:`infer`.
        machine: As for :func:`infer`.
        sequence: Tokens of a sequence.
        batch: Sequences of a micro-batch; the most that fit by default.
        accumulate: Micro-batches to one update.
        stage: What is on the host: the optimizer's states; with ``"zero-3"`` the parameters, too.
        recompute: Compute activations again, or keep them.
        delayed: The update overlaps the next step's passes.
        compare: Policies to compare with: interleave, first-touch, prefer:NODE.
        socket: As for :func:`infer`.
        nodes: As for :func:`infer`.
        link_gb_s: As for :func:`infer`.

    Raises:
        RequestError: A name or number is wrong.
        PlacementError: It does not fit; the message says by how many GiB and what would.

    Example:
        >>> train("gpt2-8b", "a10", "liu-a").plan.problem.batch
        8
    """
    problem = train_planner.TrainProblem(
        model=the_model(model),
        gpu=the_gpu(gpu, link_gb_s),
        host=the_host(machine, socket, nodes),
        sequence=sequence,
        batch=batch,
        accumulate=accumulate,
        stage=stage,
        recompute=recompute,
        delayed=delayed,
    )
    plan = train_planner.plan(problem)
    return TrainAnswer(plan=plan, rivals={name: _train_rival(problem, name) for name in compare})


def _train_rival(problem: TrainProblem, policy: str) -> TrainPlan | str:
    try:
        return train_planner.plan(problem, policy)
    except PlacementError as error:
        return str(error).split("\nhint:", maxsplit=1)[0]


def _train_document(answer: TrainAnswer) -> TrainDoc:
    plan, problem = answer.plan, answer.plan.problem
    rows = [_train_policy(plan.policy, plan, plan)]
    rows += [_train_policy(name, rival, plan) for name, rival in answer.rivals.items()]
    return {
        "model": problem.model.name,
        "parameters": problem.model.parameters,
        "gpu": problem.gpu.name,
        "machine": problem.host.name,
        "tiers": [tier.name for tier in problem.host.memories],
        "stage": problem.stage,
        "sequence": problem.sequence,
        "batch": problem.batch or 0,
        "accumulate": problem.accumulate,
        "recompute": problem.recompute,
        "gpu_bytes": plan.gpu_bytes,
        "host_bytes": sum(plan.held.values()),
        "deepspeed_estimate_bytes": ESTIMATE[problem.stage] * problem.model.parameters,
        "policies": rows,
        "assumptions": [*problem.model.guesses, *TRAIN_ASSUMPTIONS],
    }


def _train_policy(name: str, plan: TrainPlan | str, best: TrainPlan) -> TrainPolicyDoc:
    if isinstance(plan, str):
        return {"policy": name, "problem": plan}
    return {
        "policy": name,
        "step_s": plan.step_s,
        "tokens_s": plan.tokens_s,
        "against": plan.step_s / best.step_s - 1.0,
        "pieces_s": dict(plan.pieces),
        "shares": {state: dict(placed) for state, placed in plan.shares.items()},
        "held_bytes": dict(plan.held),
    }
