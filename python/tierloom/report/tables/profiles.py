"""Tables of profiles: which data the program has and how it is touched."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tierloom.columns import Column, Worded
from tierloom.nouns.profile_objects import OBJECTS, Traffic, object_row, traffic, waits
from tierloom.report.table_layout.table import Table
from tierloom.units import bytes_text, count_text, percent_text, tally_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.columns import Row
    from tierloom.nouns import Profile
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


def objects(profile: Profile) -> Table:
    """The program's data objects, those that it waits for most first; small ones together."""
    totals = traffic(profile.data)
    ordered = _ordered(profile, totals)
    first, others = ordered[:ROWS], ordered[ROWS:]
    rows: list[Row] = [
        {**object_row(item, totals[item["name"]]), "size_bytes": Worded(item["size_bytes"], _size([item]))}
        for item in first
    ]
    if others:
        rows.append(_rest(others, totals))
    rows += [
        {"object": each["name"], **waits(each["stall"]), "style": "dim"}
        for each in profile.data.get("unattributed", [])
    ]
    rows += [{"object": name, "accesses": told, "style": "dim"} for name, told in _unplaced(profile)]
    size = f" {SIZE}" if any(map(_is_sparse, [ordered, others, *([item] for item in first)])) else ""
    sure = INTERVALS if any("accesses" in item for item in first) else ""
    told = TRAFFIC if any(totals[item["name"]].interval for item in first) else ""
    title = f"Data objects of {profile.name}: {_size(profile.data['objects'])}"
    return Table(OBJECTS, rows, title, f"{caption(profile)}{size} {ACCESSES}{sure}{told} {READS}")


def every_object(profile: Profile, totals: Mapping[str, Traffic]) -> Table:
    """All of them."""
    rows = [object_row(item, totals.get(item["name"], Traffic())) for item in _ordered(profile, totals)]
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


def _rest(items: list[ObjectDoc], totals: Mapping[str, Traffic]) -> Row:
    stalls = [item["stall"]["share"] for item in items if "stall" in item]
    return {
        "object": f"and {len(items)} more",
        "size_bytes": _size(items),
        **({"waits_share": sum(stalls)} if stalls else {}),
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
