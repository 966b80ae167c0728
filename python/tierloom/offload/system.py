"""The system that a request names: its model, its GPU, and its host with the memories that may be used."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.arguments import path, text
from tierloom.errors import RequestError
from tierloom.nouns import Machine
from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host, Tier, block_tier, host_of
from tierloom.offload.model import Model
from tierloom.units import amount_in_bytes, bytes_text

if TYPE_CHECKING:
    from collections.abc import Sequence


def the_model(model: str | Model, weight_bits: float | None = None, kv_bits: float | None = None) -> Model:
    """The model that is meant, as it is stored.

    Raises:
        RequestError: The name is wrong, or a number of bits is not above 0.
    """
    for name, bits in (("weight", weight_bits), ("KV element", kv_bits)):
        if bits is not None and not 0.0 < bits <= 64.0:
            message = f"{bits:g} bits a {name}\nhint: write for example 8, or 4.5 for four bits with scales"
            raise RequestError(message)
    found = model if isinstance(model, Model) else load_model(path("model", model))
    found = found if weight_bits is None else found.with_weight_bits(weight_bits)
    return found if kv_bits is None else found.with_kv_bits(kv_bits)


def the_gpu(gpu: str | Gpu, link_gb_s: float | None = None) -> Gpu:
    """The GPU that is meant, perhaps with another link.

    Raises:
        RequestError: The name is wrong, or the link's bandwidth is not above 0.
    """
    if link_gb_s is not None and not 0.0 < link_gb_s < float("inf"):
        message = f"a link of {link_gb_s:g} GB/s\nhint: it has to be above 0"
        raise RequestError(message)
    found = gpu if isinstance(gpu, Gpu) else load_gpu(path("gpu", gpu))
    return found if link_gb_s is None else replace(found, in_gb_s=link_gb_s, out_gb_s=link_gb_s)


def the_host(
    machine: str | Machine | Host,
    socket: str | None = None,
    tiers: Sequence[str] | None = None,
    nvme: str | Tier | None = None,
    *,
    peer: bool = False,
) -> Host:
    """The host that is meant, with only the tiers that may be used, ``NAME=SIZE`` for a part of one.

    Raises:
        RequestError: A name is wrong, or a size is no amount of memory or more than there is.
    """
    if not isinstance(machine, Host):
        machine = host_of(Machine.of(machine), socket=socket, peer=peer)
    host = machine
    if tiers is not None and not tiers:
        message = f"no memory may be used\nhint: {host.name} has {', '.join(tier.name for tier in host.tiers)}"
        raise RequestError(message)
    host = host if tiers is None else _limited(host, tiers)
    return host if nvme is None else host.with_tier(_block_device(nvme))


def _block_device(given: str | Tier) -> Tier:
    """A block device, or the one of a text: its size, GB/s read and written.

    Raises:
        RequestError: The text does not say one.
    """
    if isinstance(given, Tier):
        return given
    said = text("nvme", given)
    size, *rates = said.split(":")
    try:
        read, written = (float(rate) for rate in rates)
    except ValueError:
        read = written = -1.0
    if not (0.0 < read < float("inf") and 0.0 < written < float("inf")):
        message = f"`{said}` is no block device\nhint: write its size and GB/s read and written: 2TB:6.8:5"
        raise RequestError(message)
    return block_tier(amount_in_bytes(size, 0), read, written)


def _limited(host: Host, tiers: Sequence[str]) -> Host:
    """The host with some of its tiers, or a part of them."""
    parts = [each.partition("=") for each in tiers]
    for name, _, size in parts:
        if size:
            whole = int(host.tier(name).capacity_bytes)
            part = amount_in_bytes(size, whole)
            if not 0 < part <= whole:
                message = f"`{name}={size}`: {host.name} has {bytes_text(whole)} there\nhint: ask for a part of it"
                raise RequestError(message)
            host = host.with_capacity(name, part)
    return host.only([name for name, _, _ in parts])
