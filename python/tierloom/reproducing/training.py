"""Training with ZeRO-Offload in the 2024 study of real CXL cards.

The study prints neither sequence length nor efficiency of its GPU, but that the optimizer takes 31 % of a
step of the 8 billion parameter model at batch 3. That share is taken as an input: it fixes how long the
passes take, and with them what a slower optimizer can do to a step.
"""

from __future__ import annotations

from dataclasses import replace

from tierloom.nouns import Machine
from tierloom.offload import training
from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host, host_of
from tierloom.offload.training import TrainPlan, TrainProblem
from tierloom.reproducing.computing import Runs, computes, task
from tierloom.reproducing.ledger import settings
from tierloom.reproducing.offloading import CARD, DOCUMENT, LINK_GB_S, SERVER, SETS

LONG_BATCH = 8
"""Sequences of a step that is long enough for the study's remark on data movement."""


@task(weight=0.01)
def anchored(*, model: str) -> dict[str, dict[str, float]]:
    """Interleaved steps by set of memories, with passes as long as the published share says."""
    card, host = load_gpu(CARD), host_of(Machine.load(SERVER))
    pieces = _interleaved(model, card, host.only(SETS["L"])).pieces
    wanted = pieces["optimizer"] * (1.0 / settings(DOCUMENT)["optimizer_share"] - 1.0) - pieces["parameters in"]
    slower = (pieces["forward"] + pieces["backward"]) / wanted
    fitted = replace(card, prefill_efficiency=card.prefill_efficiency * slower)
    plans = {name: _interleaved(model, fitted, host.only(tiers)) for name, tiers in SETS.items()}
    return {name: {"step": plan.step_s, **plan.pieces} for name, plan in plans.items()}


def _interleaved(model: str, gpu: Gpu, host: Host) -> TrainPlan:
    batch = settings(DOCUMENT)["training_batch"]
    return training.plan(TrainProblem(model=load_model(model), gpu=gpu, host=host, batch=batch), "interleave")


@computes
def optimizer_share(runs: Runs, *, model: str, memories: str) -> float:
    """Share of a step that the optimizer takes."""
    found = runs(anchored(model=model))[0][memories]
    return float(found["optimizer"] / found["step"])


@computes
def slower(runs: Runs, *, model: str, piece: str, memories: str, against: str) -> float:
    """By how much a piece of a step takes longer over one set than over another."""
    found = runs(anchored(model=model))[0]
    return float(found[memories][piece] / found[against][piece]) - 1.0


@task(weight=0.01)
def widest(*, model: str) -> dict[str, float]:
    """Interleaved steps by set at the largest batch that fits the GPU, s."""
    card, host = load_gpu(CARD), host_of(Machine.load(SERVER))
    problems = {
        name: TrainProblem(model=load_model(model), gpu=card, host=host.only(tiers)) for name, tiers in SETS.items()
    }
    return {name: training.plan(problem, "interleave").step_s for name, problem in problems.items()}


@computes
def spread(runs: Runs, *, model: str) -> float:
    """Slowest set over quickest, less one."""
    (seconds,) = runs(widest(model=model))
    return float(max(seconds.values()) / min(seconds.values())) - 1.0


@computes
def movement(_runs: Runs, *, model: str) -> float:
    """Share of a long step that data on its way takes."""
    linked = replace(load_gpu(CARD), in_gb_s=LINK_GB_S, out_gb_s=LINK_GB_S)
    host = host_of(Machine.load(SERVER)).only(SETS["L"])
    found = training.plan(TrainProblem(model=load_model(model), gpu=linked, host=host, batch=LONG_BATCH), "interleave")
    return float(found.pieces["parameters in"] / found.step_s)
