"""KV caches of idle sessions: which tier holds how many, and what a session waits for its cache.

When a session comes back, its cache is fetched from where it lies or computed again. Fetching takes the
link and the tier's bandwidth; computing takes a prefill. The bandwidth at which both take the same time
is the break-even: a tier above it is worth filling. Sessions go to the tiers in the order of their wait,
which is optimal when all are alike and equally likely to come back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError, RequestError
from tierloom.offload.problem import copy_s_per_byte
from tierloom.units import GIB

if TYPE_CHECKING:
    from tierloom.offload.gpu import Gpu
    from tierloom.offload.host import Host, Tier
    from tierloom.offload.model import Model


@dataclass(frozen=True, kw_only=True)
class TierSessions:
    """One tier as a store of sessions.

    Attributes:
        tier: Its name.
        capacity: Sessions that fit.
        sessions: Sessions that it gets.
        fetch_s: Time to first token when a session's cache comes from here, s.
        worth: Whether that is less than computing it again.
    """

    tier: str
    capacity: int
    sessions: int
    fetch_s: float
    worth: bool


@dataclass(frozen=True, kw_only=True)
class ServePlan:
    """Where the caches of all sessions are.

    Attributes:
        context: Tokens of a session.
        session_bytes: Its KV cache.
        recompute_s: Time to first token when the cache is computed again, s.
        break_even_bytes_s: Bandwidth at which fetching takes as long.
        tiers: The tiers, the quickest first.
        mean_s: Mean time to first token over all sessions.
    """

    context: int
    session_bytes: float
    recompute_s: float
    break_even_bytes_s: float
    tiers: list[TierSessions]
    mean_s: float


def serve(model: Model, gpu: Gpu, host: Host, *, sessions: int, context: int, margin: float = 0.9) -> ServePlan:
    """Places the KV caches of idle sessions.

    Args:
        model: What is served.
        gpu: Where it is computed.
        host: What holds the caches.
        sessions: How many there are.
        context: Tokens of each.
        margin: Share of each tier that may be filled.

    Raises:
        RequestError: A number is not above 0, or the model has no cache.
        PlacementError: Not all sessions fit; the message says how many do.
    """
    _check(model, sessions, context)
    size = model.cache_bytes(context)
    recompute = recompute_s(model, gpu, context)
    ranked = sorted(host.tiers, key=lambda tier: (fetch_s(model, gpu, tier, context), tier.name))
    left, rows = sessions, []
    for tier in ranked:
        fits = int(margin * tier.capacity_bytes / size)
        took, wait = min(left, fits), fetch_s(model, gpu, tier, context)
        left -= took
        rows.append(TierSessions(tier=tier.name, capacity=fits, sessions=took, fetch_s=wait, worth=wait < recompute))
    if left:
        raise PlacementError(_short(host, sessions, left, size, context, margin))
    mean = sum(row.sessions * min(row.fetch_s, recompute) for row in rows) / sessions
    return ServePlan(
        context=context,
        session_bytes=size,
        recompute_s=recompute,
        break_even_bytes_s=size / recompute,
        tiers=rows,
        mean_s=mean,
    )


def recompute_s(model: Model, gpu: Gpu, context: int) -> float:
    """Prefill of a session, s; weights that the GPU cannot hold come over its link meanwhile."""
    flop = context * model.flop_per_token + model.prefill_attention_flop(context)
    streamed = max(0.0, model.weight_bytes - gpu.memory_bytes) / (gpu.in_gb_s * 1e9)
    return max(flop / gpu.prefill_flop_s, streamed)


def fetch_s(model: Model, gpu: Gpu, tier: Tier, context: int) -> float:
    """Copy of a session's cache from a tier, layer by layer, s; a block device answers once before it streams."""
    size = model.cache_bytes(context)
    link = copy_s_per_byte(gpu, tier, size / model.layers)
    return tier.idle_s + size * max(link, 1.0 / tier.read_bytes_s)


def _check(model: Model, sessions: int, context: int) -> None:
    for name, value in (("number of sessions", sessions), ("context", context)):
        if value < 1:
            message = f"the {name} is {value}\nhint: it has to be at least 1"
            raise RequestError(message)
    if model.family == "bert":
        message = f"{model.name} is an encoder: it has no KV cache\nhint: take a model that generates"
        raise RequestError(message)


def _short(host: Host, sessions: int, left: int, size: float, context: int, margin: float) -> str:
    tokens = int(margin * host.capacity_bytes / sessions / (size / context))
    return (
        f"{left} of {sessions} sessions of {context} tokens do not fit {host.name}: {left * size / GIB:.1f} GiB are "
        f"missing\nhint: {sessions - left} sessions fit, or all with {tokens} tokens"
    )
