"""Recordings and profiles."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from tierloom.schema.machines import Origin


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
    debug_file: NotRequired[str]
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
    warnings: list[NoticeDoc]
    binaries: list[CodeFileDoc]
