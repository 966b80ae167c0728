"""Placements as people write them: the share of an object's pages that each memory gets.

``{"u.cxl": 0.5}`` puts half of the object ``u`` into the memory ``cxl``; ``*`` stands for every object that
has no line of its own. What is left goes to one memory, the nearest unless told otherwise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tierloom.arguments import real, text
from tierloom.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.nouns import Machine, Profile

EVERY = "*"
"""Stands for every object that has no line of its own."""


def fractions(
    profile: Profile, machine: Machine, place: Mapping[str, float], rest: str | None = None, socket: str | None = None
) -> list[list[float]]:
    """By object, the share of its pages in each memory.

    Raises:
        RequestError: An object or a memory is not there, or shares of an object are above 1.

    Example:
        >>> from tierloom import Machine, Profile
        >>> rows = fractions(Profile.load("mg-e"), Machine.load("liu-a"), {"*.cxl": 0.25}, rest="ldram")
        >>> rows[0]
        [0.0, 0.75, 0.25]
    """
    memories = tuple(memory["name"] for memory in machine.data["memories"])
    objects = tuple(item["name"] for item in profile.data["objects"])
    home = memories.index(_known("rest", rest or machine.nearest(socket), memories))
    asked = _asked(place, objects, memories)
    return [_shares(name, {**asked.get(EVERY, {}), **asked.get(name, {})}, len(memories), home) for name in objects]


def _asked(
    place: Mapping[str, float], objects: tuple[str, ...], memories: tuple[str, ...]
) -> dict[str, dict[int, float]]:
    asked: dict[str, dict[int, float]] = {}
    for key, given in place.items():
        share = real(-math.inf)(f"place.{key}", given)
        name, _, memory = text("place", key).rpartition(".")
        _known(f"place.{key}", name, (EVERY, *objects))
        asked.setdefault(name, {})[memories.index(_known(f"place.{key}", memory, memories))] = share
    return asked


def _shares(name: str, asked: Mapping[int, float], width: int, home: int) -> list[float]:
    elsewhere = sum(share for memory, share in asked.items() if memory != home)
    if min(asked.values(), default=0.0) < 0.0 or elsewhere > 1.0 + 1e-9:
        message = f"place.{name}: shares of {elsewhere:g} in all\nhint: shares are 0 or more, and 1 at most together"
        raise RequestError(message)
    shares = [asked.get(memory, 0.0) for memory in range(width)]
    shares[home] = max(1.0 - elsewhere, 0.0)
    return shares


def _known(where: str, name: str, known: tuple[str, ...]) -> str:
    if name not in known:
        message = f"{where}: there is no `{name}`\nhint: use one of: {', '.join(known)}"
        raise RequestError(message)
    return name
