"""Which profiled object is which true one.

Static arrays have the same name, blocks the same call stack as far as both know it. Where several of one side are one
of the other, they are added up. What is too small to be told apart is two objects: data of modules, and the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .statics import REST
from .truth import Truth

SMALL = "[small objects]"
LEFT_OUT = ("[stack]", "[elsewhere]")

Stack = tuple[tuple[str, int], ...]


@dataclass
class Found:
    """An object of both sides."""

    name: str
    true: list[Truth]
    profiled: list[str]
    """Names in the profile."""


def stack_of(item: dict[str, Any]) -> Stack:
    """The allocation's call stack in a profile."""
    return tuple((frame["module"], frame["offset"]) for frame in item["site"].get("stack", ()))


def common(left: Stack, right: Stack) -> int:
    """How many frames both begin with, if that is all that one of them knows or at least four."""
    same = next(
        (i for i, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), min(len(left), len(right))
    )
    return same if same >= min(4, len(left), len(right)) else 0


def label(item: dict[str, Any]) -> str:
    """By what an object of a profile is found without a call stack."""
    if "symbol" in item["site"]:
        return str(item["site"]["symbol"]["symbol"])
    if item["kind"] == "arena":
        return REST if item["name"].endswith(REST) else SMALL
    return str(item["name"])


def called(true: Truth) -> str:
    """A name for people."""
    if true.kind in ("static", "lump"):
        return true.name
    where = true.stack[0] if true.stack else ("?", 0)
    return f"{true.kind} {true.bytes} at {where[0]}+{where[1]:x}"


def candidates(true: Truth, items: list[dict[str, Any]]) -> Iterator[str]:
    """Names of the profiled objects that a true one may be: those with the longest common call stack."""
    if true.kind in ("static", "lump"):
        yield from (item["name"] for item in items if label(item) == true.name)
        return
    depths = {item["name"]: common(true.stack, stack_of(item)) for item in items}
    deepest = max(depths.values(), default=0)
    yield from (name for name, depth in depths.items() if depth == deepest > 0)


def matched(truths: list[Truth], items: list[dict[str, Any]]) -> list[Found]:
    """All objects of both sides."""
    found: list[Found] = []
    for true in truths:
        if true.name in LEFT_OUT:
            continue
        names = list(candidates(true, items))
        same = [one for one in found if set(one.profiled) & set(names) or one.name == called(true)]
        merged = Found(called(true), [true], names)
        for one in same:
            merged = Found(
                one.name, one.true + merged.true, one.profiled + [n for n in merged.profiled if n not in one.profiled]
            )
            found.remove(one)
        found.append(merged)
    known = {name for one in found for name in one.profiled}
    return found + [Found(item["name"], [], [item["name"]]) for item in items if item["name"] not in known]
