"""Training with ZeRO-Offload in the 2024 study of real CXL cards.

The study's scripts (its artifact, sherrywong1220/CXL_Evaluation) give batches and 1,024 tokens a sequence. The
efficiency of its GPU is not known, but that the optimizer takes 31 % of a step of the 8 billion parameter
model at batch 3. That share is taken as an input: it fixes how fast the GPU is, for the smaller models too,
and so what a slower optimizer can do to a step.
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


ANCHOR = "gpt2-8b"
"""The model whose optimizer's share of a step is published."""


@task(weight=0.01)
def anchored(*, model: str) -> dict[str, dict[str, float]]:
    """Interleaved steps by set of memories, on a GPU as fast as the published share says."""
    gpu, host = _gpu(), host_of(Machine.load(SERVER))
    plans = {name: _interleaved(model, gpu, host.only(tiers)) for name, tiers in SETS.items()}
    return {name: {"step": plan.step_s, **plan.pieces} for name, plan in plans.items()}


def _gpu() -> Gpu:
    """The card, at the efficiency that the published share implies."""
    card, host = load_gpu(CARD), host_of(Machine.load(SERVER))
    pieces = _interleaved(ANCHOR, card, host.only(SETS["L"])).pieces
    wanted = pieces["optimizer"] * (1.0 / settings(DOCUMENT)["optimizer_share"] - 1.0) - pieces["parameters in"]
    slower = (pieces["forward"] + pieces["backward"]) / wanted
    return replace(card, prefill_efficiency=card.prefill_efficiency * slower)


def _interleaved(model: str, gpu: Gpu, host: Host) -> TrainPlan:
    batch = settings(DOCUMENT)["training_batches"][model]
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


@computes
def spread(runs: Runs, *, model: str) -> float:
    """Slowest set over quickest, less one."""
    (found,) = runs(anchored(model=model))
    seconds = [float(pieces["step"]) for pieces in found.values()]
    return max(seconds) / min(seconds) - 1.0


@computes
def movement(_runs: Runs, *, model: str) -> float:
    """Share of a long step that data on its way takes."""
    linked = replace(load_gpu(CARD), in_gb_s=LINK_GB_S, out_gb_s=LINK_GB_S)
    host = host_of(Machine.load(SERVER)).only(SETS["L"])
    found = training.plan(TrainProblem(model=load_model(model), gpu=linked, host=host, batch=LONG_BATCH), "interleave")
    return float(found.pieces["parameters in"] / found.step_s)
