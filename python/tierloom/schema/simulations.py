"""Workloads and outcomes of simulations."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from tierloom.schema.documents import Figure


class WorkloadRegionDoc(TypedDict):
    """Memory that the kernel keeps one policy for."""

    name: str
    size_bytes: int
    locked: NotRequired[bool]
    source: NotRequired[str]


class WorkloadDoc(TypedDict):
    """What the simulator is told about a program."""

    kind: str
    version: int
    name: str
    title: str
    sources: NotRequired[dict[str, str]]
    threads: int
    main_works: NotRequired[bool]
    filled_by: NotRequired[int]
    regions: list[WorkloadRegionDoc]
    filling: NotRequired[list[dict[str, Any]]]
    phases: list[dict[str, Any]]


class CostsDoc(TypedDict):
    """What kernel events cost, ns."""

    hint_fault_ns: Figure
    protect_ns: Figure
    skip_ns: Figure
    promote_ns: Figure
    demote_ns: Figure
    shootdown_ns: Figure
    reclaim_ns: Figure
    sample_ns: Figure


class KnobDoc(TypedDict):
    """A number that can be set, under the kernel's own name."""

    name: str
    value: float
    source: str


class SimulatorTermsDoc(TypedDict):
    """What a simulation can be asked for."""

    policies: list[tuple[str, str, list[KnobDoc]]]
    placements: str
    costs: CostsDoc


class PartsDoc(TypedDict):
    """Seconds of the run time by what they went to."""

    compute_s: float
    stall_s: float
    fault_s: float
    scan_s: float
    copy_s: float
    shootdown_s: float
    sample_s: float


class SimulatedNodeDoc(TypedDict):
    """One node over a whole run; pages are of 4 KiB."""

    memory: str
    tier: int
    top: bool
    pages: float
    used_pages: float
    bytes: float
    copied_bytes: float


class SimulatedRegionDoc(TypedDict):
    """Where a region's pages were at the end, as shares by node."""

    region: str
    pages: float
    shares: list[float]


class PointDoc(TypedDict):
    """A run at one time; traffic and share since the point before."""

    time_s: float
    counters: dict[str, float]
    used_pages: list[float]
    gb_s: list[float]
    latency_ns: list[float]
    fast_share: float


class PhaseUseDoc(TypedDict):
    """What a phase took."""

    phase: str
    time_s: float


class OutcomeDoc(TypedDict):
    """A run under one policy; counters are under the names of ``/proc/vmstat``."""

    policy: str
    about: str
    placement: str
    evaluator: str
    time_s: float
    parts: PartsDoc
    counters: dict[str, float]
    fast_share: float
    nodes: list[SimulatedNodeDoc]
    regions: list[SimulatedRegionDoc]
    phases: list[PhaseUseDoc]
    series: list[PointDoc]
    knobs: list[KnobDoc]
    warnings: list[str]


class LatencyDoc(TypedDict):
    """Latencies of one kind of request."""

    count: int
    mean_ns: float
    p50_ns: float
    p99_ns: float
    p999_ns: float


class ExpansionDoc(TypedDict):
    """One simulated run of a GPU with expanded memory; the parts are in ``crates/expander/src/outcome.rs``."""

    workload: str
    setup: dict[str, Any]
    time_s: float
    accesses: int
    stores: int
    llc_hit_share: float
    loads: LatencyDoc
    write_backs: LatencyDoc
    write_backs_in_collection: LatencyDoc
    endpoint: dict[str, Any]
    store: dict[str, Any]
    paging: dict[str, Any]
    link: dict[str, float]
    checked: int
    timeline: list[dict[str, Any]]
