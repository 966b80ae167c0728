"""``simulate`` and ``expand`` as rows: pages that move, and GPU memory behind CXL ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.arguments import name_list
from tierloom.errors import RequestError
from tierloom.gpu_expansion import ParameterSet, expand
from tierloom.nouns import Machine, Plan, Profile
from tierloom.nouns.workload import PATTERNS, Workload
from tierloom.page_migration import simulate
from tierloom.sweeps.rows import picked
from tierloom.what_if import scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tierloom.sweeps.rows import Row
    from tierloom.units import Amount
    from tierloom.user_policies import UserPolicy


def _workload(name: str) -> Workload | str:
    return name if name in PATTERNS else Workload.load(name)


def _parameters(name: str) -> ParameterSet:
    return ParameterSet.load(name or None)


SIMULATED: dict[str, Callable[[str], object]] = {
    "profile": Profile.load,
    "workload": _workload,
    "machine": Machine.load,
    "plan": Plan.load,
}
EXPANDED: dict[str, Callable[[str], object]] = {"set": _parameters}
OWN_SET = {"set": ""}
"""The parameter set is part of what a result rests on, named or not."""


def simulate_row(
    machine: Machine,
    scale: Mapping[str, float],
    knob: Mapping[str, float],
    profile: Profile | None = None,
    workload: Workload | str | None = None,
    policy: str | UserPolicy = "tiering",
    placement: str | None = None,
    plan: Plan | None = None,
    threads: int | None = None,
    socket: str | None = None,
    nodes: str | list[str] | None = None,
    fast_memory: Amount | None = None,
    evaluator: str = "auto",
    tiers: str | None = None,
    lru: str = "two-lists",
    seed: int = 0,
    size: Amount = "16GiB",
    seconds: float = 60.0,
    gb_s: float = 4.0,
    theta: float = 0.99,
    mlp: float = 4.0,
) -> Row:
    """One run under one policy; ``knob.NAME`` sets a knob of the policy."""
    source = _source(profile, workload)
    if isinstance(source, str):
        wide = threads or 16
        source = Workload.synthetic(source, size=size, seconds=seconds, gb_s=gb_s, theta=theta, mlp=mlp, threads=wide)
    run = simulate(
        source,
        scaled(machine, scale),
        policy,
        placement=plan or placement,
        threads=threads if profile else None,
        socket=socket,
        nodes=name_list(nodes),
        fast_memory=fast_memory,
        knobs=knob,
        evaluator=evaluator,
        tiers=tiers,
        lru=lru,
        seed=seed,
    ).data
    return {
        **picked(run, "time_s", "fast_share"),
        "evaluated": run["evaluator"].partition(":")[0],
        **{name: float(seconds) for name, seconds in run["parts"].items() if isinstance(seconds, float)},
        **{name: value for name, value in run["counters"].items() if value},
        **{f"{node['memory']}.used_pages": node["used_pages"] for node in run["nodes"]},
    }


def _source(profile: Profile | None, workload: Workload | str | None) -> Profile | Workload | str:
    if profile is not None and workload is None:
        return profile
    if workload is not None and profile is None:
        return workload
    message = "simulate runs either a profile or a workload\nhint: give one of `profile` and `workload`"
    raise RequestError(message)


def expand_row(
    workload: str,
    set: ParameterSet,  # noqa: A002 (named as on the command line)
    config: str = "cxl",
    media: str = "dram",
    gpu: str | None = None,
    window: str | None = None,
    prefetch: str | None = None,
    ports: int | None = None,
    controller_ns: float | None = None,
    link_gb_s: float | None = None,
    local_ratio: float | None = None,
    data_bytes: int | None = None,
    passes: float | None = None,
    tree_entries: int | None = None,
    seed: int | None = None,
) -> Row:
    """One workload on one system."""
    run = expand(
        workload,
        config=config,
        media=media,
        parameters=set,
        gpu=gpu,
        window=window,
        prefetch=prefetch,
        ports=ports,
        controller_ns=controller_ns,
        link_gb_s=link_gb_s,
        local_ratio=local_ratio,
        data_bytes=data_bytes,
        passes=passes,
        tree_entries=tree_entries,
        seed=seed,
    )
    return {
        **picked(run, "time_s", "accesses", "stores", "llc_hit_share"),
        **{f"loads.{key}": run["loads"][key] for key in ("mean_ns", "p50_ns", "p99_ns", "p999_ns")},
        **{f"write_backs.{key}": run["write_backs"][key] for key in ("mean_ns", "p99_ns")},
        **{f"endpoint.{key}": run["endpoint"][key] for key in ("hit_share", "collections")},
        "paging.faults": run["paging"]["faults"],
    }
