"""Asking the other planners: training, sessions' KV caches, inference on the CPU alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

from tierloom.arguments import each, or_none, reads, table, whole
from tierloom.errors import PlacementError, RequestError
from tierloom.offload import cpu_only, session_caches, train_planner
from tierloom.offload.columns import STEPS, step_rows
from tierloom.offload.requests import the_gpu, the_host, the_model
from tierloom.tables import Charted, Tabular

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.columns import Column, Row
    from tierloom.nouns import Machine
    from tierloom.offload.documents import CpuDoc, RatioDoc, ServeDoc, SessionsDoc, TrainDoc, TrainPolicyDoc
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


@reads()
def serve(
    model: str | Model,
    gpu: str | Gpu,
    machine: str | Machine | Host,
    *,
    sessions: int,
    context: int,
    socket: str | None = None,
    nodes: Sequence[str] | None = None,
    kv_bits: float | None = None,
) -> ServeDoc:
    """Places the KV caches of idle sessions, and says what a session waits for its own.

    Args:
        model: As for :func:`infer`.
        gpu: As for :func:`infer`.
        machine: As for :func:`infer`.
        sessions: Idle sessions whose KV caches are kept.
        context: Tokens of a session.
        socket: As for :func:`infer`.
        nodes: As for :func:`infer`.
        kv_bits: As for :func:`infer`.

    Raises:
        RequestError: A name or number is wrong.
        PlacementError: Not all sessions fit.

    Example:
        >>> serve("llama-3.1-70b", "h100", "liu-a", sessions=30, context=32768)["tiers"][0]["tier"]
        'ldram'
    """
    served, on = the_model(model, None, kv_bits), the_gpu(gpu)
    host = the_host(machine, socket, nodes)
    plan = session_caches.serve(served, on, host, sessions=sessions, context=context)
    return {
        "model": served.name,
        "gpu": on.name,
        "machine": host.name,
        "context": context,
        "sessions": sessions,
        "session_bytes": plan.session_bytes,
        "recompute_s": plan.recompute_s,
        "break_even_gb_s": plan.break_even_bytes_s / 1e9,
        "mean_s": plan.mean_s,
        "tiers": [cast("SessionsDoc", asdict(row)) for row in plan.tiers],
    }


@reads(ratios=or_none(each(table(whole()))))
def cpu(
    model: str | Model,
    machine: str | Machine | Host,
    *,
    threads: int | None = None,
    backends: int = 1,
    context: int = 2048,
    ratios: Sequence[Mapping[str, int]] | None = None,
    socket: str | None = None,
    weight_bits: float | None = None,
) -> CpuDoc:
    """Decode on the CPU alone under ratios of weighted interleaving.

    Args:
        model: As for :func:`infer`.
        machine: As for :func:`infer`.
        threads: Threads of all backends; the cores by default.
        backends: Processes, each with a copy.
        context: Tokens a step attends to.
        ratios: Pages by tier; by default all small ratios of the nearest memory and the first CXL memory.
        socket: As for :func:`infer`.
        weight_bits: As for :func:`infer`.

    Raises:
        RequestError: A name or number is wrong, or there is only one memory.
        PlacementError: No ratio holds the model.

    Example:
        >>> cpu("llama-7b", "bytedance-spr-a1000", weight_bits=4.5)["best"]
        {'ldram': 4, 'cxl': 1}
    """
    served, host = the_model(model, weight_bits), the_host(machine, socket)
    used = threads or host.cores
    tried = [_ratio(served, host, pages, used, backends, context) for pages in ratios or _default_ratios(host)]
    fitting = [row for row in tried if "tokens_s" in row]
    if not fitting:
        message = f"{tried[0]['problem']}\nhint: take fewer backends, or fewer bits a weight"
        raise PlacementError(message)
    return {
        "model": served.name,
        "machine": host.name,
        "threads": used,
        "backends": backends,
        "context": context,
        "ratios": tried,
        "best": max(fitting, key=lambda row: row["tokens_s"])["pages"],
    }


def _default_ratios(host: Host) -> list[dict[str, int]]:
    near = host.memories[0]
    far = [tier for tier in host.memories[1:] if tier.kind == "cxl"] or list(host.memories[1:])
    if not far:
        message = f"{host.name} has one memory: there is nothing to interleave with\nhint: take another machine"
        raise RequestError(message)
    return cpu_only.ratios([near.name, far[0].name])


def _ratio(model: Model, host: Host, pages: Mapping[str, int], threads: int, backends: int, context: int) -> RatioDoc:
    try:
        point = cpu_only.decode(model, host, pages, threads=threads, backends=backends, context=context)
    except PlacementError as error:
        return {"pages": dict(pages), "problem": str(error).split("\nhint:", maxsplit=1)[0]}
    return {
        "pages": dict(point.weights),
        "tokens_s": point.tokens_s,
        "gb_s": point.bytes_s / 1e9,
        "latency_ns": point.latency_s * 1e9,
        "bound": point.bound,
    }


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
