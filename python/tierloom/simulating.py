"""What would page migration do to this program on that machine?

The faces call these; they hand workloads and traces to the simulator of the Rust core and hand its
answers on. A workload comes from the catalog, from a file, from a profile, or from a few numbers
(:meth:`Workload.synthetic`); an access trace is read as it goes, in constant memory.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import tierloom._core as _core
from tierloom import lookup, traces
from tierloom.errors import RequestError, TraceError
from tierloom.nouns import Machine, Plan, Profile
from tierloom.quantities import Amount, amount_in_bytes, seconds_text
from tierloom.tables import Row, Tabular
from tierloom.units import LINE_BYTES, PAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.schema import CostsDoc, OutcomeDoc, PointDoc, SimulatorTermsDoc, WorkloadDoc

OURS = "tierloom"
"""Name of the policy that is ours."""

PATTERNS = ("zipf", "uniform", "scan", "phases")
"""Synthetic workloads."""


class Workload:
    """What the simulator is told about a program: regions of memory, and how phases visit their pages.

    Example:
        >>> Workload.load("graph500").name
        'graph500'
    """

    def __init__(self, data: WorkloadDoc) -> None:
        self.data = data

    @classmethod
    def load(cls, name_or_path: str | Path) -> Workload:
        """Reads a workload by its name in the catalog or the path of its TOML file.

        Raises:
            WorkloadError: There is no such workload, or the file does not hold one.
        """
        text = lookup.workload_text(str(name_or_path))
        return cls(cast("WorkloadDoc", json.loads(_core.check_workload(text.content, text.file))))

    @classmethod
    def of_profile(cls, profile: Profile, threads: int | None = None) -> Workload:
        """What a profile says, for a run on `threads` (those of the profile by default)."""
        wide = threads or profile.data["program"]["threads"]
        return cls(cast("WorkloadDoc", json.loads(_core.profile_workload(profile.text, wide))))

    @classmethod
    def of(cls, given: Workload | Profile | str | Path, threads: int | None = None) -> Workload:
        """What is meant by a workload or a profile, or by the name or path of one."""
        if isinstance(given, Workload):
            return given
        if isinstance(given, Profile) or lookup.is_profile(str(given)):
            return cls.of_profile(Profile.of(given), threads)
        return cls.load(given)

    @classmethod
    def synthetic(
        cls,
        pattern: str,
        *,
        size: Amount = "16GiB",
        seconds: float = 60.0,
        gb_s: float = 4.0,
        theta: float = 0.99,
        threads: int = 16,
        mlp: float = 4.0,
        write_share: float = 0.2,
    ) -> Workload:
        """A workload of one region.

        Args:
            pattern: ``zipf`` (ranks scattered over the addresses), ``uniform``, ``scan``, or ``phases``:
                nine in ten visits go to a tenth of the region, which is another tenth in each of four phases.
            size: Bytes of the region.
            seconds: Computing time, all threads at once, without waiting for memory.
            gb_s: Traffic to memory per second of computing, GB/s.
            theta: Exponent of ``zipf``.
            threads: Threads.
            mlp: Misses that one thread keeps in flight.
            write_share: Written back share of the traffic, 0 to 1.

        Raises:
            RequestError: There is no such pattern, or a number makes no sense.

        Example:
            >>> Workload.synthetic("scan", size="1GiB").footprint_bytes
            1073741824
        """
        if pattern not in PATTERNS:
            message = f"there is no pattern `{pattern}`\nhint: use one of: {', '.join(PATTERNS)}"
            raise RequestError(message)
        _at_least(seconds=(seconds, 0), gb_s=(gb_s, 0), mlp=(mlp, 1), threads=(threads, 1))
        traffic = gb_s * 1e9 * seconds
        phases = [
            [_stream(spread, part, traffic * share, write_share, mlp) for share, spread, part in streams]
            for streams in _streams_by_phase(pattern, theta)
        ]
        data = {
            "version": 1,
            "name": pattern,
            "title": f"{pattern} over one region",
            "threads": threads,
            "regions": [{"name": "data", "size_bytes": amount_in_bytes(size, 0)}],
            "phases": [
                {
                    "name": f"phase {number}",
                    "threads": threads,
                    "compute_s": seconds * threads / len(phases),
                    "streams": streams,
                }
                for number, streams in enumerate(phases, 1)
            ],
        }
        return cls(cast("WorkloadDoc", data))

    @staticmethod
    def names() -> list[str]:
        """Names of the workloads in the catalog, sorted."""
        return lookup.workload_names()

    @property
    def name(self) -> str:
        """Short name."""
        return self.data["name"]

    @property
    def footprint_bytes(self) -> int:
        """Bytes of all regions."""
        return sum(region["size_bytes"] for region in self.data["regions"])

    def __repr__(self) -> str:
        return f"<Workload {self.name}: {len(self.data['regions'])} regions>"


@dataclass(frozen=True, repr=False)
class Simulation(Tabular):
    """One run under one policy; ``data`` is the document that ``--json`` prints.

    A row a moment of its time line.
    """

    machine: Machine
    workload: str
    data: OutcomeDoc

    @property
    def time_s(self) -> float:
        """Run time, s."""
        return self.data["time_s"]

    def rows(self) -> list[Row]:
        """A row a moment: the kernel's counters so far, and by memory what it held and did since the one before."""
        return [self._row(point) for point in self.data["series"]]

    def _row(self, point: PointDoc) -> Row:
        names = [node["memory"] for node in self.data["nodes"]]
        columns = {key: point[key] for key in ("used_pages", "gb_s", "latency_ns")}
        nodes = {f"{name}.{key}": values[at] for key, values in columns.items() for at, name in enumerate(names)}
        return {"time_s": point["time_s"], "fast_share": point["fast_share"], **nodes, **point["counters"]}

    def __repr__(self) -> str:
        return f"<Simulation of {self.workload} under {self.data['policy']}: {seconds_text(self.time_s)}>"


def simulate(
    workload: Workload | Profile | str | Path,
    machine: Machine | str | Path,
    policy: str = "tiering",
    *,
    placement: str | Plan | None = None,
    threads: int | None = None,
    socket: str | None = None,
    nodes: Sequence[str] | None = None,
    fast_memory: Amount | None = None,
    knobs: Mapping[str, float] | None = None,
    evaluator: str = "auto",
    tiers: str | None = None,
    lru: str = "two-lists",
    costs: CostsDoc | None = None,
    seed: int = 0,
    samples: bool = False,
) -> Simulation:
    """Runs a workload on a machine while a policy moves its pages.

    Args:
        workload: A workload, or a profile as one; either by its name in the catalog or its path, too.
        machine: What memory there is: a machine, a name of the catalog, or a file.
        policy: A name of :func:`terms`, or ``tierloom``.
        placement: Where pages are put at first: a name of :func:`terms` (``first-touch`` by default) or a plan.
        threads: Threads, when the workload is a profile; those of the profile by default.
        socket: Where the threads run; the machine's first socket by default.
        nodes: Memories that may be used; all that the socket reaches by default.
        fast_memory: Nearest memory that may be used: bytes, ``"64GiB"``, or ``"50%"`` of the footprint.
        knobs: Knobs of the policy, under the kernel's names.
        evaluator: ``exact``, ``cohort``, or ``auto``.
        tiers: How the kernel sorts nodes into tiers: ``hmat`` (6.7 and later), ``cpuless`` (6.0 and before),
            ``one-tier`` (6.1 to 6.6 with memory that the firmware maps as ordinary); by default that of
            the policy's own kernel, ``cpuless`` for TPP and what stands on it and for Tiering-0.8.
        lru: ``two-lists``, or ``multi-gen`` for a kernel with ``lru_gen`` on.
        costs: What events cost; :func:`tierloom.calibrate` measures them.
        seed: Seed of the visits of the exact evaluator.
        samples: Follow a recorded profile's samples in the order of time: which pages it was at when, each sample
            standing for its share of the visits; page by page, so not for ``tierloom``.

    Raises:
        RequestError: A quantity or a name is wrong, or there are no samples to follow.
        PlacementError: The data does not fit.

    Example:
        >>> run = simulate(Workload.synthetic("scan", size="64MiB", seconds=1), Machine.load("liu-a"), "none")
        >>> round(run.data["fast_share"], 3)
        1.0
    """
    source = Workload.of(workload, threads)
    request = _request(policy, placement, socket, nodes, knobs, evaluator, tiers, lru, costs, seed)
    if fast_memory is not None:
        request["fast_bytes"] = amount_in_bytes(fast_memory, source.footprint_bytes)
    on = Machine.of(machine)
    if samples:
        profile, rows = _with_samples(workload)
        wide = source.data["threads"]
        answer = _core.simulate_samples(on.text, profile.text, wide, rows, json.dumps(request))
    else:
        answer = _core.simulate(on.text, json.dumps(source.data), json.dumps(request))
    return Simulation(on, source.name, cast("OutcomeDoc", json.loads(answer)))


def simulate_trace(
    trace: str | Path,
    machine: Machine | str | Path,
    policy: str = "tiering",
    *,
    placement: str | None = None,
    threads: int = 1,
    mlp: float = 4.0,
    ns_per_access: float = 10.0,
    socket: str | None = None,
    nodes: Sequence[str] | None = None,
    fast_memory: Amount | None = None,
    knobs: Mapping[str, float] | None = None,
    tiers: str | None = None,
    lru: str = "two-lists",
    costs: CostsDoc | None = None,
) -> Simulation:
    """Runs an access trace on a machine, page by page.

    Every row is an access that goes to memory. The clock of the rows, or `ns_per_access` where they have
    none, is taken as computing; waits for memory come on top of it.

    Args:
        trace: ``.npy`` (a column of addresses, or a structured array) or ``.parquet``; see docs/simulate.md.
        machine: What memory there is: a machine, a name of the catalog, or a file.
        policy: A name of :func:`terms`; ``tierloom`` needs a workload or a profile.
        placement: As for :func:`simulate`.
        threads: Threads that the accesses come from.
        mlp: Misses that one thread keeps in flight.
        ns_per_access: Time from one access to the next, where rows have no clock.
        socket: As for :func:`simulate`.
        nodes: As for :func:`simulate`.
        fast_memory: Nearest memory that may be used: bytes or ``"64GiB"``.
        knobs: As for :func:`simulate`.
        tiers: As for :func:`simulate`.
        lru: As for :func:`simulate`.
        costs: As for :func:`simulate`.

    Raises:
        RequestError: A quantity or a name is wrong.
        TraceError: The trace cannot be read; says the row.
        PlacementError: The data does not fit.
    """
    request = _request(policy, placement, socket, nodes, knobs, "exact", tiers, lru, costs, 0)
    if fast_memory is not None:
        request["fast_bytes"] = amount_in_bytes(fast_memory, 0)
    pace = {"threads": threads, "mlp": mlp, "ns_per_access": ns_per_access}
    blocks = traces.blocks(Path(trace))
    read = lambda: next(blocks, b"")  # noqa: E731 (an iterator as the core wants it)
    on = Machine.of(machine)
    answer = _core.simulate_trace(on.text, json.dumps(request), str(trace), json.dumps(pace), read)
    return Simulation(on, Path(trace).stem, cast("OutcomeDoc", json.loads(answer)))


def import_trace(source: str | Path, target: str | Path, kind: str, *, llc: Amount | None = None) -> tuple[int, int]:
    """Turns a text trace into an ``.npy`` that :func:`simulate_trace` reads.

    Args:
        source: Text of ``valgrind --tool=lackey --trace-mem=yes`` or of drmemtrace's ``view`` tool; ``.gz`` too.
        target: File to write.
        kind: ``lackey`` or ``drmemtrace``.
        llc: Size of a last-level cache that lets only its misses and write-backs through.

    Returns:
        Lines read and accesses written.

    Raises:
        TraceError: A row cannot be read; says the file and the row.
        RequestError: There is no such kind, no cache has such a size, or the target cannot be written.
    """
    llc_bytes = None if llc is None else amount_in_bytes(llc, 0)
    with traces.text(Path(source)) as read, traces.Writer(Path(target)) as write:
        lines, accesses = _core.import_trace(kind, str(source), llc_bytes, read, write)
        if not accesses:
            message = f"{source}: none of {lines} lines is an access\nhint: check that it is text of {kind}"
            raise TraceError(message)
    return lines, accesses


def terms() -> SimulatorTermsDoc:
    """Policies with their knobs, shapes of placements' names, and default costs with their sources."""
    return cast("SimulatorTermsDoc", json.loads(_core.simulator_terms()))


def _at_least(**numbers: tuple[float, float]) -> None:
    for name, (value, least) in numbers.items():
        if not least <= value < 1e9:
            message = f"{name}: {value} is not {least} or more\nhint: check the number"
            raise RequestError(message)


def _streams_by_phase(pattern: str, theta: float) -> list[list[tuple[float, object, tuple[float, float]]]]:
    """The streams of each phase of a synthetic pattern: share of all traffic, spread, and part of the region."""
    whole = (0.0, 1.0)
    if pattern == "phases":
        hot = ((start, start + 0.1) for start in (0.8, 0.2, 0.6, 0.4))
        return [[(0.9 / 4, "uniform", part), (0.1 / 4, "uniform", whole)] for part in hot]
    spreads: dict[str, object] = {"zipf": {"scattered": theta}, "uniform": "uniform", "scan": "sweep"}
    return [[(1.0, spreads[pattern], whole)]]


def _stream(
    spread: object, part: tuple[float, float], traffic: float, write_share: float, mlp: float
) -> dict[str, object]:
    """A stream over the one region of a synthetic workload, with so many bytes of traffic."""
    swept = spread == "sweep"
    read = traffic * (1.0 - write_share)
    return {
        "region": "data",
        "part": list(part),
        "spread": spread,
        "pattern": "stream" if swept else "random",
        "visits": read / (PAGE_BYTES if swept else LINE_BYTES),
        "read_bytes": read,
        "write_bytes": traffic * write_share,
        "mlp": mlp,
    }


def _with_samples(given: Workload | Profile | str | Path) -> tuple[Profile, bytes]:
    profile = None if isinstance(given, Workload) else Profile.of(given)
    if profile is None or profile.folder is None:
        name = given.name if isinstance(given, (Workload, Profile)) else given
        message = f"`{name}` has no samples to follow\nhint: record the program with `tierloom profile`"
        raise RequestError(message)
    path = profile.folder / lookup.SAMPLES_FILE
    try:
        profile.samples()  # says which file is damaged: the core sees its bytes alone
        return profile, path.read_bytes()
    except OSError as problem:
        message = (
            f"{path}: {problem.strerror or 'it is empty'}\nhint: record the program again, or leave out the samples"
        )
        raise RequestError(message) from problem


def _request(
    policy: str,
    placement: str | Plan | None,
    socket: str | None,
    nodes: Sequence[str] | None,
    knobs: Mapping[str, float] | None,
    evaluator: str,
    tiers: str | None,
    lru: str,
    costs: CostsDoc | None,
    seed: int,
) -> dict[str, object]:
    _known("evaluator", evaluator, ("auto", "exact", "cohort"))
    if tiers is not None:
        _known("tiers", tiers, ("hmat", "cpuless", "one-tier"))
    _known("lru", lru, ("two-lists", "multi-gen"))
    return {
        "policy": policy,
        "knobs": sorted((knobs or {}).items()),
        "placement": None if isinstance(placement, Plan) else placement,
        "plan": placement.text if isinstance(placement, Plan) else None,
        "nodes": list(nodes) if nodes is not None else None,
        "socket": socket,
        "evaluator": evaluator,
        "tiers": tiers,
        "lru": lru,
        "costs": costs,
        "seed": seed,
    }


def _known(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        message = f"{what}: `{value}` is none\nhint: use one of: {', '.join(known)}"
        raise RequestError(message)
