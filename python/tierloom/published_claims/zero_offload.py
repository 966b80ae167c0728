"""Training with ZeRO-Offload in the 2024 study of real CXL cards.

The study's scripts (its artifact, sherrywong1220/CXL_Evaluation) give batches and 1,024 tokens a sequence. The
efficiency of its GPU is not known, but that the optimizer takes 31 % of a step of the 8 billion parameter
model at batch 3. That share is taken as an input: it fixes how fast the GPU is, for the smaller models too,
and so what a slower optimizer can do to a step.
"""

from __future__ import annotations

from dataclasses import replace

from tierloom.offload import train_planner
from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host
from tierloom.offload.train_planner import TrainPlan, TrainProblem
from tierloom.published_claims.computation import Runs, computes, task
from tierloom.published_claims.ledger import settings
from tierloom.published_claims.offload import CARD, DOCUMENT, SETS, study_host

ANCHOR = "gpt2-8b"
"""The model whose optimizer's share of a step is published."""


@task(weight=0.01)
def anchored(*, model: str) -> dict[str, dict[str, float]]:
    """Interleaved steps by set of memories, on a GPU as fast as the published share says."""
    gpu, host = _gpu(), study_host()
    plans = {name: _interleaved(model, gpu, host.only(tiers)) for name, tiers in SETS.items()}
    return {name: {"step": plan.step_s, **plan.pieces} for name, plan in plans.items()}


def _gpu() -> Gpu:
    """The card, at the efficiency that the published share implies."""
    card, host = load_gpu(CARD), study_host()
    pieces = _interleaved(ANCHOR, card, host.only(SETS["L"])).pieces
    wanted = pieces["optimizer"] * (1.0 / settings(DOCUMENT)["optimizer_share"] - 1.0) - pieces["parameters in"]
    slower = (pieces["forward"] + pieces["backward"]) / wanted
    return replace(card, prefill_efficiency=card.prefill_efficiency * slower)


def _interleaved(name: str, gpu: Gpu, host: Host) -> TrainPlan:
    """A step at the study's batch; at the largest that fits where its batch is not known, which is its rule."""
    model, given = load_model(name), settings(DOCUMENT)["training_batches"].get(name)
    tokens = min(TOKENS, model.max_positions)
    return train_planner.plan(TrainProblem(model=model, gpu=gpu, host=host, sequence=tokens, batch=given), "interleave")


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
def spread(runs: Runs, *, model: str, memories: list[str]) -> float:
    """Slowest of some sets over the quickest, less one."""
    (found,) = runs(anchored(model=model))
    seconds = [float(found[each]["step"]) for each in memories]
    return max(seconds) / min(seconds) - 1.0


TOKENS = 1024
"""Of a sequence (scripts of the artifact), where the model was made for so many."""


@computes
def most_sequences(_runs: Runs, *, model: str) -> float:
    """Sequences of the largest batch that fits the GPU."""
    problem = TrainProblem(model=load_model(model), gpu=load_gpu(CARD), host=study_host(), sequence=TOKENS)
    return float(train_planner.most_sequences(problem))


@computes
def most_movement(runs: Runs, *, models: list[str], memories: list[str]) -> float:
    """Largest share of a step that exposed copies take: parameters come back so, gradients go behind backward."""
    steps = [found[each] for found in _by_model(runs, models) for each in memories]
    return max(float(step["parameters in"] / step["step"]) for step in steps)


@computes
def outweighs(runs: Runs, *, models: list[str], memories: list[str], piece: str, other: str) -> bool:
    """Whether a piece of a step takes longer than another, with each model over each set."""
    steps = [found[each] for found in _by_model(runs, models) for each in memories]
    return all(step[piece] > step[other] for step in steps)


@computes
def takes_longer(runs: Runs, *, models: list[str], piece: str, memories: str, against: str) -> bool:
    """Whether a piece of a step takes longer over one set than over another, with each model."""
    return all(found[memories][piece] > found[against][piece] for found in _by_model(runs, models))


@computes
def is_no_faster(runs: Runs, *, models: list[str], memories: str, against: str) -> bool:
    """Whether no model's step is shorter over one set than over another."""
    return all(found[memories]["step"] >= found[against]["step"] for found in _by_model(runs, models))


def _by_model(runs: Runs, models: list[str]) -> list[dict[str, dict[str, float]]]:
    found: list[dict[str, dict[str, float]]] = runs(*[anchored(model=name) for name in models])
    return found
