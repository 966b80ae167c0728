"""A program described on paper, and its Profile file.

Programs of the study are too large to run here: their objects follow from the problem class, their
traffic from counted sweeps. This module holds the few types in which `npb`, `xsbench` and
`cloverleaf` say so, and turns them into the JSON that `tierloom_model::Profile` reads. The output
depends on nothing but the code: no clock, no files, no environment.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

LINE = 64
"""Bytes of a cache line."""
THREADS = 32
"""Threads that share the work: one socket of the study's servers."""
CPU = "AMD EPYC 9354"
LLC_BYTES = 32 << 20
"""What one core of an EPYC 9354 reaches of its last-level cache: one core complex."""
FREE = 64.0
"""Memory-level parallelism of a stream: more than any core keeps in flight, so the core is the limit."""

Origin = dict[str, str]


def origin(kind: str, source: str, how: str) -> Origin:
    """Where a number comes from, as the file spells it."""
    return {"kind": kind, "source": source, "how": how}


@dataclass(frozen=True)
class Array:
    """A data object: its name, its bytes, and the arithmetic behind them."""

    name: str
    size: int
    how: str
    source: str


@dataclass(frozen=True)
class Traffic:
    """Bytes between the last-level cache and memory for one array, one pattern, over the whole run."""

    array: str
    read: float
    write: float
    why: Origin
    pattern: str = "stream"
    mlp: float = FREE
    word: int = 8
    """Bytes of one load or store."""


@dataclass(frozen=True)
class Program:
    """Everything a profile needs; `arrays` stand in the order of first touch."""

    name: str
    command: str
    arrays: list[Array]
    traffic: list[Traffic]
    compute_s: float
    sources: dict[str, str] = field(default_factory=dict)
    touched_together: bool = False
    """One loop touches all arrays first, page by page."""

    @property
    def footprint(self) -> int:
        """Bytes of all arrays."""
        return sum(array.size for array in self.arrays)


def profile(program: Program) -> dict[str, object]:
    """The profile of a program as `tierloom_model::Profile` spells it."""
    wall = program.compute_s / THREADS
    return {
        "kind": "profile",
        "version": 1,
        "name": program.name,
        "program": {
            "command": [program.command],
            "wall_s": wall,
            "cpu_s": program.compute_s,
            "threads": THREADS,
            "cpu": CPU,
            "llc_bytes": LLC_BYTES,
        },
        "sources": program.sources,
        "objects": [_object(array, _touch(program, rank), wall) for rank, array in enumerate(program.arrays)],
        "phases": [
            {
                "name": "timed iterations",
                "start_s": 0.0,
                "end_s": wall,
                "threads": THREADS,
                "compute_s": program.compute_s,
                "accesses": [_access(traffic) for traffic in program.traffic],
            }
        ],
    }


def text(program: Program) -> str:
    """The profile as the text of its file."""
    return json.dumps(profile(program), indent=2, ensure_ascii=False) + "\n"


def _touch(program: Program, rank: int) -> float:
    """A stand-in for the time of the first touch: only its order has a meaning."""
    return 0.0 if program.touched_together else rank * 1e-3


def _object(array: Array, touch: float, wall: float) -> dict[str, object]:
    return {
        "name": array.name,
        "kind": "heap",
        "site": {"name": array.name},
        "size_bytes": array.size,
        "allocations": 1,
        "first_s": 0.0,
        "last_s": wall,
        "first_touch_s": touch,
        "origin": origin("derived", array.source, array.how),
    }


def _access(traffic: Traffic) -> dict[str, object]:
    return {
        "object": traffic.array,
        "pattern": traffic.pattern,
        "reads": traffic.read / traffic.word,
        "writes": traffic.write / traffic.word,
        "read_bytes": traffic.read,
        "write_bytes": traffic.write,
        "dram_read_bytes": traffic.read,
        "dram_write_bytes": traffic.write,
        "mlp": traffic.mlp,
        "origin": traffic.why,
    }
