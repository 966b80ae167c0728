"""Predictions, comparisons, plans, and what became of them."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from tierloom.schema.profiles import NoticeDoc


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
    warnings: list[NoticeDoc]


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
