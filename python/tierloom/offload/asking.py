"""Asking the planners: names and options in, answers out. The public functions of this room."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError, RequestError
from tierloom.nouns import Machine
from tierloom.offload import planner
from tierloom.offload.advice import advise
from tierloom.offload.answers import InferAnswer
from tierloom.offload.blind import NAMES as BLIND_NAMES
from tierloom.offload.blind import blind_plan
from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host, Tier, host_of
from tierloom.offload.layers import whole_layers
from tierloom.offload.model import Model
from tierloom.offload.problem import Problem
from tierloom.offload.runtime import Runtime, runtime_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.offload.planner import InferPlan


def infer(
    model: str | Model,
    gpu: str | Gpu,
    machine: str | Machine | Host,
    *,
    prompt: int = 2048,
    generate: int = 256,
    batch: int | None = None,
    runtime: str | Runtime = "flexgen",
    policy: str = planner.TIER_AWARE,
    compare: Sequence[str] = ("interleave", "first-touch"),
    socket: str | None = None,
    tiers: Sequence[str] | None = None,
    peer: bool = False,
    nvme: Tier | None = None,
    weight_bits: float | None = None,
    kv_bits: float | None = None,
    link_gb_s: float | None = None,
    margins: tuple[float | None, float | None] = (None, None),
) -> InferAnswer:
    """Places a model that is served on one GPU with host memory.

    Args:
        model: Catalog name, path of a ``config.json`` or GGUF file, or a model.
        gpu: Catalog name, path of a GPU file, or a GPU.
        machine: Catalog name, path of a machine file, a machine, or a host.
        prompt: Tokens of each prompt.
        generate: Tokens generated for each.
        batch: Sequences of a block; the best by default.
        runtime: How the serving runtime executes: ``flexgen``, ``overlapped``, ``copied``, ``resident``.
        policy: ``tier-aware``, or the policy that host memory is left to.
        compare: Policies to compare with: ``interleave``, ``first-touch``, ``prefer:NAME``, ``tier-blind``.
        socket: Where the GPU and the threads are; the machine's first socket by default.
        tiers: Memories that may be used; all by default.
        peer: The GPU reaches CXL memory directly, as CXL 3.1 allows.
        nvme: A block device besides.
        weight_bits: Bits a weight; as the model is stored by default.
        kv_bits: Bits an element of the KV cache.
        link_gb_s: Bandwidth of the GPU's link; the GPU's by default.
        margins: Share of the GPU and of each tier that may be filled; the runtime's by default.

    Raises:
        RequestError: A name or number is wrong.
        PlacementError: Nothing fits; the message says by how many GiB and what would.
    """
    problem = Problem(
        model=the_model(model, weight_bits, kv_bits),
        gpu=the_gpu(gpu, link_gb_s),
        host=the_host(machine, socket, tiers, nvme, peer=peer),
        runtime=_margins(runtime_of(runtime) if isinstance(runtime, str) else runtime, margins),
        prompt=prompt,
        generate=generate,
        batch=batch,
    )
    problem = replace(problem, runtime=problem.runtime.on(problem.host.cores))
    plan = planner.plan(problem, policy)
    rivals = {name: _rival(problem, name) for name in compare if name != policy}
    plan = planner.at_least_as(plan, [rival for rival in rivals.values() if not isinstance(rival, str)])
    return InferAnswer(plan=plan, whole=whole_layers(plan), rivals=rivals, advice=advise(plan))


def the_host(
    machine: str | Machine | Host,
    socket: str | None = None,
    tiers: Sequence[str] | None = None,
    nvme: Tier | None = None,
    *,
    peer: bool = False,
) -> Host:
    """The host that is meant, with only the tiers that may be used.

    Raises:
        RequestError: A name is wrong.
    """
    if isinstance(machine, str):
        machine = Machine.load(machine)
    host = host_of(machine, socket=socket, peer=peer) if isinstance(machine, Machine) else machine
    if tiers is not None and not tiers:
        message = f"no memory may be used\nhint: {host.name} has {', '.join(tier.name for tier in host.tiers)}"
        raise RequestError(message)
    host = host if tiers is None else host.only(tiers)
    return host if nvme is None else host.with_tier(nvme)


def _rival(problem: Problem, policy: str) -> InferPlan | str:
    try:
        return blind_plan(problem) if policy in BLIND_NAMES else planner.plan(problem, policy)
    except PlacementError as error:
        return str(error).split("\nhint:", maxsplit=1)[0]


def the_model(model: str | Model, weight_bits: float | None = None, kv_bits: float | None = None) -> Model:
    """The model that is meant, as it is stored.

    Raises:
        RequestError: The name is wrong, or a number of bits is not above 0.
    """
    for name, bits in (("weight", weight_bits), ("KV element", kv_bits)):
        if bits is not None and not 0.0 < bits <= 64.0:
            message = f"{bits:g} bits a {name}\nhint: write for example 8, or 4.5 for four bits with scales"
            raise RequestError(message)
    found = load_model(model) if isinstance(model, str) else model
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
    found = load_gpu(gpu) if isinstance(gpu, str) else gpu
    return found if link_gb_s is None else replace(found, in_gb_s=link_gb_s, out_gb_s=link_gb_s)


def _margins(runtime: Runtime, margins: tuple[float | None, float | None]) -> Runtime:
    on_gpu, on_host = margins
    runtime = runtime if on_gpu is None else replace(runtime, gpu_margin=on_gpu)
    return runtime if on_host is None else replace(runtime, host_margin=on_host)
