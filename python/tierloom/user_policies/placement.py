"""Placement policies of users' own: what they are asked, and their answers as actions of the kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierloom.arguments import refused
from tierloom.errors import PlacementError
from tierloom.readers import Flaws
from tierloom.user_policies.lookup import FIX, UserPolicy

if TYPE_CHECKING:
    from tierloom.nouns import Machine, Profile
    from tierloom.schema import ObjectDoc

PLACES = "local, preferred:A, preferred:A+B, bind:A+B, interleave:A+B or weighted:A=3+B=1"
NO_ANSWER = f"{FIX}; raise tierloom.errors.PlacementError where it has no answer"
MOST_WEIGHT = 255
"""The kernel keeps a weight in a byte."""


@dataclass(frozen=True)
class PlacementQuestion:
    """What a placement policy is asked: the program, the machine, and which memory may be used."""

    profile: Profile
    machine: Machine
    nodes: Mapping[str, int]
    """Bytes that may be used by memory, nearest first; of the fast one no more than was allowed."""
    fast: str
    """The memory that is scarce and expensive."""

    @property
    def objects(self) -> Sequence[ObjectDoc]:
        """The program's data objects, as the profile has them."""
        return list(self.profile.data["objects"])


def placing(found: UserPolicy, profile: Profile, machine: Machine) -> tuple[str, str, Callable[..., Any]]:
    """A placement policy as the core calls it: its name, what it does, and a function that answers with actions."""
    names = [item["name"] for item in profile.data["objects"]]

    def actions(room: list[tuple[str, int]], fast: str) -> list[Any] | str:
        try:
            told = found(PlacementQuestion(profile, machine, dict(room), fast))
        except PlacementError as reason:
            return str(reason)
        except Exception as error:
            raise found.raised(error, NO_ANSWER) from error
        return _by_object(found.name, told, names)

    return found.name, found.about, actions


def place(words: str) -> str | dict[str, Any]:
    """An object's place as the plan file has it.

    Raises:
        ValueError: The words name none.

    Example:
        >>> place("bind:cxl"), place("weighted:ldram=3+cxl=1"), place("local")
        ({'bind': ['cxl']}, {'weighted': {'ldram': 3, 'cxl': 1}}, 'first_touch')
    """
    kind, _, told = words.partition(":")
    nodes = told.split("+")
    if words == "local":
        return "first_touch"
    if not all(nodes) or len({*nodes}) < len(nodes):
        raise ValueError(words)
    if kind == "preferred":
        return {"prefer": nodes[0]} if len(nodes) == 1 else {"prefer_many": nodes}
    if kind in ("bind", "interleave"):
        return {kind: nodes}
    if kind == "weighted":
        weights = {each[1]: int(each[2]) for node in nodes if (each := re.fullmatch(r"(.+)=(\d{1,3})", node))}
        if len(weights) == len(nodes) and all(0 < weight <= MOST_WEIGHT for weight in weights.values()):
            return {"weighted": weights}
    raise ValueError(words)


def _by_object(name: str, told: object, objects: list[str]) -> list[Any]:
    if not isinstance(told, Mapping):
        hint = "return a place by object, as {'rank': 'bind:ldram'}"
        raise refused(told, f"policy `{name}`", "no mapping", hint)
    flaws = Flaws()
    shown = ", ".join(objects[:8]) + (", …" if len(objects) > 8 else "")
    for unknown in sorted(map(str, told.keys() - set(objects))):
        flaws.add(f"policy `{name}`: {unknown!r} is no object of this profile", f"use names such as: {shown}")
    places = [flaws.of(_place, name, item, told.get(item, "local")) for item in objects]
    flaws.refuse()
    return places


def _place(name: str, item: str, words: object) -> str | dict[str, Any]:
    try:
        return place(words if isinstance(words, str) else "")
    except ValueError:
        raise refused(words, f"policy `{name}`, object `{item}`", "no place", f"write {PLACES}") from None
