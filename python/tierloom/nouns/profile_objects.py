"""What a profile says of each object: its columns, and the rows of a document."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tierloom.columns import Column, Row, Worded
from tierloom.units import UNKNOWN, doubt_text, tally_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.schema import AccessDoc, ObjectDoc, ProfileDoc

HARDLY = 0.005
"""A doubt about what was counted that is not worth its room: it would be shown as none."""

OBJECTS = (
    *(Column("object", "object"), Column("kind", "kind", rank="extra"), Column("size_bytes", "size", "bytes", "key")),
    *(Column("allocations", "allocations", "count", "page"), Column("waits_share", "waits", "percent", "key")),
    Column("waits_low", "95 % interval", "percent", "extra", to="waits_high"),
    Column("accesses", "accesses", "number", "key"),
    Column("dram_bytes", "memory traffic", "bytes", about="bytes between memory and last-level cache"),
    Column("dram_low", "its 95 % interval", "bytes", "extra", to="dram_high"),
    Column("reads", "reads", "percent", "extra", about="share of the memory traffic that is read"),
    Column("pattern", "pattern", about="how it is touched where most is waited for it"),
    *(Column("dram_read_bytes", "read", "bytes", "frame"), Column("dram_write_bytes", "written", "bytes", "frame")),
    *(Column("mlp", "misses in flight", "tenths", "frame"), Column("place", "allocated at", "code")),
)


@dataclass
class Traffic:
    """What one object does over all phases."""

    read_bytes: float = 0.0
    write_bytes: float = 0.0
    accesses: float = 0.0
    low_bytes: float = 0.0
    high_bytes: float = 0.0
    by_pattern: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    waited_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    heaviest: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    """By pattern, of the access that is waited for most: that time, its bytes, and the misses that it has in flight."""

    @property
    def pattern(self) -> str:
        """The pattern that is waited for most, and of those alike that of most memory traffic.

        A chase through what a program stored first moves few bytes, and takes nearly all the time.
        """
        return max(self.by_pattern, key=lambda name: (self.waited_s[name], self.by_pattern[name]), default="")

    @property
    def total_bytes(self) -> float:
        """Bytes between memory and last-level cache."""
        return self.read_bytes + self.write_bytes

    @property
    def interval(self) -> Row:
        """Between which bytes they are; nothing where they are certain."""
        return {"dram_low": self.low_bytes, "dram_high": self.high_bytes} if self.low_bytes < self.high_bytes else {}


def traffic(data: ProfileDoc) -> dict[str, Traffic]:
    """Traffic by object name, over all phases."""
    totals: dict[str, Traffic] = defaultdict(Traffic)
    for phase in data["phases"]:
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
            total.waited_s[access["pattern"]] += _waited_s(access)
            weighed = (_waited_s(access), moved, access["mlp"])
            total.heaviest[access["pattern"]] = max(weighed, total.heaviest.get(access["pattern"], weighed))
    return totals


def _waited_s(access: AccessDoc) -> float:
    """Seconds that are waited for one access, in memory and in the cache."""
    touched = access.get("touched")
    return (access.get("wait_s") or 0.0) + (touched["cache_wait_s"] if touched else 0.0)


def object_rows(data: ProfileDoc) -> list[Row]:
    """A row an object, in the order of the document."""
    totals = traffic(data)
    return [object_row(item, totals[item["name"]]) for item in data["objects"]]


def object_row(item: ObjectDoc, total: Traffic) -> Row:
    """Its size, its share of all waiting, its traffic to memory, and how it is mostly touched."""
    return {
        **{key: item[key] for key in ("kind", "size_bytes", "allocations")},
        "object": item["name"],
        **waits(item.get("stall", {})),
        "accesses": Worded(total.accesses, _accesses(item, total)),
        "dram_bytes": total.total_bytes,
        **total.interval,
        **({"reads": total.read_bytes / total.total_bytes} if total.total_bytes else {}),
        "dram_read_bytes": total.read_bytes,
        "dram_write_bytes": total.write_bytes,
        **({"pattern": total.pattern, "mlp": total.heaviest[total.pattern][-1]} if total.pattern else {}),
        "place": place(item),
    }


def waits(stall: Mapping[str, object]) -> Row:
    """Share of all waiting and its interval, as the columns have them."""
    return {f"waits_{key}": value for key, value in stall.items()}


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
