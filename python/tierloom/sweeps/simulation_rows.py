"""``simulate`` and ``expand`` as rows: pages that move, and GPU memory behind CXL ports."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError
from tierloom.gpu_expansion import ParameterSet, expand
from tierloom.migration_simulator import simulate
from tierloom.nouns import Machine, Plan, Profile
from tierloom.nouns.workload import PATTERNS, Workload
from tierloom.sweeps.rows import picked, takes
from tierloom.what_if import scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tierloom.sweeps.rows import Row


def _workload(name: str) -> Workload | str:
    return name if name in PATTERNS else Workload.load(name)


def _parameters(name: str) -> ParameterSet:
    return ParameterSet.load(name or None)


SIMULATED: dict[str, Callable[[str], object]] = {
    "profile": Profile.load,
    "workload": _workload,
    "machine": Machine.load,
    "plan": Plan.load,
    "ran_on": Machine.load,
}
EXPANDED: dict[str, Callable[[str], object]] = {"set": _parameters}
OWN_SET = {"set": ""}
"""The parameter set is part of what a result rests on, named or not."""


MADE = [name for name in inspect.signature(Workload.synthetic).parameters if name not in ("pattern", "threads")]
"""What a synthetic workload is made by, its threads apart."""


@takes(simulate, Workload.synthetic, without=["pattern", "knobs", "costs", "samples"])
def simulate_row(
    machine: Machine,
    scale: Mapping[str, float],
    knob: Mapping[str, float],
    profile: Profile | None = None,
    workload: Workload | str | None = None,
    placement: str | None = None,
    plan: Plan | None = None,
    threads: int | None = None,
    **asked: Any,  # noqa: ANN401 (as `simulate` and `Workload.synthetic` take it)
) -> Row:
    """One run under one policy; ``knob.NAME`` sets a knob of the policy."""
    made = {name: asked.pop(name) for name in MADE if name in asked}
    source = _source(profile, workload)
    if isinstance(source, str):
        source = Workload.synthetic(source, **made, **({} if threads is None else {"threads": threads}))
    on, wide = scaled(machine, scale), threads if profile else None
    run = simulate(source, on, placement=plan or placement, threads=wide, knobs=knob, **asked).data
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


@takes(expand, without=["trace", "compute", "parameters", "carry", "timeline_ns"])
def expand_row(
    workload: str,
    set: ParameterSet,  # noqa: A002 (named as on the command line)
    **asked: Any,  # noqa: ANN401 (as `expand` takes it)
) -> Row:
    """One workload on one system."""
    run = expand(workload, parameters=set, **asked)
    return {
        **picked(run, "time_s", "accesses", "stores", "llc_hit_share"),
        **{f"loads.{key}": run["loads"][key] for key in ("mean_ns", "p50_ns", "p99_ns", "p999_ns")},
        **{f"write_backs.{key}": run["write_backs"][key] for key in ("mean_ns", "p99_ns")},
        **{f"endpoint.{key}": run["endpoint"][key] for key in ("hit_share", "collections")},
        "paging.faults": run["paging"]["faults"],
    }
