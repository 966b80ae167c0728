"""Tables of persistent pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.columns import Column, told
from tierloom.report.table_layout.table import Table
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from tierloom.pmem.documents import PoolDoc

ARRAYS = (
    *(Column("name", "array"), Column("elements", "elements"), Column("size_bytes", "size", "bytes")),
    *(Column("offset_bytes", "at", "address"), Column("version", "version", "count"), Column("checksums", "checksums")),
)


def arrays(pool: PoolDoc) -> Table:
    """The arrays of a pool, and how full it is."""
    rows = [
        told({**item, "version": item["version"] or None, "checksums": item["checksums"] or None})
        for item in pool["arrays"]
    ]
    title = f"Pool {pool['path']}: {bytes_text(pool['pool_bytes'])}"
    return Table(ARRAYS, rows, title, f"{_room(pool)} {_durable(pool)}")


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
