"""Tables of persistent pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.report.tables.layout import noted, table
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from tierloom.pmem.documents import PoolDoc
    from tierloom.report.tables.layout import Table


def arrays(pool: PoolDoc) -> Table:
    """The arrays of a pool, and how full it is."""
    made = table(
        f"Pool {pool['path']}: {bytes_text(pool['pool_bytes'])}",
        ("array", "left"),
        ("elements", "left"),
        ("size", "right"),
        ("at", "right"),
        ("version", "right"),
        ("checksums", "left"),
    )
    for item in pool["arrays"]:
        version = str(item["version"]) if item["version"] else ""
        made.add_row(
            item["name"],
            item["elements"],
            bytes_text(item["size_bytes"]),
            f"{item['offset_bytes']:#x}",
            version,
            "yes" if item["checksums"] else "",
        )
    return noted(made, f"{_room(pool)} {_durable(pool)}")


def _room(pool: PoolDoc) -> str:
    used = bytes_text(pool["used_bytes"])
    if pool["data_bytes"] is None or pool["longest_free_bytes"] is None or pool["log_bytes"] is None:
        return f"{used} in use; libpmemobj keeps the pool."
    free = f"longest free piece {bytes_text(pool['longest_free_bytes'])}"
    most = f"A transaction may change {bytes_text(pool['log_bytes'])}."
    return f"{used} of {bytes_text(pool['data_bytes'])} for data in use, {free}. {most}"


def _durable(pool: PoolDoc) -> str:
    if pool["durability"] == "msync":
        return "The file is not persistent memory: durability is msync's."
    return f"Stores are durable after {pool['durability']} and a fence."
