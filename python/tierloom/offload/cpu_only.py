"""Inference on the CPU alone: decode is a race for memory bandwidth, and interleaving adds a tier's to it.

Every thread keeps a number of cache lines in flight, so what all of them read a second is a closed loop:
``bandwidth = threads x lines x 64 bytes / latency``, and the latency of each tier rises with the load it
gets (the machine's loaded-latency curves). The fixed point says how far a ratio of interleaving goes:
local DRAM alone waits in its own queue long before its peak, a share on CXL memory shortens that queue.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError, RequestError
from tierloom.units import GIB, LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.offload.host import Host, Tier
    from tierloom.offload.model import Model

ROUNDS = 60
"""Halvings of the interval that holds the bandwidth: beyond double precision."""

FLOP_S = 20e9
"""Operations per second and core; assumed: half of what AVX2 reaches in fp32."""


@dataclass(frozen=True, kw_only=True)
class CpuPoint:
    """Decode under one ratio of interleaving.

    Attributes:
        weights: Pages in a round, by tier.
        tokens_s: Tokens per second of all backends.
        bytes_s: Bandwidth of all tiers together.
        latency_s: Mean loaded latency of a line.
        bound: ``bandwidth of TIER``, ``latency``, or ``arithmetic``.
    """

    weights: Mapping[str, int]
    tokens_s: float
    bytes_s: float
    latency_s: float
    bound: str


def decode(
    model: Model,
    host: Host,
    weights: Mapping[str, int],
    *,
    threads: int,
    backends: int = 1,
    context: int = 2048,
) -> CpuPoint:
    """Tokens per second of backends that each decode one sequence, all data interleaved by `weights`.

    Args:
        model: What is decoded; each backend has its own copy.
        host: Where.
        weights: Pages in a round, by tier: ``{"ldram": 3, "cxl": 1}``.
        threads: Threads of all backends together.
        backends: Processes.
        context: Tokens that a step attends to.

    Raises:
        RequestError: A number is not above 0, or a name is no tier.
        PlacementError: A tier does not hold its share.
    """
    whole = sum(weights.values())
    if threads < 1 or backends < 1 or context < 1 or whole < 1:
        message = "threads, backends, context and the sum of the ratio have to be at least 1\nhint: check them"
        raise RequestError(message)
    shares = {host.tier(name): pages / whole for name, pages in weights.items() if pages}
    _fits(model, shares, backends, context)
    read = sum(part.bytes * model.active_share(part, 1.0) for part in model.parts)
    read += model.read_bytes(context)
    flop = model.flop_per_token + model.attention_flop(context)
    most, bound = _most(shares, threads * FLOP_S * read / flop)
    flight = threads * host.lines * LINE_BYTES
    bytes_s = _closed_loop(shares, flight, most)
    latency = mean_latency(shares, bytes_s)
    if bytes_s < most * (1.0 - 1e-6):
        bound = "latency"
    return CpuPoint(weights=dict(weights), tokens_s=bytes_s / read, bytes_s=bytes_s, latency_s=latency, bound=bound)


def ratios(names: Sequence[str], most: int = 4) -> list[dict[str, int]]:
    """Ratios to try over two tiers: one alone, and every reduced ratio with at most `most` pages of each."""
    first, second = names
    pairs = [(a, b) for a in range(most + 1) for b in range(most + 1) if math.gcd(a, b) == 1]
    return [{first: a, second: b} for a, b in sorted(pairs, key=lambda pair: pair[1] / (pair[0] + pair[1]))]


def mean_latency(shares: Mapping[Tier, float], bytes_s: float) -> float:
    """Latency of a line when all tiers together give `bytes_s`, s."""
    return sum(share * loaded(tier, share * bytes_s) for tier, share in shares.items())


def loaded(tier: Tier, bytes_s: float) -> float:
    """Loaded latency of a tier, s: between the points of its curve, the last one's beyond."""
    if not tier.curve:
        return tier.idle_s
    loads = [load for load, _ in tier.curve]
    after = bisect.bisect_left(loads, bytes_s)
    if after == 0:
        return tier.curve[0][1]
    if after == len(loads):
        return tier.curve[-1][1]
    (low, before), (high, later) = tier.curve[after - 1 : after + 1]
    return before + (later - before) * (bytes_s - low) / (high - low)


def _most(shares: Mapping[Tier, float], arithmetic: float) -> tuple[float, str]:
    """The most that the tiers' peaks and the cores' arithmetic allow, bytes/s, and which of them it is."""
    limits = [(tier.read_bytes_s / share, f"bandwidth of {tier.name}") for tier, share in shares.items()]
    return min([*limits, (arithmetic, "arithmetic")])


def _closed_loop(shares: Mapping[Tier, float], flight: float, most: float) -> float:
    """The bandwidth at which lines in flight and latency agree; latency rises with load, so there is one."""
    low, high = 0.0, most
    if most * mean_latency(shares, most) <= flight:
        return most
    for _ in range(ROUNDS):
        middle = 0.5 * (low + high)
        if middle * mean_latency(shares, middle) <= flight:
            low = middle
        else:
            high = middle
    return low


def _fits(model: Model, shares: Mapping[Tier, float], backends: int, context: int) -> None:
    size = backends * (model.weight_bytes + model.cache_bytes(context))
    for tier, share in shares.items():
        if share * size > tier.capacity_bytes:
            over = (share * size - tier.capacity_bytes) / GIB
            fit = int(backends * tier.capacity_bytes / (share * size))
            message = (
                f"{backends} backends of {model.name} put {share * size / GIB:.1f} GiB on {tier.name}: "
                f"{over:.1f} GiB are missing\nhint: {fit} backends fit at this ratio; or take fewer bits a weight"
            )
            raise PlacementError(message)
