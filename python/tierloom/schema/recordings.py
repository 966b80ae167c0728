"""Recordings and their files of code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from tierloom.schema.documents import NoticeDoc


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
    """What a recording holds; ``format`` is the version of its file."""

    format: int
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
