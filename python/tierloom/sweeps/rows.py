"""Rows: one point's results, flat, as Parquet has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.tables import Cell, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Cell", "Row", "by_name", "picked"]


def picked(document: Mapping[str, Any], *keys: str) -> Row:
    """Some keys of a document."""
    return {key: document[key] for key in keys}


def by_name(items: Iterable[Mapping[str, Any]], name: str, *keys: str) -> Row:
    """Some keys of each item, behind the item's own name.

    Example:
        >>> by_name([{"memory": "cxl", "gb_s": 3.0}], "memory", "gb_s")
        {'cxl.gb_s': 3.0}
    """
    return {f"{item[name]}.{key}": item[key] for item in items for key in keys if key in item}
