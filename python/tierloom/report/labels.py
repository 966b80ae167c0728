"""Long names as short labels: cut in the middle, where names differ least, and never two alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CUT = "…"

LEAST = 8
"""Letters below which a label cannot show what tells two names apart beside both ends; they are numbered then."""


def shortened(names: Iterable[str], letters: int) -> dict[str, str]:
    """Each name's label of at most so many letters; what fits stays as it is.

    A cut name keeps its beginning and its end. Names that would look alike then keep what tells them apart, too.

    Example:
        >>> made = shortened(["u", "make_a_long_name_1@solver.cpp", "make_a_long_name_2@solver.cpp"], 16)
        >>> list(made.values())
        ['u', 'make_a_…1…er.cpp', 'make_a_…2…er.cpp']
    """
    whole = list(dict.fromkeys(names))
    made = {name: cut(name, letters) for name in whole}
    for alike in _groups(made):
        made.update(_told_apart(alike, letters))
    return _numbered(made, letters)


def cut(name: str, letters: int) -> str:
    """A name without its middle, where it is longer."""
    if len(name) <= letters:
        return name
    kept = letters - len(CUT)
    return f"{name[: kept - kept // 2]}{CUT}{name[len(name) - kept // 2 :]}"


def _groups(made: dict[str, str]) -> list[list[str]]:
    """Names whose labels are the same."""
    by_label: dict[str, list[str]] = {}
    for name, label in made.items():
        by_label.setdefault(label, []).append(name)
    return [group for group in by_label.values() if len(group) > 1]


def _told_apart(alike: Sequence[str], letters: int) -> dict[str, str]:
    """Labels of names that have the same ends: what differs, with as much of both ends as there is room for."""
    if letters < LEAST:
        return {}
    before = _shared(alike)
    after = _shared([name[before:][::-1] for name in alike])
    parts = {name: name[before : len(name) - after] for name in alike}
    room = letters - 2 * len(CUT)
    short = shortened(parts.values(), room - room // 2)
    made = {}
    for name, part in parts.items():
        ends = room - len(short[part])
        head, tail = min(before, ends - ends // 2), min(after, ends // 2)
        left, right = CUT if head < before else "", CUT if tail < after else ""
        middle = f"{left}{short[part]}{right}" if part else left or right
        made[name] = f"{name[:head]}{middle}{name[len(name) - tail :]}"
    return made


def _shared(names: Sequence[str]) -> int:
    """Letters at the beginning that all have."""
    return next((at for at, each in enumerate(zip(*names, strict=False)) if len(set(each)) > 1), min(map(len, names)))


def _numbered(made: dict[str, str], letters: int) -> dict[str, str]:
    """The same with numbers where two are still alike, or one looks like another's whole name."""
    taken = {name for name, label in made.items() if name == label}
    for name, label in made.items():
        number, unique = 1, label
        while name != label and unique in taken:
            number += 1
            unique = f"{label[: letters - len(str(number)) - 1]}#{number}"
        made[name] = unique
        taken.add(unique)
    return made
