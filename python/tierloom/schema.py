"""The shapes of the documents that the core returns and that ``--json`` prints.

Keys carry their unit: ``_bytes``, ``_ns``, ``_s``, ``_gb_s`` (GB is 10^9 bytes). They are those of
the Rust nouns in ``crates/model``, where each is described.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Kind = Literal["measured", "published", "derived", "assumed"]


class Origin(TypedDict):
    """Where a number comes from."""

    kind: Kind
    source: str
    how: NotRequired[str]


class Figure(Origin):
    """A number that says where it comes from."""

    value: float


class SocketDoc(TypedDict):
    """A group of cores with a last-level cache."""

    name: str
    cpu: str
    cores: Figure
    llc_bytes: Figure
    llc_per_core_bytes: Figure
    stream_lines: Figure
    demand_lines: Figure


class MemoryDoc(TypedDict):
    """A memory node."""

    name: str
    kind: Literal["dram", "cxl", "hbm", "pmem", "ssd"]
    socket: str
    capacity_bytes: Figure
    usd_per_gib: NotRequired[Figure]


class LinkDoc(TypedDict):
    """An interconnect that paths share."""

    name: str
    gb_s_each_way: Figure


class PathDoc(TypedDict):
    """From a socket to a memory."""

    to: str
    idle_ns: Figure
    links: NotRequired[list[str]]
    writes_at_home: NotRequired[Figure]
    load: dict[str, Any]


# `from` is a keyword, so this key needs the other way to spell a TypedDict.
_From = TypedDict("_From", {"from": str})


class FromTo(_From, PathDoc):
    """A path with both of its ends."""


class MachineDoc(TypedDict):
    """What memory there is and what it costs to reach it."""

    version: int
    name: str
    title: str
    notes: NotRequired[list[str]]
    sources: dict[str, str]
    sockets: list[SocketDoc]
    memories: list[MemoryDoc]
    links: NotRequired[list[LinkDoc]]
    paths: list[FromTo]


class ShareDoc(TypedDict):
    """A share of samples with its 95 % confidence interval."""

    share: float
    low: float
    high: float


class ObjectDoc(TypedDict):
    """Everything allocated at one site, or one static array."""

    name: str
    kind: Literal["heap", "static", "mmap", "file", "arena"]
    site: dict[str, Any]
    size_bytes: int
    allocations: int
    first_s: float
    last_s: float
    first_touch_s: float
    populated_s: NotRequired[float]
    stall: NotRequired[ShareDoc]
    hotness: NotRequired[list[float]]
    origin: NotRequired[Origin]


class AccessDoc(TypedDict):
    """Accesses of one pattern to one object during one phase."""

    object: str
    pattern: Literal["stream", "strided", "random", "chain"]
    reads: float
    writes: float
    read_bytes: float
    write_bytes: float
    dram_read_bytes: float
    dram_write_bytes: float
    mlp: float
    origin: NotRequired[Origin]


class PhaseDoc(TypedDict):
    """A stretch of the run with one behaviour."""

    name: str
    start_s: float
    end_s: float
    threads: int
    compute_s: float
    accesses: list[AccessDoc]


class UnattributedDoc(TypedDict):
    """Samples that belong to no object."""

    name: str
    stall: ShareDoc


class NoticeDoc(TypedDict):
    """What a reader must know before believing a run's numbers; its figures stand beside these two."""

    kind: str
    text: str


class SamplingDoc(TypedDict):
    """How the samples were taken."""

    event: str
    hz: float
    samples: int
    lost: int
    skid_purity: float
    warnings: NotRequired[list[NoticeDoc]]


class ProgramDoc(TypedDict):
    """What ran, and where."""

    command: list[str]
    exit_code: NotRequired[int]
    signal: NotRequired[str]
    wall_s: float
    cpu_s: float
    threads: int
    cpu: str
    llc_bytes: int


class ProfileDoc(TypedDict):
    """A program's data objects and how they are touched."""

    version: int
    name: str
    program: ProgramDoc
    sources: NotRequired[dict[str, str]]
    objects: list[ObjectDoc]
    phases: list[PhaseDoc]
    unattributed: NotRequired[list[UnattributedDoc]]
    sampling: NotRequired[SamplingDoc]


class CodeFileDoc(TypedDict):
    """A program or library of a recording: which build ran, and whether it is here."""

    path: str
    build: str
    samples: int
    state: Literal["same", "rebuilt", "missing"]
    file: NotRequired[str]
    other_build: NotRequired[str]


class RecordingDoc(TypedDict):
    """What a recording holds."""

    version: int
    command: list[str]
    processor: str
    llc_bytes: int
    event: Literal["cpu-clock", "ptrace", "memory-access", "none"]
    hz: float
    skid_purity: float
    wall_s: float
    cpu_s: float
    exit_code: NotRequired[int]
    signal: NotRequired[str]
    samples: int
    lost_samples: int
    allocations: int
    lost_allocations: int
    page_faults: int
    processes: int
    warnings: list[str]
    binaries: list[CodeFileDoc]


class TierUseDoc(TypedDict):
    """What one memory does under a placement."""

    memory: str
    placed_bytes: float
    read_bytes: float
    write_bytes: float
    gb_s: float
    utilisation: float
    idle_ns: float
    loaded_ns: float


class ObjectUseDoc(TypedDict):
    """What one object costs under a placement."""

    object: str
    stall_s: float
    share: float


class PredictionDoc(TypedDict):
    """How long a program takes under a placement."""

    time_s: float
    low_s: float
    high_s: float
    compute_s: float
    stall_s: float
    bound: str | dict[str, str]
    tiers: list[TierUseDoc]
    objects: list[ObjectUseDoc]
    assumptions: list[str]


Action = str | dict[str, Any]
"""``"first_touch"``, or one of ``bind``, ``prefer``, ``interleave``, ``weighted`` with its nodes."""


class Outcome(TypedDict, total=False):
    """``Ok`` holds a prediction; ``Err`` says why a policy cannot be used here."""

    Ok: PredictionDoc
    Err: str


class PolicyDoc(TypedDict):
    """What one policy brings."""

    policy: str
    about: str
    outcome: Outcome
    fast_bytes: float
    fractions: list[list[float]]
    actions: list[Action]


class FrontierDoc(TypedDict):
    """One point of the trade between fast memory and time."""

    fast_bytes: float
    time_s: float
    slowdown: float


class ComparisonDoc(TypedDict):
    """Every policy on one profile and machine, and what was chosen."""

    machine: str
    profile: str
    socket: str
    threads: int
    fast_memory: str
    budget_bytes: int
    policies: list[PolicyDoc]
    chosen: str
    frontier: list[FrontierDoc]


class RuleDoc(TypedDict):
    """One object and its place."""

    object: str
    size_bytes: int
    select: dict[str, Any]
    place: Action


class PlanDoc(TypedDict):
    """Which object goes where."""

    version: int
    machine: str
    profile: str
    policy: str
    nodes: list[str]
    predicted: dict[str, Any]
    default: Action
    rules: list[RuleDoc]


class RuleOutcomeDoc(TypedDict):
    """What became of one rule of a plan; the plan's default is the last, as ``default``."""

    object: str
    held: bool
    ranges: int
    bytes: int
    how: dict[str, int]
    """Ranges by the means that placed them: ``policy``, ``stripes``, ``populate``."""
    asked: dict[str, float]
    """Share of the pages that each node was asked for; empty where several will do."""
    residency: ResidencyDoc
    moved_bytes: int
    locked: int
    """Ranges whose pages are locked where they are."""
    problems: list[str]


class ResidencyDoc(TypedDict):
    """Where the pages of a rule's objects were when they were given back, or the program ended."""

    objects: int
    bytes: int
    looked: int
    """Pages that were asked about: all of a small object, one of each of as many equal parts of a large one."""
    absent: int
    elsewhere: int
    """Pages on another node than the plan's."""
    by_node: dict[str, int]
    """Bytes by the kernel's number of the node."""
    stale_s: float
    """Seconds before the end at which objects were last looked at that the program did not give back."""


class PhaseOutcomeDoc(TypedDict):
    """What became of a phase of a plan."""

    name: str
    start_s: float
    gain_s: float
    expected_s: float
    skipped: str | None
    moved_bytes: int
    took_s: float


class RunDoc(TypedDict):
    """What became of a run under a plan."""

    exit_code: int
    signal: NotRequired[str]
    wall_s: float
    cpu_s: float
    nodes: list[int]
    rules: list[RuleOutcomeDoc]
    phases: list[PhaseOutcomeDoc]
    counters: dict[str, int]
    """Counters of /proc/vmstat about placement and migration that moved, and by how much: the whole machine's."""
    warnings: list[str]


class SnapshotDoc(TypedDict):
    """Where the objects of a running program are."""

    at_s: float
    rules: list[tuple[str, ResidencyDoc]]


class AppliedRuleDoc(TypedDict):
    """What became of one rule of a plan that was applied to a running program."""

    object: str
    objects: int
    present_bytes: int
    """Bytes of its objects that are there."""
    moved_bytes: int
    problems: list[str]


class AppliedDoc(TypedDict):
    """What became of a plan that was applied to a running program."""

    pid: int
    took_s: float
    rules: list[AppliedRuleDoc]


class ContentDoc(TypedDict):
    """One section of a report: its charts by title, and how many tables it has besides."""

    kind: str
    title: str
    charts: list[str]
    tables: int


class WarningDoc(TypedDict):
    """A doubt about a measurement."""

    what: str
    cause: str
    remedy: str


class ImportDoc(TypedDict):
    """A machine that others have described: what `machine import --json` prints."""

    machine: MachineDoc
    warnings: list[WarningDoc]


class MeasurementDoc(TypedDict):
    """What was measured of this machine, raw; the parts are described in ``crates/probe/src/report.rs``."""

    name: str
    date: str
    host: dict[str, Any]
    migration: dict[str, Any]
    instructions: str
    scale: dict[str, Any]
    seconds: float
    arithmetic_ns: dict[str, float]
    latencies: list[dict[str, Any]]
    bandwidths: list[dict[str, Any]]
    scattered: list[dict[str, Any]]
    loaded: list[dict[str, Any]]
    together: list[dict[str, Any]]
    warnings: list[WarningDoc]


class LabResultDoc(TypedDict):
    """A command that ran in a guest of the lab."""

    stdout: str
    stderr: str
    exit_code: int
    seconds: float
    topology: str


class LabGuestDoc(TypedDict):
    """The guest that is up; only `up` when none is. `since` is in seconds since 1970."""

    up: bool
    topology: NotRequired[str]
    pid: NotRequired[int]
    since: NotRequired[float]
    shares: NotRequired[list[str]]


class LabImageDoc(TypedDict):
    """What guests are made of: the image's folder, its packages with their versions, QEMU's version."""

    folder: str
    packages: dict[str, str]
    qemu: str


class WorkloadRegionDoc(TypedDict):
    """Memory that the kernel keeps one policy for."""

    name: str
    size_bytes: int
    locked: NotRequired[bool]
    source: NotRequired[str]


class WorkloadDoc(TypedDict):
    """What the simulator is told about a program."""

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
