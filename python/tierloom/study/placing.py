"""``predict`` and ``plan`` as rows: one placement that the study sets, or the best of all policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError
from tierloom.nouns import Machine, Profile
from tierloom.planning import compare, predict
from tierloom.study.rows import by_name, names_of, picked
from tierloom.study.scaling import scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tierloom.quantities import Amount
    from tierloom.study.rows import Row

NOUNS: dict[str, Callable[[str], object]] = {"profile": Profile.load, "machine": Machine.load}

EVERY = "*"
"""Stands for every object that has no line of its own."""


def predict_row(
    profile: Profile,
    machine: Machine,
    place: Mapping[str, float],
    scale: Mapping[str, float],
    threads: int | None = None,
    socket: str | None = None,
    rest: str | None = None,
) -> Row:
    """Time of one placement: ``place.OBJECT.MEMORY`` is a share of an object's pages, ``rest`` takes the others."""
    on = scaled(machine, scale)
    answer = predict(profile, on, fractions(profile, on, place, rest, socket), threads=threads, socket=socket)
    return {
        **picked(answer, "time_s", "low_s", "high_s", "compute_s", "stall_s"),
        "bound": _bound(answer["bound"]),
        **by_name(answer["tiers"], "memory", "placed_bytes", "gb_s", "utilisation", "loaded_ns"),
    }


def fractions(
    profile: Profile, machine: Machine, place: Mapping[str, float], rest: str | None = None, socket: str | None = None
) -> list[list[float]]:
    """By object, the share of its pages in each memory.

    Raises:
        RequestError: An object or a memory is not there, or shares of an object are above 1.

    Example:
        >>> rows = fractions(Profile.load("mg-e"), Machine.load("liu-a"), {"*.cxl": 0.25}, rest="ldram")
        >>> rows[0]
        [0.0, 0.75, 0.25]
    """
    memories = tuple(memory["name"] for memory in machine.data["memories"])
    objects = tuple(item["name"] for item in profile.data["objects"])
    home = memories.index(_known("rest", rest or _nearest(machine, socket), memories))
    asked = _asked(place, objects, memories)
    return [_shares(name, {**asked.get(EVERY, {}), **asked.get(name, {})}, len(memories), home) for name in objects]


def _asked(
    place: Mapping[str, float], objects: tuple[str, ...], memories: tuple[str, ...]
) -> dict[str, dict[int, float]]:
    asked: dict[str, dict[int, float]] = {}
    for key, share in place.items():
        name, _, memory = key.rpartition(".")
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


def _nearest(machine: Machine, socket: str | None) -> str:
    home = socket or machine.data["sockets"][0]["name"]
    paths = [path for path in machine.data["paths"] if path["from"] == home]
    return min(paths, key=lambda path: path["idle_ns"]["value"])["to"] if paths else ""


def _known(where: str, name: str, known: tuple[str, ...]) -> str:
    if name not in known:
        message = f"{where}: there is no `{name}`\nhint: use one of: {', '.join(known)}"
        raise RequestError(message)
    return name


def plan_row(
    profile: Profile,
    machine: Machine,
    scale: Mapping[str, float],
    threads: int | None = None,
    socket: str | None = None,
    nodes: str | list[str] | None = None,
    fast_memory: Amount | None = None,
    max_slowdown: str | float | None = None,
    policies: str | list[str] | None = None,
) -> Row:
    """The best placement, and the time under each policy."""
    answer = compare(
        profile,
        scaled(machine, scale),
        threads=threads,
        socket=socket,
        nodes=names_of(nodes),
        fast_memory=fast_memory,
        max_slowdown=max_slowdown,
        policies=names_of(policies),
    )
    chosen = answer.chosen["outcome"]["Ok"]
    usable = [policy for policy in answer.data["policies"] if "Ok" in policy["outcome"]]
    return {
        "chosen": answer.data["chosen"],
        **picked(chosen, "time_s", "low_s", "high_s"),
        "fast_bytes": answer.chosen["fast_bytes"],
        "budget_bytes": answer.data["budget_bytes"],
        **by_name(chosen["tiers"], "memory", "placed_bytes", "gb_s", "loaded_ns"),
        **{f"{policy['policy']}.time_s": policy["outcome"]["Ok"]["time_s"] for policy in usable},
    }


def _bound(bound: Any) -> str:  # noqa: ANN401 (a word, or a word with its object)
    return bound if isinstance(bound, str) else " ".join(str(word) for pair in bound.items() for word in pair)
