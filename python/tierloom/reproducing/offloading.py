"""Serving language models in the 2024 study of real CXL cards: FlexGen over one to three host memories.

Two constants were fitted, once, to the three decode ratios of figure 17: they are the amplification and the
attention rate of the runtime `FLEXGEN`. What the study ran with (its batches, shares of the cache, gains in
prefill) are settings of the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tierloom.nouns import Machine
from tierloom.offload.blind import footprint_gib
from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.flexgen import ALL_WEIGHTS_ON_CPU, Blind, Constants, opt_shape
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host, block_tier, host_of
from tierloom.offload.placement import Placement
from tierloom.offload.problem import GPU, Problem, copy_s_per_byte
from tierloom.offload.runtime import FLEXGEN
from tierloom.offload.steps import Steps, steps
from tierloom.reproducing.computing import Runs, computes, task
from tierloom.reproducing.ledger import settings
from tierloom.units import GIB, LINE_BYTES

SERVER, CARD, DOCUMENT = "liu-a", "a10", "liu24"
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

STAGED_LINES = 32.0
"""Lines that one core's copy loop keeps in flight, with the prefetchers' help: assumed."""


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
    return float(int(footprint_gib(_problem(model, _host()), settings(DOCUMENT)["batches"][model][memories])))


@computes
def decode_gain(_runs: Runs, *, memories: str) -> float:
    """Decode throughput over near DRAM alone, less one, mean of the models."""
    rates = [(_decode_rate(model, memories), _decode_rate(model, "L")) for model in MODELS]
    return sum(rate / base - 1.0 for rate, base in rates) / len(rates)


@computes
def apart(_runs: Runs, *, memories: str, against: str) -> float:
    """Throughput over one set against another of the same capacity, less one, mean of the models.

    FlexGen's planner sees capacity alone, so both are run with the batch and shares of the second: the study's
    scripts have 30 sequences of LLaMA-65B and 8 % of the cache on the GPU for either.
    """
    host, given = _host(), settings(DOCUMENT)["host_gib"][against] * GIB
    ours, theirs = _cut(host.only(SETS[memories]), given), host.only(SETS[against])
    rates = [[_as_run(model, each, against).tokens_s for each in (ours, theirs)] for model in MODELS]
    return sum(mine / other - 1.0 for mine, other in rates) / len(rates)


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
def staged_gain(_runs: Runs, *, memories: str, against: str) -> float:
    """What one thread of staged copies reaches over one set against another, less one."""
    host = _host()
    return _staged_gb_s(host, memories) / _staged_gb_s(host, against) - 1.0


@computes
def link_spread(_runs: Runs, *, copy_bytes: float) -> float:
    """Relative spread of the GPU's bandwidth over the memories for copies of one size."""
    gpu = load_gpu(CARD)
    seconds = [max(copy_s_per_byte(gpu, tier, copy_bytes), 1.0 / tier.read_bytes_s) for tier in _host().memories]
    return max(seconds) / min(seconds) - 1.0


@computes
def growth(runs: Runs) -> bool:
    """Whether each kind of memory beside near DRAM raises decode throughput, RDRAM by more than CXL memory."""
    card, far = (float(decode_gain(runs, memories=each)) for each in ("L+C", "L+R"))
    return 0.0 < card < far


@computes
def gpu_extra_ns(_runs: Runs, *, memory: str) -> float:
    """What a copy of the GPU waits beyond one from near DRAM."""
    return _host().tier(memory).gpu_extra_s * 1e9


@computes
def over_drive(_runs: Runs, *, model: str, what: str, memories: str = "L+C") -> float:
    """What a set of memories gains over near DRAM with a drive, less one: batch and shares as the study ran both."""
    host, given = _host(), settings(DOCUMENT)["host_gib"][ONE_CAPACITY] * GIB
    ours = _as_run(model, _cut(host.only(SETS[memories]), given), ONE_CAPACITY)
    drive = _with_drive(model, host.only(SETS["L"]))
    seconds: dict[str, Callable[[Steps], float]] = {
        "tokens_s": lambda found: found.total_s,
        "decode": lambda found: found.decode_s,
        "prefill": lambda found: found.prefill_s,
    }
    return seconds[what](drive) / seconds[what](ours) - 1.0


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


def _host() -> Host:
    return host_of(Machine.load(SERVER))


def _problem(model: str, host: Host) -> Problem:
    gpu: Gpu = replace(load_gpu(CARD), in_gb_s=LINK_GB_S, out_gb_s=LINK_GB_S)
    return Problem(model=load_model(model), gpu=gpu, host=host, runtime=FLEXGEN, prompt=PROMPT, generate=GENERATE)


def _decode_rate(model: str, memories: str) -> float:
    """Sequences a second of one decode step as the study ran it."""
    batch = settings(DOCUMENT)["batches"][model][memories]
    return float(batch) / _as_run(model, _host().only(SETS[memories]), memories).decode_s


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


def _staged_gb_s(host: Host, memories: str) -> float:
    tiers: Sequence[Any] = [host.tier(name) for name in SETS[memories]]
    whole = sum(tier.capacity_bytes for tier in tiers)
    speeds = [min(tier.read_bytes_s, STAGED_LINES * LINE_BYTES / tier.idle_s) for tier in tiers]
    seconds = sum(tier.capacity_bytes / whole / speed for tier, speed in zip(tiers, speeds, strict=True))
    return 1e-9 / float(seconds)
