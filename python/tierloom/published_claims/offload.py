"""Serving language models in the 2024 study of real CXL cards: FlexGen over one to three host memories.

Two constants were fitted, once, to the three decode ratios of figure 17: they are the amplification and the
attention rate of the runtime `FLEXGEN`. What the study ran with (its batches, shares of the cache, gains in
prefill) are settings of the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

from tierloom.nouns import Machine
from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.flexgen import ALL_WEIGHTS_ON_CPU, Blind, Constants, opt_shape
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host, block_tier, host_of
from tierloom.offload.placement import Placement
from tierloom.offload.problem import GPU, Problem, copy_s_per_byte
from tierloom.offload.runtime import FLEXGEN
from tierloom.offload.step_times import Steps, steps
from tierloom.offload.tier_blind import footprint_gib
from tierloom.published_claims.computation import Runs, computes, task
from tierloom.published_claims.ledger import settings
from tierloom.units import GIB

SERVER, CARD, DOCUMENT = "liu-a-llm", "a10", "liu24"
MODELS = ("opt-66b", "llama-65b")
PROMPT, GENERATE = 2048, 256

LINK_GB_S = 20.0
"""Bandwidth of the A10's link that the fit took; the study prints none."""

SETS: dict[str, tuple[str, ...]] = {
    "L": ("ldram",),
    "L+C": ("ldram", "cxl"),
    "L+R": ("ldram", "rdram"),
    "L+R+C": ("ldram", "rdram", "cxl"),
}

SHAPES = {"opt-66b": (64, 9216, 36864, 72), "llama-65b": (80, 8192, 22016, 64)}
"""Layers, widths, heads as they were handed to FlexGen's planner: it counts two matrices of 22016 where
LLaMA has three."""

ONE_CAPACITY = "L+C"
"""The set whose capacity, batch and shares the comparison of media of one capacity was run with."""

DRIVE_BYTES = 2e12
"""More than is put there."""


@task(weight=0.3)
def blind(*, model: str, memories: str) -> dict[str, float]:
    """What FlexGen's planner answers at the study's constants, weights and hidden states in host memory."""
    gib = settings(DOCUMENT)["host_gib"][memories]
    shape = opt_shape(*SHAPES[model], PROMPT, GENERATE)
    constants = Constants(**settings(DOCUMENT)["planner"])
    found = Blind(
        shape=shape, gpu_bytes=24 * GIB, cpu_bytes=gib * GIB, forced=ALL_WEIGHTS_ON_CPU, constants=constants
    ).search()
    return {"batch": float(found.batch), "on_gpu": found.cache[0]} if found else {"batch": 0.0, "on_gpu": 0.0}


@computes
def batch(runs: Runs, *, model: str, memories: str) -> float:
    """Sequences at once that the published planner picks."""
    return float(runs(blind(model=model, memories=memories))[0]["batch"])


@computes
def cache_on_gpu(runs: Runs, *, model: str, memories: str) -> float:
    """Share of the KV cache that it leaves on the GPU."""
    return float(runs(blind(model=model, memories=memories))[0]["on_gpu"])


@computes
def footprint(_runs: Runs, *, model: str, memories: str) -> float:
    """Whole GiB of weights, KV cache and hidden states at the batch that the study ran."""
    return float(int(footprint_gib(_problem(model, study_host()), settings(DOCUMENT)["batches"][model][memories])))


@computes
def decode_gain(_runs: Runs, *, memories: str) -> float:
    """Decode throughput over near DRAM alone, less one, mean of the models."""
    return fmean(_rate(model, memories, "decode") / _rate(model, "L", "decode") - 1.0 for model in MODELS)


@computes
def apart(_runs: Runs, *, what: str, memories: str, against: str) -> float:
    """By how much throughput over two sets of one capacity differs either way, on the model where it is most."""
    return max(abs(gain) for gain in _gains(what, memories, against, MODELS))


def _cut(host: Host, capacity_bytes: float) -> Host:
    """The host with its last tier cut down to a capacity of all."""
    *kept, last = host.tiers
    left = capacity_bytes - sum(tier.capacity_bytes for tier in kept)
    return replace(host, tiers=(*kept, replace(last, capacity_bytes=min(left, last.capacity_bytes))))


@computes
def overall_gain(runs: Runs, *, memories: str) -> float:
    """Overall throughput over near DRAM alone, less one, from our decode gain and the measured prefill gain.

    Time a token is ``p (1 + prefill gain) + (1 - p) / (1 + decode gain)`` of that of near DRAM alone, where
    p is the share of prefill in it.
    """
    given, decode = settings(DOCUMENT), float(decode_gain(runs, memories=memories))
    share = float(given["prefill_share"])
    prefill = float(given["prefill_gains"][memories])
    return 1.0 / (share * (1.0 + prefill) + (1.0 - share) / (1.0 + decode)) - 1.0


@computes
def link_spread(_runs: Runs, *, copy_bytes: float) -> float:
    """Relative spread of the GPU's bandwidth over the memories for copies of one size."""
    gpu = load_gpu(CARD)
    seconds = [max(copy_s_per_byte(gpu, tier, copy_bytes), 1.0 / tier.read_bytes_s) for tier in study_host().memories]
    return max(seconds) / min(seconds) - 1.0


@computes
def gpu_extra_ns(_runs: Runs, *, memory: str) -> float:
    """What a copy of the GPU waits beyond one from near DRAM."""
    return study_host().tier(memory).gpu_extra_s * 1e9


def _with_drive(model: str, near: Host) -> Steps:
    """The steps of the study's batch with weights on its drive, at the rate that its own cost model has for it."""
    given = settings(DOCUMENT)["drive"]
    read = settings(DOCUMENT)["planner"]["from_disk"] * GIB / 1e9
    host = near.with_tier(block_tier(DRIVE_BYTES, read, read))
    problem, batch = _problem(model, host), settings(DOCUMENT)["batches"][model][ONE_CAPACITY]
    on_gpu = settings(DOCUMENT)["cache_on_gpu"][model][ONE_CAPACITY]
    weights = _beside_drive(host, given["weights"][model])
    cache = _beside_drive(host, given["cache"][model] / (1.0 - on_gpu))
    placement = Placement(
        batch=batch,
        gpu_batch=1,
        weights={part.name: _over(part.bytes, 0.0, weights) for part in problem.model.parts},
        kv=_over(batch * problem.kv_bytes, on_gpu, cache),
        hidden=_over(batch * problem.hidden_bytes, 0.0, _beside_drive(host, 0.0)),
    )
    return steps(problem, placement)


def _beside_drive(host: Host, share: float) -> dict[str, float]:
    """Shares of the drive and of near DRAM."""
    near, drive = (next(tier.name for tier in host.tiers if tier.block is kind) for kind in (False, True))
    return {near: 1.0 - share, drive: share}


@computes
def kv_cache_tb(
    _runs: Runs, *, layers: int, heads: int, head_width: int, value_bytes: int, batch: int, context: int
) -> float:
    """Keys and values of all heads and layers, TB."""
    return 2.0 * layers * heads * head_width * value_bytes * batch * context / 1e12


def _problem(model: str, host: Host) -> Problem:
    gpu: Gpu = replace(load_gpu(CARD), in_gb_s=LINK_GB_S, out_gb_s=LINK_GB_S)
    return Problem(model=load_model(model), gpu=gpu, host=host, runtime=FLEXGEN, prompt=PROMPT, generate=GENERATE)


def _as_run(model: str, host: Host, like: str) -> Steps:
    """The steps of the batch and shares that the study ran over a set, interleaved over a host by capacity."""
    problem, given = _problem(model, host), settings(DOCUMENT)
    batch, on_gpu = given["batches"][model][like], given["cache_on_gpu"][model][like]
    shares = {tier.name: tier.capacity_bytes / host.capacity_bytes for tier in host.tiers}
    placement = Placement(
        batch=batch,
        gpu_batch=1,
        weights={part.name: _over(part.bytes, 0.0, shares) for part in problem.model.parts},
        kv=_over(batch * problem.kv_bytes, on_gpu, shares),
        hidden=_over(batch * problem.hidden_bytes, 0.0, shares),
    )
    return steps(problem, placement)


def _over(size: float, gpu_share: float, shares: Mapping[str, float]) -> dict[str, float]:
    rest = size * (1.0 - gpu_share)
    return {GPU: size * gpu_share, **{name: rest * part for name, part in shares.items()}}


@computes
def parameters_b(
    _runs: Runs,
    *,
    layers: int,
    width: int,
    heads: int,
    head_width: int,
    ffn_width: int,
    ffn_matrices: int,
    vocabulary: int,
) -> float:
    """Parameters of a model with as many heads of keys and values as of queries, billions."""
    attention = 4 * width * heads * head_width
    return (layers * (attention + ffn_matrices * width * ffn_width) + vocabulary * width) / 1e9


@computes
def cache_over_weights(
    runs: Runs,
    *,
    layers: int,
    heads: int,
    head_width: int,
    value_bytes: int,
    batch: int,
    context: int,
    **rest: int,
) -> float:
    """KV cache of such a model over its parameters, in bytes; `rest` is what only the parameters depend on."""
    shared = {"layers": layers, "heads": heads, "head_width": head_width}
    billions = parameters_b(runs, **shared, **rest)
    cache_tb = kv_cache_tb(runs, **shared, value_bytes=value_bytes, batch=batch, context=context)
    return float(cache_tb) * 1e3 / (float(billions) * value_bytes)


WITH_DRIVE = "L+NVMe"
"""Near DRAM and a drive, where the other sets have a second memory."""


SECONDS: dict[str, Callable[[Steps], float]] = {
    "tokens_s": lambda found: found.total_s,
    "decode": lambda found: found.decode_s,
    "prefill": lambda found: found.prefill_s,
}
"""What throughput of the whole, of decode and of prefill is the inverse of."""


def study_host() -> Host:
    """The server as the study ran language models on it."""
    return host_of(Machine.load(SERVER))


@computes
def gpu_gb(_runs: Runs) -> float:
    """Memory of the GPU, GB as makers print it."""
    return load_gpu(CARD).memory_bytes / GIB


@computes
def link_gb_s(_runs: Runs) -> float:
    """What large copies to the GPU reach."""
    return load_gpu(CARD).in_gb_s


@computes
def link_is_narrowest(_runs: Runs) -> bool:
    """Whether the GPU's link carries less than any memory that it copies from."""
    link = load_gpu(CARD).in_gb_s * 1e9
    return all(link < tier.read_bytes_s for tier in study_host().memories)


@computes
def gpu_sees_more(_runs: Runs, *, memory: str, other: str) -> bool:
    """Whether a memory is further behind another for the GPU than for the processor."""
    mine, theirs = (study_host().tier(name) for name in (memory, other))
    return mine.gpu_extra_s - theirs.gpu_extra_s > mine.idle_s - theirs.idle_s


@computes
def model_parameters(_runs: Runs, *, model: str, unit: str) -> float:
    """Parameters of a model of the catalog, in millions or billions."""
    return load_model(model).parameters / {"million": 1e6, "billion": 1e9}[unit]


@computes
def capacity_gb(_runs: Runs, *, memories: str) -> float:
    """Capacity of a set of memories, GB as makers print it."""
    return study_host().only(SETS[memories]).capacity_bytes / GIB


@computes
def batch_growth(runs: Runs, *, model: str, memories: str) -> float:
    """By how many times its batch on near DRAM alone the planner's batch grows."""
    return float(batch(runs, model=model, memories=memories)) / float(batch(runs, model=model, memories="L")) - 1.0


@computes
def batch_rises(runs: Runs, *, model: str, order: list[str]) -> bool:
    """Whether the planner's batch rises from each set of memories to the next."""
    return all(less < more for less, more in pairwise(batch(runs, model=model, memories=each) for each in order))


@computes
def prefill_loss(_runs: Runs, *, memories: str) -> float:
    """Prefill throughput on near DRAM alone over that on a set, less one, mean of the models."""
    return fmean(_rate(model, "L", "prefill") / _rate(model, memories, "prefill") - 1.0 for model in MODELS)


def _rate(model: str, memories: str, what: str) -> float:
    """Sequences a second as the study ran a set."""
    sequences = settings(DOCUMENT)["batches"][model][memories]
    return float(sequences) / SECONDS[what](_as_run(model, study_host().only(SETS[memories]), memories))


@computes
def media_gain(_runs: Runs, *, what: str, memories: str, against: str, model: str | None = None) -> float:
    """Throughput over one set against another of the same capacity, less one; mean of the models, or of one."""
    return fmean(_gains(what, memories, against, (model,) if model else MODELS))


@computes
def media_order(_runs: Runs, *, what: str, order: list[str]) -> bool:
    """Whether each set of one capacity is faster than the next, mean of the models."""
    return all(fmean(_gains(what, faster, slower, MODELS)) > 0.0 for faster, slower in pairwise(order))


@computes
def is_closer(_runs: Runs, *, what: str, memories: str, to: str, than: str) -> bool:
    """Whether a set differs less from one of the same capacity than from another, mean of the models."""
    near, far = (abs(fmean(_gains(what, memories, each, MODELS))) for each in (to, than))
    return near < far


def _gains(what: str, memories: str, against: str, models: tuple[str, ...]) -> list[float]:
    seconds = SECONDS[what]
    return [seconds(_at_one_capacity(name, against)) / seconds(_at_one_capacity(name, memories)) - 1 for name in models]


def _at_one_capacity(model: str, memories: str) -> Steps:
    """The steps over a set of one capacity.

    FlexGen's planner sees capacity alone, so all have the batch and the share of the cache on the GPU of near DRAM
    with the card.
    """
    host, capacity = study_host(), settings(DOCUMENT)["host_gib"][ONE_CAPACITY] * GIB
    if memories == WITH_DRIVE:
        return _with_drive(model, host.only(SETS["L"]))
    return _as_run(model, _cut(host.only(SETS[memories]), capacity), ONE_CAPACITY)
