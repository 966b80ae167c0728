"""From a sketch to a machine: fills in what no source tells, each figure marked and explained.

The constants below are the only guesses of the readers of foreign formats. Each says where it is from;
each that is used stands in the machine file as ``assumed`` or ``derived`` with its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tierloom.catalog.kind_figures import (
    DEMAND_LINES,
    DRAM_SHAPE,
    KIND_FIGURES,
    LLC_BYTES,
    LOCAL_GB_S,
    LOCAL_NS,
    SHAPES,
    STREAM_LINES,
    write_share,
)
from tierloom.machine_formats.sketch import Known
from tierloom.machine_formats.texts import flaw
from tierloom.measurement import rising_curve
from tierloom.nouns import Machine

if TYPE_CHECKING:
    from tierloom.machine_formats.lanes import Lanes
    from tierloom.machine_formats.sketch import Cpus, Curve, Node, Route, Sketch

T = TypeVar("T")

ASSUMED = "assumed"
ASSUMED_TEXT = "taken for granted where no source tells; each figure says why"

LOCAL_DISTANCE = 10
"""ACPI 6.5, 5.2.17: the distance of a node to itself."""
CXL_SHARPNESS = 4.5
"""Corner between the lanes' limits: fit of the simulated CXL expander's curves (Mess)."""


def assemble(sketch: Sketch, name: str, title: str, *, file: str) -> Machine:
    """The machine of a sketch.

    Raises:
        MachineError: No source tells what nobody can guess: cores, capacities.
    """
    _require(sketch, file)
    builder = _Builder(sketch)
    sockets = [builder.socket(number, sketch.cpus[number]) for number in sketch.cpus]
    memories = [builder.memory(number, sketch.nodes[number]) for number in sorted(sketch.nodes)]
    paths = [builder.path(start, end) for start in sketch.cpus for end in sorted(sketch.nodes)]
    document = {
        "version": 1,
        "name": name,
        "title": title,
        "notes": sketch.notes,
        "sources": {**sketch.sources, ASSUMED: ASSUMED_TEXT} if builder.assumed else sketch.sources,
        "sockets": sockets,
        "memories": memories,
        "paths": paths,
    }
    return Machine.from_data(document, file)


def _require(sketch: Sketch, file: str) -> None:
    if not sketch.nodes or not sketch.cpus:
        raise flaw(file, "", "no memory node and no CPU is described", "check that it is the file you meant")
    unsized = [number for number, node in sorted(sketch.nodes.items()) if node.capacity_bytes is None]
    if unsized:
        nodes = " ".join(f"--node {number}=dram:64GiB" for number in unsized[:8])
        hint = f"add the machine's hwloc XML or /sys tree, or {nodes}"
        raise flaw(file, "", f"no source tells how large node {unsized[0]} is", hint)
    for number, cpus in sorted(sketch.cpus.items()):
        if cpus.cores is None:
            hint = "add the machine's hwloc XML or /sys tree, or --cores 32"
            raise flaw(file, "", f"no source tells how many cores node {number} has", hint)


def _figure(known: Known[Any], value: Any = None) -> dict[str, Any]:  # noqa: ANN401 (numbers of any kind)
    figure = {"value": known.value if value is None else value, "kind": known.kind, "source": known.source}
    return {**figure, "how": known.how} if known.how else figure


class _Builder:
    """Documents of a machine's parts; remembers whether anything was assumed."""

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch
        self.assumed = False

    def assume(self, value: float, how: str) -> Known[Any]:
        self.assumed = True
        return Known(value, "assumed", ASSUMED, how)

    def socket_name(self, number: int) -> str:
        return self.sketch.cpus[number].name or f"socket{number}"

    def memory_name(self, number: int) -> str:
        return self.sketch.nodes[number].name or f"node{number}"

    def socket(self, number: int, cpus: Cpus) -> dict[str, Any]:
        llc = cpus.llc_bytes or self.assume(LLC_BYTES, "no source tells the last-level cache; one of 32 MiB")
        as_zen = "as on Sapphire Rapids: no source tells how many lines a core keeps in flight"
        return {
            "name": self.socket_name(number),
            "cpu": cpus.model or "unknown processor",
            "cores": _figure(_told(cpus.cores)),
            "llc_bytes": _figure(llc),
            "llc_per_core_bytes": _figure(cpus.llc_per_core_bytes or llc),
            "stream_lines": _figure(self.assume(STREAM_LINES, as_zen)),
            "demand_lines": _figure(self.assume(DEMAND_LINES, as_zen)),
        }

    def memory(self, number: int, node: Node) -> dict[str, Any]:
        return {
            "name": self.memory_name(number),
            "kind": self.kind(number),
            "socket": self.socket_name(self.home(number)),
            "capacity_bytes": _figure(_told(node.capacity_bytes)),
        }

    def kind(self, number: int) -> str:
        """What a node is made of; `doubts.py` has filled in what no source tells."""
        return _told(self.sketch.nodes[number].kind).value

    def home(self, number: int) -> int:
        """Node of the CPUs that a memory hangs on: as told, its own, or the nearest."""
        told = self.sketch.nodes[number].home
        if told in self.sketch.cpus or number in self.sketch.cpus:
            return told if told is not None and told in self.sketch.cpus else number
        return min(sorted(self.sketch.cpus), key=lambda start: self.idle_ns(start, number).value)

    def path(self, start: int, end: int) -> dict[str, Any]:
        idle = self.idle_ns(start, end)
        return {
            "from": self.socket_name(start),
            "to": self.memory_name(end),
            "idle_ns": _figure(idle),
            "load": self.load(start, end, idle.value),
        }

    def idle_ns(self, start: int, end: int) -> Known[float]:
        """As told, else scaled by distance from the nearest route that is told."""
        route = self.sketch.route(start, end)
        if route.idle_ns:
            return route.idle_ns
        if route.curves:
            return _of_curves(route)
        known, base, distance = self.nearest_idle(end)
        if route.distance is None or not distance:
            how = f"no source tells this path; as {known.how or 'near DRAM'}"
            return self.assume(known.value, how)
        value = round(known.value * route.distance / distance, 1)
        how = f"{known.value:g} ns {base} x distance {route.distance} / {distance}: firmware's distances are coarse"
        self.assumed = self.assumed or known.source == ASSUMED
        return Known(value, "assumed" if known.source == ASSUMED else "derived", known.source, how)

    def nearest_idle(self, end: int) -> tuple[Known[float], str, int | None]:
        """The least latency that is told of a memory, with the words and the distance that go with it."""
        told = [
            (route.idle_ns, f"from node {start}", route.distance)
            for (start, target), route in sorted(self.sketch.routes.items())
            if target == end and route.idle_ns
        ]
        if told:
            return min(told, key=lambda entry: entry[0].value)
        if of_kind := KIND_FIGURES.get(self.kind(end)):
            how = f"no source tells a latency; {of_kind.idle_ns:g} ns is that of {of_kind.idle_of}"
            return self.assume(of_kind.idle_ns, how), "of its kind, assumed,", self.least_distance(end)
        how = "no source tells a latency; 81 to 116 ns are published for near DRAM"
        return self.assume(LOCAL_NS, how), "of near DRAM, assumed,", LOCAL_DISTANCE

    def least_distance(self, end: int) -> int | None:
        """Of the nearest CPUs, whose latency a kind's is."""
        routes = [route for (_, target), route in self.sketch.routes.items() if target == end]
        return min((route.distance for route in routes if route.distance), default=None)

    def load(self, start: int, end: int, idle_ns: float) -> dict[str, Any]:
        route = self.sketch.route(start, end)
        if route.curves:
            return {"points": [_curve(share, route.curves[share], idle_ns) for share in sorted(route.curves)]}
        kind = self.kind(end)
        if route.lanes:
            return self.of_lanes(kind, route.lanes)
        read = route.read_gb_s or self.nearest_bandwidth(end)
        if kind in KIND_FIGURES and read.source == ASSUMED:
            return self.of_kind(kind)
        share = write_share(kind)
        write_gb_s = route.write_gb_s.value if route.write_gb_s else round(share * read.value, 2)
        shape, shape_of = SHAPES.get(kind, DRAM_SHAPE)
        written = "told" if route.write_gb_s else f"assumed, {share:.2f} of the read peak"
        how = f"read peak: {read.how or 'told'}; write peak: {written}; rise below the peak: assumed as of {shape_of}"
        self.assumed = self.assumed or read.source == ASSUMED
        origin = {"kind": "assumed", "source": read.source, "how": how}
        return {"form": {"peak": _peak(kind, read.value, write_gb_s), "shape": shape, "origin": origin}}

    def of_kind(self, kind: str) -> dict[str, Any]:
        """Of a memory of which nobody tells more; reads and writes share its bandwidth: no guess upwards."""
        known = KIND_FIGURES[kind]
        shape, shape_of = SHAPES.get(kind, DRAM_SHAPE)
        self.assumed = True
        how = (
            f"no source tells a bandwidth; peaks of {known.bandwidth_of}, shared by reads and writes; rise below the "
            f"peak: assumed as of {shape_of}"
        )
        peak = {"half": {"read_gb_s": known.read_gb_s, "write_gb_s": known.write_gb_s}}
        return {"form": {"peak": peak, "shape": shape, "origin": {"kind": "assumed", "source": ASSUMED, "how": how}}}

    def of_lanes(self, kind: str, known: Known[Lanes]) -> dict[str, Any]:
        shape, shape_of = SHAPES.get(kind, DRAM_SHAPE)
        way = known.value
        limits = {"read_gb_s": way.read, "write_gb_s": way.write, "combined_gb_s": way.both}
        full = {key: round(gb_s, 3) for key, gb_s in limits.items()} | {"sharpness": way.sharpness}
        how = f"peaks: {known.how}; rise below the peak: assumed as of {shape_of}"
        origin = {"kind": "assumed", "source": known.source, "how": how}
        return {"form": {"peak": {"full": full}, "shape": shape, "origin": origin}}

    def nearest_bandwidth(self, end: int) -> Known[float]:
        """The most that is told of a memory from anywhere."""
        told = [route.read_gb_s for (_, target), route in sorted(self.sketch.routes.items()) if target == end]
        known = [read for read in told if read]
        if known:
            best = max(known, key=lambda read: read.value)
            how = "as from the nearest CPUs: no source tells what the way between the sockets carries"
            return Known(best.value, "assumed", best.source, how)
        return self.assume(LOCAL_GB_S, "no source tells a bandwidth; one channel of DDR5-4800")


def _told(known: Known[T] | None) -> Known[T]:
    if known is None:  # `_require` has refused it, or `doubts.py` has filled it in
        raise AssertionError
    return known


def _of_curves(route: Route) -> Known[float]:
    """Latency at the least load that was measured."""
    share = max(route.curves)
    curve = route.curves[share]
    first = min(curve.points)
    how = f"at the least load of the curve with {share:.0%} reads, {first[0]:g} GB/s"
    return Known(first[1], curve.origin.kind, curve.origin.source, how)


def _curve(share: float, curve: Curve, idle_ns: float) -> dict[str, Any]:
    points = rising_curve(curve.points)
    if len(points) < 2 or points[0][0] > 0.0:
        first = min(idle_ns, points[0][1])
        points = [(0.0, first), *points]
    origin = {"kind": curve.origin.kind, "source": curve.origin.source, "how": curve.origin.how}
    rounded = [[round(gb_s, 4), round(ns, 3)] for gb_s, ns in points]
    return {"read_fraction": share, "points": rounded, "origin": origin}


def _peak(kind: str, read_gb_s: float, write_gb_s: float) -> dict[str, Any]:
    if kind != "cxl":
        return {"half": {"read_gb_s": read_gb_s, "write_gb_s": write_gb_s}}
    both = read_gb_s + write_gb_s
    lanes = {"read_gb_s": _lane(read_gb_s, both), "write_gb_s": _lane(write_gb_s, both)}
    return {"full": {**lanes, "combined_gb_s": both, "sharpness": CXL_SHARPNESS}}


def _lane(peak_gb_s: float, combined_gb_s: float) -> float:
    """The lane's own limit when its peak was measured: ``1/peak^q = 1/lane^q + 1/combined^q``."""
    power = peak_gb_s**-CXL_SHARPNESS - combined_gb_s**-CXL_SHARPNESS
    lane_gb_s: float = power ** (-1 / CXL_SHARPNESS)
    return round(lane_gb_s, 3)
