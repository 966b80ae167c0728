"""What would page migration do to this program on that machine?

The faces call these; they hand workloads and traces to the simulator of the Rust core and hand its
answers on. A workload comes from the catalog, from a file, from a profile, or from a few numbers
(:meth:`Workload.synthetic`); an access trace is read as it goes, in constant memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

import tierloom._core as _core
from tierloom import arguments, catalog, measured_hosts
from tierloom.columns import Column, Row
from tierloom.errors import RequestError, TraceError, WorkloadError
from tierloom.notebook_tables import Charted, Tabular
from tierloom.nouns import Machine, Plan, Profile, Workload
from tierloom.schema.documents import Kind
from tierloom.units import Amount, amount_in_bytes, seconds_text
from tierloom.user_policies import MIGRATION, Migrating, migrating
from tierloom.user_policies import policy as user_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tierloom.forms import Form
    from tierloom.schema import CostsDoc, OutcomeDoc, PointDoc, SimulatorTermsDoc

OURS = "tierloom"
"""Name of the policy that is ours."""

Evaluator = Literal["auto", "exact", "cohort"]
Tiers = Literal["hmat", "cpuless", "one-tier"]
Lru = Literal["two-lists", "multi-gen"]


BY_MEMORY: tuple[tuple[str, str, Form], ...] = (
    ("used_pages", "pages", "count"),
    ("gb_s", "GB/s", "tenths"),
    ("latency_ns", "latency", "ns"),
)
"""What a moment tells of each memory: the document's key, a heading, and how it is written."""


@dataclass(frozen=True, repr=False)
class Simulation(Charted, Tabular):
    """One run under one policy; ``data`` is the document that the verb prints as JSON.

    A row a moment of its time line.
    """

    machine: Machine
    workload: str
    data: OutcomeDoc
    ran_on: str | None = None
    """The machine that a profile was recorded on, where its waiting is anchored to that run."""

    @property
    def time_s(self) -> float:
        """Run time, s."""
        return self.data["time_s"]

    @property
    def columns(self) -> Sequence[Column]:
        """Of a moment: of the memories and of the kernel's counters that the run has."""
        names = [node["memory"] for node in self.data["nodes"]]
        counters = self.data["series"][0]["counters"] if self.data["series"] else ()
        return (
            *(Column("time_s", "time", "seconds", "key"), Column("fast_share", "from fast memory", "percent", "key")),
            *(Column(f"{name}.{key}", f"{name}: {said}", form) for key, said, form in BY_MEMORY for name in names),
            *(Column(counter, counter, "count", "extra") for counter in counters),
        )

    def told(self) -> list[Row]:
        """A row a moment: the kernel's counters so far, and by memory what it held and did since the one before."""
        return [self._row(point) for point in self.data["series"]]

    def _row(self, point: PointDoc) -> Row:
        names = [node["memory"] for node in self.data["nodes"]]
        moment: Row = point
        nodes = {f"{name}.{key}": moment[key][at] for key, _, _ in BY_MEMORY for at, name in enumerate(names)}
        return {"time_s": point["time_s"], "fast_share": point["fast_share"], **nodes, **point["counters"]}

    def __repr__(self) -> str:
        return f"<Simulation of {self.workload} under {self.data['policy']}: {seconds_text(self.time_s)}>"


@arguments.reads(policy=arguments.policy)
def simulate(
    workload: Workload | Profile | str | Path,
    machine: Machine | str | Path,
    policy: str | Callable[..., object] = "tiering",
    *,
    placement: str | Plan | None = None,
    threads: int | None = None,
    socket: str | None = None,
    nodes: Sequence[str] | None = None,
    fast_memory: Amount | None = None,
    knobs: Mapping[str, float] | None = None,
    evaluator: Evaluator = "auto",
    tiers: Tiers | None = None,
    lru: Lru = "two-lists",
    costs: CostsDoc | None = None,
    seed: int = 0,
    samples: bool = False,
    ran_on: Machine | str | Path | None = None,
) -> Simulation:
    """Runs a workload on a machine while a policy moves its pages.

    Args:
        workload: A workload, or a profile as one; either by its name in the catalog or its path, too.
        machine: What memory there is: a machine, a name of the catalog, or a file.
        policy: A name of :func:`terms`, or ``"tierloom"``; or one of your own: a class, or a name that
            :mod:`tierloom.user_policies` reads, such as ``"mine.py:Threshold"``.
        placement: Where pages are put at first: ``"first-touch"`` (by default), ``"interleave"``, …

            :func:`terms` has the names. A plan does, too.
        threads: Threads, when the workload is a profile; those of the profile by default.
        socket: Where the threads run; the machine's first socket by default.
        nodes: Memories that may be used; all that the socket reaches by default.
        fast_memory: Nearest memory that may be used: ``"64GiB"``, or ``"50%"`` of the footprint.
        knobs: Knobs of the policy, under the kernel's names; arguments of one of your own.
        evaluator: Follow every visit to every page, or keep expected counts of like pages; ``"auto"`` goes by the size.
        tiers: How the kernel sorts nodes into tiers: from 6.7 on (``"hmat"``), up to 6.0 (``"cpuless"``), or 6.1 to 6.6
            (``"one-tier"``); else as the policy's own.

            One tier is what those kernels make of memory that the firmware maps as ordinary. Nodes without CPUs are
            the slow tier for TPP and what stands on it, and for Tiering-0.8.
        lru: Which pages the kernel takes for cold: by its active and inactive lists, or by generations (lru_gen).
        costs: What events cost; :func:`tierloom.calibrate` measures them.
        seed: Seed of the visits that the exact evaluator draws.
        samples: Follow the profile's samples: which pages it was at, when.

            It has to be a recorded one. Each sample stands for its share of the visits, page by page, so this is not
            for the policy ``tierloom``.
        ran_on: The machine that a profile was recorded on, measured; known by default where ``machine measure`` ran
            there. It waits as it did in that run then, times the latencies here over those there.

    Raises:
        RequestError: A quantity or a name is wrong, there are no samples to follow, or a policy of your own raised
            something.
        PlacementError: The data does not fit.

    Example:
        >>> run = simulate(Workload.synthetic("scan", size="64MiB", seconds=1), Machine.load("liu-a"), "none")
        >>> round(run.data["fast_share"], 3)
        1.0
    """
    on = Machine.of(machine)
    workload, known = _likely_on(workload, on, socket, ran_on)
    source = Workload.of(workload, threads)
    name, knobs, own = _policy(policy, knobs)
    request = _request(name, placement, socket, nodes, knobs, evaluator, tiers, lru, costs, seed)
    if fast_memory is not None:
        request["fast_bytes"] = amount_in_bytes(fast_memory, source.footprint_bytes)
    if samples:
        profile, rows = _with_samples(workload)
        wide = source.data["threads"]
        answer = _core.simulate_samples(on.core, profile.core, wide, rows, request, own)
    else:
        answer = _core.simulate(on.core, source.core, request, own)
    return Simulation(on, source.name, cast("OutcomeDoc", answer), known)


@arguments.reads(trace=arguments.path, threads=arguments.THREADS, policy=arguments.policy)
def simulate_trace(
    trace: str | Path,
    machine: Machine | str | Path,
    policy: str | Callable[..., object] = "tiering",
    *,
    placement: str | None = None,
    threads: int = 1,
    mlp: float = 4.0,
    ns_per_access: float = 10.0,
    socket: str | None = None,
    nodes: Sequence[str] | None = None,
    fast_memory: Amount | None = None,
    knobs: Mapping[str, float] | None = None,
    tiers: Tiers | None = None,
    lru: Lru = "two-lists",
    costs: CostsDoc | None = None,
) -> Simulation:
    """Runs an access trace on a machine, page by page.

    Every row is an access that goes to memory. The clock of the rows, or `ns_per_access` where they have
    none, is taken as computing; waits for memory come on top of it.

    Args:
        trace: ``.npy`` (a column of addresses, or a structured array) or ``.parquet``; see docs/simulate.md.
        machine: What memory there is: a machine, a name of the catalog, or a file.
        policy: As for :func:`simulate`; ``"tierloom"`` needs a workload or a profile.
        placement: As for :func:`simulate`.
        threads: Threads that the accesses come from.
        mlp: Misses that one thread keeps in flight.
        ns_per_access: Pace of a trace whose rows have no clock: ns from one access to the next.
        socket: As for :func:`simulate`.
        nodes: As for :func:`simulate`.
        fast_memory: Nearest memory that may be used: ``"64GiB"``, or ``"50%"`` of the pages that it touches.
        knobs: As for :func:`simulate`.
        tiers: As for :func:`simulate`.
        lru: As for :func:`simulate`.
        costs: As for :func:`simulate`.

    Raises:
        RequestError: A quantity or a name is wrong.
        TraceError: The trace cannot be read; says the row.
        PlacementError: The data does not fit.

    Example:
        >>> import numpy, pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "app.npy"
        >>> numpy.save(file, numpy.arange(0, 1 << 20, 64, dtype=numpy.uint64))
        >>> simulate_trace(file, "liu-a", "none").data["evaluator"]
        'exact: a trace of 16384 accesses to 256 pages'
    """
    from tierloom import traces

    name, knobs, own = _policy(policy, knobs)
    request = _request(name, placement, socket, nodes, knobs, "exact", tiers, lru, costs, 0)
    if fast_memory is not None:
        request["fast_bytes"] = share_of_trace(trace, fast_memory)
    pace = {"threads": threads, "mlp": mlp, "ns_per_access": ns_per_access}
    blocks = traces.blocks(Path(trace))
    read = lambda: next(blocks, b"")  # noqa: E731 (an iterator as the core wants it)
    on = Machine.of(machine)
    answer = _core.simulate_trace(on.core, request, str(trace), pace, read, own)
    return Simulation(on, Path(trace).stem, cast("OutcomeDoc", answer))


def share_of_trace(trace: str | Path, amount: Amount) -> int:
    """An amount of memory in bytes; a percentage is of what a trace touches, for which it is read once.

    Raises:
        RequestError: It is no amount of memory.
        TraceError: The trace cannot be read; says the row.
    """
    from tierloom import traces

    of_data = isinstance(amount, str) and amount.strip().endswith("%")
    return amount_in_bytes(amount, traces.footprint_bytes(Path(trace)) if of_data else 0)


@arguments.reads(source=arguments.path, target=arguments.path)
def import_trace(source: str | Path, target: str | Path, kind: str, *, llc: Amount | None = None) -> tuple[int, int]:
    """Turns a text trace into an ``.npy`` that :func:`simulate_trace` reads.

    Args:
        source: Text of ``valgrind --tool=lackey --trace-mem=yes`` or of drmemtrace's view tool; ``.gz`` too.
        target: File to write.
        kind: ``"lackey"`` or ``"drmemtrace"``.
        llc: Pass it through a last-level cache of this size: only misses and write-backs are kept.

    Returns:
        Lines read and accesses written.

    Raises:
        TraceError: A row cannot be read; says the file and the row.
        RequestError: There is no such kind, no cache has such a size, or the target cannot be written.
    """
    from tierloom import traces

    llc_bytes = None if llc is None else amount_in_bytes(llc, 0)
    with traces.text(Path(source)) as read, traces.Writer(Path(target)) as write:
        lines, accesses = _core.import_trace(kind, str(source), llc_bytes, read, write)
        if not accesses:
            message = f"{source}: none of {lines} lines is an access\nhint: check that it is text of {kind}"
            raise TraceError(message)
    return lines, accesses


def terms() -> SimulatorTermsDoc:
    """Policies with their knobs, shapes of placements' names, and default costs with their sources."""
    return cast("SimulatorTermsDoc", _core.simulator_terms())


def _likely_on(
    given: Workload | Profile | str | Path, on: Machine, socket: str | None, said: Machine | str | Path | None
) -> tuple[Workload | Profile | str | Path, str | None]:
    """A profile as it likely is on the socket that it runs on, and on which machine it ran; anything else as it is."""
    if isinstance(given, Workload):
        return given, None
    if not isinstance(given, Profile) and not catalog.is_profile(arguments.path("workload", given, WorkloadError)):
        return given, None
    profile = Profile.of(given)
    ran_on = measured_hosts.ran_on(profile, on, said)
    likely = profile.likely_on(on, socket, ran_on)
    return likely, ran_on.name if ran_on and likely.is_anchored else None


def _with_samples(given: Workload | Profile | str | Path) -> tuple[Profile, bytes]:
    profile = None if isinstance(given, Workload) else Profile.of(given)
    if profile is None or profile.folder is None:
        name = given.name if isinstance(given, (Workload, Profile)) else given
        message = f"`{name}` has no samples to follow\nhint: record the program with `tierloom profile`"
        raise RequestError(message)
    path = profile.folder / catalog.SAMPLES_FILE
    try:
        profile.samples()  # says which file is damaged: the core sees its bytes alone
        return profile, path.read_bytes()
    except OSError as problem:
        message = f"{path}: {problem.strerror}\nhint: record the program again, or leave out the samples"
        raise RequestError(message) from problem


def _policy(
    asked: str | Callable[..., object], knobs: Mapping[str, float] | None
) -> tuple[str, Mapping[str, float] | None, Migrating | None]:
    """Name and knobs as the simulator takes them; a policy of the caller's own has its knobs with it."""
    found = user_policy(asked, MIGRATION, lambda: [OURS, *(name for name, *_ in terms()["policies"])])
    if isinstance(found, str):
        return found, knobs, None
    return found.name, None, migrating(found, knobs or {})


def _request(
    policy: str,
    placement: str | Plan | None,
    socket: str | None,
    nodes: Sequence[str] | None,
    knobs: Mapping[str, float] | None,
    evaluator: Evaluator,
    tiers: Tiers | None,
    lru: Lru,
    costs: CostsDoc | None,
    seed: int,
) -> dict[str, object]:
    if not isinstance(placement, Plan | None):
        placement = arguments.text("placement", placement)
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
        "costs": None if costs is None else _costs(costs),
        "seed": seed,
    }


def _costs(given: CostsDoc) -> dict[str, object]:
    """Costs as :func:`tierloom.calibrate` returns them: each that there is, with a value."""
    known = terms()["costs"]
    if not isinstance(given, Mapping) or set(given) != set(known) or not all(map(_is_figure, given.values())):
        hint = f"give what tierloom.calibrate() returns: {', '.join(known)}, each with value, kind and source"
        raise arguments.refused(given, "costs", "no table of costs", hint)
    return {**given}


def _is_figure(given: object) -> bool:
    if not isinstance(given, Mapping) or not {"value", "kind", "source"} <= given.keys():
        return False
    if given["kind"] not in get_args(Kind) or not isinstance(given["source"], str):
        return False
    value = given["value"]
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < math.inf
