"""Tables of profiles: which data the program has and how it is touched."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tierloom.report.columns import Column
from tierloom.report.tables.layout import Table
from tierloom.units import UNKNOWN, bytes_text, count_text, doubt_text, percent_text, tally_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.nouns import Profile
    from tierloom.report.columns import Row
    from tierloom.schema import ObjectDoc, PhaseDoc, SamplingDoc

ROWS = 20
"""Objects that a table shows; the rest is summed in one line."""
TRAFFIC = " its 95 % interval: by how sure the accesses are, and what time allows."
READS = "reads: their share of the memory traffic; a line that is only written is read first, and counts half as reads."
ACCESSES = "accesses: one for each element; a vector load of four doubles is four."
INTERVALS = " ±6 %, ~12x: the 95 % interval, so much or that factor more or fewer; unknown where it is 1000 or more."
SIZE = "size: memory that was touched, of the addresses that were asked for."
COUNTED = (
    " counted: valgrind counted every execution, and of a string instruction every round; what ± is left is which "
    "object it was, by samples."
)
MANY = 0.05
"""Share of bytes that belong to no object from which on it is said what to do."""
SPARSE = 1.1
"""Addresses over memory from which on both are worth their room."""
HARDLY = 0.005
"""A doubt about what was counted that is not worth its room: it would be shown as none."""


@dataclass
class Traffic:
    """What one object does over all phases."""

    read_bytes: float = 0.0
    write_bytes: float = 0.0
    accesses: float = 0.0
    low_bytes: float = 0.0
    high_bytes: float = 0.0
    by_pattern: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def pattern(self) -> str:
        """The pattern of most of the memory traffic."""
        return max(self.by_pattern, key=lambda name: self.by_pattern[name], default="")

    @property
    def total_bytes(self) -> float:
        """Bytes between memory and last-level cache."""
        return self.read_bytes + self.write_bytes

    @property
    def interval(self) -> Row:
        """Between which bytes they are; nothing where they are certain."""
        return {"dram_low": self.low_bytes, "dram_high": self.high_bytes} if self.low_bytes < self.high_bytes else {}


def traffic(profile: Profile) -> dict[str, Traffic]:
    """Traffic by object name, over all phases."""
    totals: dict[str, Traffic] = defaultdict(Traffic)
    for phase in profile.data["phases"]:
        for access in phase["accesses"]:
            total = totals[access["object"]]
            total.read_bytes += access["dram_read_bytes"]
            total.write_bytes += access["dram_write_bytes"]
            within = access.get("traffic_within", {"low": 1.0, "high": 1.0})
            moved = access["dram_read_bytes"] + access["dram_write_bytes"]
            total.low_bytes += moved * within["low"]
            total.high_bytes += moved * within["high"]
            total.accesses += access["reads"] + access["writes"]
            # Objects that stay in the cache have a pattern too, hence the small weight of accesses.
            total.by_pattern[access["pattern"]] += moved + 1e-6 * access["reads"]
    return totals


OBJECTS = (
    *(Column("name", "object"), Column("kind", "kind", rank="extra"), Column("size_bytes", "size", "bytes", "key")),
    *(Column("allocations", "allocations", "count", "page"), Column("share", "waits", "percent", "key")),
    *(Column("low", "95 % interval", "percent", "extra", to="high"), Column("accesses", "accesses", "number", "key")),
    *(
        Column("dram_bytes", "memory traffic", "bytes"),
        Column("dram_low", "its 95 % interval", "bytes", "extra", to="dram_high"),
    ),
    Column("reads", "reads", "percent", "extra"),
    *(Column("pattern", "pattern"), Column("place", "allocated at", "code")),
)


def objects(profile: Profile) -> Table:
    """The program's data objects, those that it waits for most first; small ones together."""
    totals = traffic(profile)
    ordered = _ordered(profile, totals)
    first, others = ordered[:ROWS], ordered[ROWS:]
    rows: list[Row] = [{**_row(item, totals[item["name"]]), "size_bytes": _size([item])} for item in first]
    if others:
        rows.append(_rest(others, totals))
    rows += [{"name": each["name"], **each["stall"], "style": "dim"} for each in profile.data.get("unattributed", [])]
    rows += [{"name": name, "accesses": told, "style": "dim"} for name, told in _unplaced(profile)]
    size = f" {SIZE}" if any(map(_is_sparse, [ordered, others, *([item] for item in first)])) else ""
    sure = INTERVALS if any("accesses" in item for item in first) else ""
    told = TRAFFIC if any(totals[item["name"]].interval for item in first) else ""
    title = f"Data objects of {profile.name}: {_size(profile.data['objects'])}"
    return Table(OBJECTS, rows, title, f"{caption(profile)}{size} {ACCESSES}{sure}{told} {READS}")


def every_object(profile: Profile, totals: Mapping[str, Traffic]) -> Table:
    """All of them."""
    rows = [_row(item, totals.get(item["name"], Traffic())) for item in _ordered(profile, totals)]
    return Table(OBJECTS, rows, "Every object")


def _ordered(profile: Profile, totals: Mapping[str, Traffic]) -> list[ObjectDoc]:
    return sorted(profile.data["objects"], key=lambda item: (-_waits(item, totals), item["name"]))


def _unplaced(profile: Profile) -> list[tuple[str, str]]:
    """Accesses that were counted and belong to no object, with their share of all bytes."""
    sampling = profile.data.get("sampling", {})
    kinds = [("[not sampled]", sampling.get("not_sampled")), ("[thread-local]", sampling.get("thread_local"))]
    return [
        (name, f"{tally_text(found['accesses'])} {percent_text(found['share'])}")
        for name, found in kinds
        if found and found["accesses"]
    ]


def data_sources(profile: Profile) -> list[Table]:
    """Which objects are far, which are shared, and how long accesses take: what the processor told of its samples."""
    told = [(item, item["data_source"]) for item in profile.data["objects"] if "data_source" in item]
    if not any(source["remote"] or source["shared"] or "store_cycles" in source for _, source in told):
        return []
    columns = [
        *(Column("name", "object"), Column("remote", "other node", "percent")),
        *(Column("shared", "other core's cache", "percent"), Column("load_cycles", "cycles a load", "count")),
        Column("store_cycles", "cycles a store", "count"),
    ]
    rows = [{"name": item["name"], **source} for item, source in told[:ROWS]]
    return [Table(columns, rows, "Where the processor found the data")]


def phases(profile: Profile) -> list[Table]:
    """What the program worked on when; nothing to show when it did the same all the time."""
    if len(profile.data["phases"]) < 2:
        return []
    columns = [
        *(
            Column("name", "phase"),
            Column("start_s", "from", "seconds_hundredths"),
            Column("end_s", "to", "seconds_hundredths"),
        ),
        *(Column("threads", "threads", "count"), Column("compute_s", "compute", "seconds_hundredths")),
        *(Column("dram_bytes", "memory traffic", "bytes"), Column("most", "most of it from")),
    ]
    return [Table(columns, [_phase(phase) for phase in profile.data["phases"]], "Phases")]


def _phase(phase: PhaseDoc) -> Row:
    by_object: dict[str, float] = defaultdict(float)
    for access in phase["accesses"]:
        by_object[access["object"]] += access["dram_read_bytes"] + access["dram_write_bytes"]
    total = sum(by_object.values())
    return {**phase, "dram_bytes": total, "most": _largest(by_object, total)}


def _largest(by_object: dict[str, float], total: float) -> str:
    largest = sorted(by_object.items(), key=lambda item: (-item[1], item[0]))[:3]
    return ", ".join(f"{name} {percent_text(size / total)}" for name, size in largest if size > 0)


def _waits(item: ObjectDoc, totals: Mapping[str, Traffic]) -> float:
    stall = item.get("stall")
    return stall["share"] if stall else totals[item["name"]].total_bytes


def _row(item: ObjectDoc, total: Traffic) -> Row:
    return {
        **{key: item[key] for key in ("name", "kind", "size_bytes", "allocations")},
        **item.get("stall", {}),
        "accesses": _accesses(item, total),
        "dram_bytes": total.total_bytes,
        **total.interval,
        **({"reads": total.read_bytes / total.total_bytes} if total.total_bytes else {}),
        "pattern": total.pattern,
        "place": place(item),
    }


def _rest(items: list[ObjectDoc], totals: Mapping[str, Traffic]) -> Row:
    stalls = [item["stall"]["share"] for item in items if "stall" in item]
    return {
        "name": f"and {len(items)} more",
        "size_bytes": _size(items),
        **({"share": sum(stalls)} if stalls else {}),
        "dram_bytes": sum(totals[item["name"]].total_bytes for item in items),
    }


def _size(items: list[ObjectDoc]) -> str:
    """Memory, and the addresses that were asked for, where there are more of them than was ever touched."""
    told = bytes_text(_memory(items))
    return f"{told} of {bytes_text(_addresses(items))}" if _is_sparse(items) else told


def _is_sparse(items: list[ObjectDoc]) -> bool:
    return _addresses(items) > SPARSE * _memory(items)


def _memory(items: list[ObjectDoc]) -> int:
    return sum(item["size_bytes"] for item in items)


def _addresses(items: list[ObjectDoc]) -> int:
    return sum(item.get("address_bytes", item["size_bytes"]) for item in items)


def _accesses(item: ObjectDoc, total: Traffic) -> str:
    count = tally_text(total.accesses)
    known = item.get("accesses")
    if not known or not known["count"]:
        return count
    off = known["high"] / known["count"] - 1
    counted = " counted" if known.get("source") == "counted" else ""
    if counted and off < HARDLY:
        return f"{count}{counted}"
    if off >= UNKNOWN:
        return f"{doubt_text(off)}, at most {tally_text(known['high'])}"
    return f"{count} {doubt_text(off)}{counted}"


def place(item: ObjectDoc) -> str:
    """Where the program makes the object: the statement that it is named after, a symbol, a file."""
    site = item["site"]
    if "stack" in site:
        if line := item.get("line"):
            return line
        lines = [frame for frame in site["stack"] if frame.get("line")]
        frames = [*_named_after(item["name"], site["stack"]), *lines, *site["stack"]]
        return next((str(frame.get("line") or f"{frame['module']}+{frame['offset']:#x}") for frame in frames), "")
    if "symbol" in site:
        return f"{site['symbol']['module']}:{site['symbol']['symbol']}"
    return str(site.get("file", ""))


def _named_after(name: str, stack: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The frames of the function in an object's name, which leaves template arguments out."""
    parts = re.split("@| by |#", name)[0].split("::")
    # Most frames have none of it, and a pattern takes long to compile where there are thousands of names.
    likely = [frame for frame in stack if all(part in (frame.get("function") or "") for part in parts)]
    pattern = rf"(?<!\w){'.*'.join(map(re.escape, parts))}(?!\w)"
    return [frame for frame in likely if re.search(pattern, frame["function"])]


def caption(profile: Profile) -> str:
    """How the samples were taken, in a sentence."""
    sampling = profile.data.get("sampling")
    if sampling is None:
        return "Derived on paper: no run, no samples."
    text = f"{count_text(sampling['samples'], 'sample')} at {sampling['hz']:.0f} Hz of CPU time by {sampling['event']}"
    lost = f", {sampling['lost']} lost" if sampling["lost"] else ""
    counted = COUNTED if "not_sampled" in sampling else ""
    told = f"{counted}{_unseen(sampling)}{_counted_traffic(sampling)}"
    return f"{text}{lost}. waits: share of CPU time that waited for the object.{told}"


def _unseen(sampling: SamplingDoc) -> str:
    """What to do about accesses that were counted and that no sample shows, where they are many."""
    missed = sampling.get("not_sampled")
    if missed is None or missed["share"] < MANY:
        return ""
    return (
        f" [not sampled]: {percent_text(missed['share'])} of the bytes, in code that no sample shows; a higher rate "
        "(--hz 9973) or a longer run shows more of it."
    )


def _counted_traffic(sampling: SamplingDoc) -> str:
    """For which cache memory traffic was counted, and how much of it is of no object here."""
    traffic = sampling.get("counted_traffic")
    if traffic is None:
        return ""
    elsewhere = traffic["elsewhere_bytes"]
    cache, other = bytes_text(traffic["llc_bytes"]), bytes_text(elsewhere)
    rest = f"; {other} more belong to none of these objects" if elsewhere else ""
    return f" memory traffic: lines counted in a simulated last-level cache of {cache}{rest}."
