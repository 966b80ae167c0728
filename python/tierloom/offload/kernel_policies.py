"""What the kernel's own policies do with host memory: the placements that need no planner.

Each answers with the share of host weights and of host KV cache that every tier gets. A process
allocates its weights first and its KV cache then, as serving runtimes do at start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Rooms = dict[str, float]
"""Bytes by tier, nearest first."""


@dataclass(frozen=True)
class Shares:
    """Share of the host's weights and of its KV cache (with hidden states) in each tier."""

    weights: Mapping[str, float]
    kv: Mapping[str, float]


def shares(policy: str, rooms: Rooms, weight_bytes: float, kv_bytes: float) -> Shares:
    """How a policy spreads the host's bytes.

    Args:
        policy: ``interleave``, ``first-touch``, or ``prefer:NAME``.
        rooms: Bytes that each memory may take, nearest first.
        weight_bytes: Weights on the host.
        kv_bytes: KV cache and hidden states on the host.

    Raises:
        RequestError: There is no such policy.
    """
    fill = filler(policy, list(rooms))
    first = fill(weight_bytes, rooms)
    left = {name: room - first[name] for name, room in rooms.items()}
    return Shares(_over(first), _over(fill(kv_bytes, left)))


def filler(policy: str, names: Sequence[str]) -> Callable[[float, Rooms], Rooms]:
    """What a policy does with an amount of bytes and the room that each tier has.

    Raises:
        RequestError: There is no such policy.
    """
    if policy == "interleave":
        return interleaved
    if policy == "first-touch":
        return lambda amount, rooms: in_order(amount, rooms, names)
    preferred = policy.removeprefix("prefer:")
    if preferred != policy and preferred in names:
        return lambda amount, rooms: in_order(amount, rooms, [preferred, *(n for n in names if n != preferred)])
    known = ", ".join(["interleave", "first-touch", *(f"prefer:{name}" for name in names)])
    message = f"there is no policy `{policy}`\nhint: there are {known}"
    raise RequestError(message)


def interleaved(amount: float, rooms: Rooms) -> Rooms:
    """Page by page over all tiers; one that is full is passed over, so the others share the rest.

    What does not fit anywhere stays with the roomiest.

    Example:
        >>> interleaved(9.0, {"near": 8.0, "far": 2.0})
        {'near': 7.0, 'far': 2.0}
    """
    placed = dict.fromkeys(rooms, 0.0)
    open_, left = sorted(rooms, key=lambda name: rooms[name]), amount
    for index, name in enumerate(open_):
        placed[name] = min(left / (len(open_) - index), max(rooms[name], 0.0))
        left -= placed[name]
    placed[open_[-1]] += left
    return placed


def in_order(amount: float, rooms: Rooms, order: Sequence[str]) -> Rooms:
    """Fills one tier after the other; what does not fit anywhere stays with the last."""
    placed = dict.fromkeys(rooms, 0.0)
    left = amount
    for name in order:
        placed[name] = min(left, max(rooms[name], 0.0))
        left -= placed[name]
    placed[order[-1]] += left
    return placed


def _over(placed: Rooms) -> Rooms:
    whole = sum(placed.values())
    if whole <= 0.0:
        return {name: 1.0 if index == 0 else 0.0 for index, name in enumerate(placed)}
    return {name: amount / whole for name, amount in placed.items()}
