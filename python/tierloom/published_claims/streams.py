"""STREAM and STREAM-PMem on the machine of *CXL Memory as Persistent Memory for Disaggregated HPC*.

Each kernel is a profile of its arrays, placed whole in one memory. Stores fetch the lines that they
overwrite, as gcc compiles them. STREAM-PMem reaches every element through the pool's pointer translation
(three times an element of Triad, nothing of it flushed): instructions, so computing, on top of the same
traffic. Their cost is fitted to the one-thread Triad on near memory. The prototype card moreover loses
bandwidth under a pool, for which no mechanism was published: how much is taken from ten threads of its own
socket. The ledger shows both points as inputs.

Threads run on one socket, or over both by affinity as OpenMP places them: `close` fills the first socket
before the second, `spread` deals them out in turn. Each takes an even part of every kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tierloom.nouns import Machine, Profile
from tierloom.policy_search import predict
from tierloom.published_claims.computation import Job, Runs, computes, task
from tierloom.schema import PathDoc
from tierloom.units import GIB

MACHINE = "fridman-spr-fpga"
ELEMENTS = 10**8
DOUBLE = 8
LLC_BYTES = 19_660_800

READS = {"copy": ("a",), "scale": ("c",), "add": ("a", "b"), "triad": ("b", "c")}
WRITES = {"copy": "c", "scale": "b", "add": "c", "triad": "a"}

TRANSLATION_NS = 0.514
"""Pointer translation of one element of one array: Triad on near memory takes 24 bytes / 6.9 GB/s per element
in a pool and 24 / 12.4 outside, so 1.54 ns for three of them."""

POOL_KEEPS = {"cxl": 9.3 / 11.3}
"""Share of a memory's bandwidth that is left under a pool: Triad of ten threads in one and outside; DDR5 keeps all."""

SOCKETS = ("socket0", "socket1")
CORES = 10
"""Cores in use of each."""

FREE = 64.0
"""Lines of a stream in flight: more than a core has, so the core is the limit."""


@task(weight=0.05)
def bandwidth(*, machine: str, kernel: str, memory: str, on: str, threads: int, pool: bool) -> float:
    """What STREAM would print for a kernel, GB/s; `on` is a socket, or an affinity over both."""
    found, profile = _machine(machine, POOL_KEEPS if pool else {}), _profile(kernel, threads, pool=pool)
    place = [float(each["name"] == memory) for each in found.data["memories"]]
    done = predict(profile, found, [place] * len(profile.data["objects"]), threads=_teams(on, threads))
    return _counted_bytes(kernel) / done["time_s"] / 1e9


def _machine(name: str, keeps: Mapping[str, float]) -> Machine:
    """A machine, its memories at these shares of their bandwidth."""
    machine = Machine.load(name)
    paths = [_slowed(path, keeps[path["to"]]) if path["to"] in keeps else path for path in machine.data["paths"]]
    return Machine.from_data({**machine.data, "paths": paths})


def _run(given: Mapping[str, Any]) -> Job:
    """The run of what a claim says of it: on the study's first machine and outside a pool where it says nothing."""
    return bandwidth(**{"machine": MACHINE, "pool": False, **given})


def _slowed(path: PathDoc, keeps: float) -> dict[str, Any]:
    form = path["load"]["form"]
    peak = {each: gb_s * keeps for each, gb_s in form["peak"]["half"].items()}
    return {**path, "load": {"form": {**form, "peak": {"half": peak}}}}


def _teams(on: str, threads: int) -> dict[str, int]:
    """Threads by socket, none left out."""
    first = {"close": min(threads, CORES), "spread": threads - threads // 2}
    if on not in first:
        return {on: threads}
    teams = dict(zip(SOCKETS, (first[on], threads - first[on]), strict=True))
    return {name: many for name, many in teams.items() if many}


@computes
def gb_s(
    runs: Runs, *, kernel: str, memory: str, on: str, threads: int, pool: bool = False, machine: str = MACHINE
) -> float:
    """A kernel's bandwidth."""
    (found,) = runs(bandwidth(machine=machine, kernel=kernel, memory=memory, on=on, threads=threads, pool=pool))
    return float(found)


@computes
def loss(runs: Runs, *, of: dict[str, Any], against: dict[str, Any]) -> float:
    """By which share one bandwidth is below another."""
    mine, theirs = runs(_run(of), _run(against))
    return 1.0 - float(mine) / float(theirs)


@computes
def less_gb_s(runs: Runs, *, of: dict[str, Any], against: dict[str, Any]) -> float:
    """By how many GB/s one bandwidth is below another."""
    mine, theirs = runs(_run(of), _run(against))
    return float(theirs) - float(mine)


@computes
def faster(runs: Runs, *, of: dict[str, Any], against: dict[str, Any]) -> bool:
    """Whether one bandwidth is above another."""
    mine, theirs = runs(_run(of), _run(against))
    return bool(mine > theirs)


@computes
def alike(runs: Runs, *, of: dict[str, Any], against: dict[str, Any], within: float) -> bool:
    """Whether one bandwidth is within a share of another."""
    mine, theirs = runs(_run(of), _run(against))
    return bool(abs(mine / theirs - 1.0) <= within)


@computes
def surpasses(runs: Runs, *, memory: str, on: str, threads: int, read_gb_s: float, write_gb_s: float) -> bool:
    """Whether Triad on a memory beats one that reads and writes at these rates, one after the other.

    Lines that are stored to are fetched first there too.
    """
    (found,) = runs(_run({"kernel": "triad", "memory": memory, "on": on, "threads": threads}))
    fetched = (len(READS["triad"]) + 1) * DOUBLE
    seconds_per_giga = fetched / read_gb_s + DOUBLE / write_gb_s
    return bool(found > fetched / seconds_per_giga)


@computes
def array_mb(_runs: Runs) -> float:
    """Size of one array, MB."""
    return ELEMENTS * DOUBLE / 1e6


@computes
def footprint_gib(_runs: Runs) -> float:
    """Memory of the three arrays, GiB."""
    return 3 * ELEMENTS * DOUBLE / GIB


def _counted_bytes(kernel: str) -> float:
    return float((len(READS[kernel]) + 1) * DOUBLE * ELEMENTS)


def _profile(kernel: str, threads: int, *, pool: bool) -> Profile:
    arrays = [*READS[kernel], WRITES[kernel]]
    return Profile.from_data(_document(kernel, arrays, threads, pool=pool), kernel)


def _document(kernel: str, arrays: list[str], threads: int, *, pool: bool) -> dict[str, Any]:
    """One pass of a kernel; computing is only what a pool adds."""
    translating_s = len(arrays) * ELEMENTS * TRANSLATION_NS * 1e-9 if pool else 0.0
    return {
        "version": 1,
        "name": f"stream-{kernel}",
        "program": {
            "command": [f"STREAM {kernel}, {ELEMENTS} doubles an array"],
            "wall_s": 1.0,
            "cpu_s": float(threads),
            "threads": threads,
            "cpu": "Sapphire Rapids",
            "llc_bytes": LLC_BYTES,
        },
        "objects": [_array(name) for name in arrays],
        "phases": [
            {
                "name": kernel,
                "start_s": 0.0,
                "end_s": 1.0,
                "threads": threads,
                "compute_s": translating_s,
                "accesses": [_access(name, stored=name == WRITES[kernel]) for name in arrays],
            }
        ],
    }


def _array(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "heap",
        "site": {"name": name},
        "size_bytes": ELEMENTS * DOUBLE,
        "allocations": 1,
        "first_s": 0.0,
        "last_s": 1.0,
        "first_touch_s": 0.0,
    }


def _access(name: str, *, stored: bool) -> dict[str, Any]:
    """A pass over an array: what is stored is fetched first, and written back."""
    size = float(ELEMENTS * DOUBLE)
    return {
        "object": name,
        "pattern": "stream",
        "reads": 0.0 if stored else float(ELEMENTS),
        "writes": float(ELEMENTS) if stored else 0.0,
        "read_bytes": 0.0 if stored else size,
        "write_bytes": size if stored else 0.0,
        "dram_read_bytes": size,
        "dram_write_bytes": size if stored else 0.0,
        "mlp": FREE,
    }
