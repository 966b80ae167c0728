"""Nodes of plans here, and what became of plans."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from tierloom.schema.documents import NoticeDoc


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


class NodeMatchDoc(TypedDict):
    """A memory that a plan uses, and the node of this machine that it is."""

    memory: str
    node: int
    kind: str
    """What the node is made of."""
    because: str
    """``as given``, ``the only one of its kind``, ``by latency``, …"""


class RunDoc(TypedDict):
    """What became of a run under a plan."""

    exit_code: int
    signal: NotRequired[str]
    cut_off: NotRequired[bool]
    """It was killed because its time was over; only in runs that have a limit."""
    wall_s: float
    cpu_s: float
    nodes: list[int]
    memories: list[NodeMatchDoc]
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
    memories: list[NodeMatchDoc]
    rules: list[AppliedRuleDoc]
