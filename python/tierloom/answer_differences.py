"""What two answers of `plan` differ in where it matters: the policy that is chosen, its time, and which objects move.

`diff` says this before it goes through all figures of both answers, of which policies that nobody chose have most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierloom.units import percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping

SAME = 0.005
"""Shares of an object no further apart are the same."""
NAMED = 4
"""Objects that the sentence names."""


@dataclass(frozen=True)
class Choice:
    """The chosen policy of an answer; `shares` are those of each memory, by object."""

    policy: str
    time_s: float
    low_s: float
    high_s: float
    row: dict[str, Any]
    shares: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Move:
    """The part of an object in one memory, where it is another in A than in B."""

    object: str
    memory: str
    a: float
    b: float


def choice(document: Mapping[str, Any]) -> Choice | None:
    """What an answer chose; none where the document is no answer of `plan`."""
    if "chosen" not in document or "frontier" not in document:
        return None
    row = next(policy for policy in document["policies"] if policy["policy"] == document["chosen"])
    told = row["prediction"]
    memories = [tier["memory"] for tier in told["tiers"]]
    objects = [use["object"] for use in told["objects"]]
    shares = {
        name: dict(zip(memories, each, strict=True)) for name, each in zip(objects, row["fractions"], strict=True)
    }
    return Choice(row["policy"], told["time_s"], told["low_s"], told["high_s"], row, shares)


def moves(a: Choice, b: Choice) -> list[Move]:
    """Of the objects that both have, the shares that differ."""
    return [
        Move(name, memory, one.get(memory, 0.0), other.get(memory, 0.0))
        for name, one in a.shares.items()
        if (other := b.shares.get(name)) is not None
        for memory in dict.fromkeys([*one, *other])
        if abs(one.get(memory, 0.0) - other.get(memory, 0.0)) > SAME
    ]


def sentences(a: Choice, b: Choice) -> list[str]:
    """The answer to what changed, before any table."""
    policy = f"Both choose {a.policy}" if a.policy == b.policy else f"A chooses {a.policy} and B {b.policy}"
    change = b.time_s / a.time_s - 1.0 if a.time_s > 0 else 0.0
    unsure = a.low_s <= b.high_s and b.low_s <= a.high_s
    against = f"{percent_text(abs(change))} {'less' if change < 0 else 'more'}" if abs(change) > SAME else "the same"
    told = ", which is within what predictions may be off" if unsure and abs(change) > SAME else ""
    times = f"{seconds_text(a.time_s)} are predicted for A and {seconds_text(b.time_s)} for B, {against}{told}"
    return [f"{policy}: {times}.", _moved(a, b)]


def _moved(a: Choice, b: Choice) -> str:
    names = list(dict.fromkeys(move.object for move in moves(a, b)))
    if not names:
        return "No object has another place."
    listed = [f"{name} ({_place(a.shares[name])} → {_place(b.shares[name])})" for name in names[:NAMED]]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"B places otherwise: {', '.join(listed)}{more}."


def _place(shares: Mapping[str, float]) -> str:
    """`cxl`, or `ldram 75 % + cxl 25 %`."""
    some = {memory: share for memory, share in shares.items() if share > SAME}
    whole = len(some) == 1
    return " + ".join(memory if whole else f"{memory} {percent_text(share)}" for memory, share in some.items())
