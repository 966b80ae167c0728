"""Decode on the CPU alone: a request in names and figures in, the answer out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.arguments import each, or_none, reads, table, whole
from tierloom.errors import PlacementError, RequestError
from tierloom.offload import cpu_only
from tierloom.offload.system import the_host, the_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.nouns import Machine
    from tierloom.offload.documents import CpuDoc, RatioDoc
    from tierloom.offload.host import Host
    from tierloom.offload.model import Model


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
