"""KV caches of idle sessions: a request in names and figures in, the answer out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from tierloom.arguments import reads
from tierloom.offload import session_caches
from tierloom.offload.system import the_gpu, the_host, the_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.nouns import Machine
    from tierloom.offload.documents import ServeDoc, SessionsDoc
    from tierloom.offload.gpu import Gpu
    from tierloom.offload.host import Host
    from tierloom.offload.model import Model


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
