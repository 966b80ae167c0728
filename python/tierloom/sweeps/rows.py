"""Rows: one point's results, flat, as Parquet has them; their parameters are those of the functions that are asked."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tierloom.notebook_tables import Cell, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Rower = Callable[..., Row]

__all__ = ["Cell", "Row", "by_name", "picked", "signature", "takes"]


def takes(*functions: Callable[..., Any], without: Sequence[str] = ()) -> Callable[[Rower], Rower]:
    """Says that a function hands on what it is given besides its own parameters, and to whom.

    Args:
        functions: Whose parameters a study may set.
        without: Their parameters that are no text or number, or that the function fills in itself.
    """

    def decorate(call: Rower) -> Rower:
        all_of = [each for one in (call, *functions) for each in inspect.signature(one).parameters.values()]
        call.__signature__ = signature(all_of, without)  # type: ignore[attr-defined] # inspect looks for it
        return call

    return decorate


def signature(parameters: Iterable[inspect.Parameter], without: Sequence[str] = ()) -> inspect.Signature:
    """A signature of parameters by name; of two of one name the first."""
    found: dict[str, inspect.Parameter] = {}
    for each in parameters:
        if each.kind is not each.VAR_KEYWORD and each.name not in without:
            found.setdefault(each.name, each.replace(kind=each.KEYWORD_ONLY))
    return inspect.Signature(list(found.values()))


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
