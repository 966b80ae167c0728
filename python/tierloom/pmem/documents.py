"""The shapes of the documents that ``tierloom pmem --json`` prints; sizes and offsets are in bytes."""

from __future__ import annotations

from typing import TypedDict


class PoolArrayDoc(TypedDict):
    """An array of a persistent pool; a version other than 0 belongs to a checkpoint."""

    name: str
    elements: str
    offset_bytes: int
    size_bytes: int
    version: int


class PoolDoc(TypedDict):
    """A persistent pool: what ``tierloom pmem show --json`` prints."""

    path: str
    durability: str
    pool_bytes: int
    data_bytes: int
    used_bytes: int
    longest_free_bytes: int
    log_bytes: int
    arrays: list[PoolArrayDoc]
