"""What a study names: files and entries of the catalog, read once, and names of parts within them.

Names are checked as far as that takes no computing: the memories in ``scale.cxl.idle`` and ``place.u.cxl`` are those of
the study's machines, the objects those of its profiles.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Protocol

from tierloom import user_policies
from tierloom.errors import StudyError
from tierloom.nouns import Machine, Profile
from tierloom.placements import EVERY
from tierloom.readers import meant
from tierloom.sweeps.axes import Choice
from tierloom.what_if import SCALED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tierloom.readers import Flaws
    from tierloom.sweeps.axes import Axis
    from tierloom.sweeps.verbs import Verb


class Asked(Protocol):
    """What is asked of a study here: its verb, and the folder that its paths are relative to."""

    @property
    def verb(self) -> Verb:
        """The verb."""
        ...

    @property
    def base(self) -> Path:
        """The folder."""
        ...


class Nouns:
    """The files and catalog entries that a study names, read once; the digest of each goes into keys."""

    def __init__(self, study: Asked) -> None:
        self._verb = study.verb
        self._base = study.base
        self._found: dict[tuple[str, Any], tuple[object, str]] = {}

    def __getitem__(self, at: tuple[str, Any]) -> tuple[object, str]:
        """The object that a parameter's value names, and the digest of its content.

        Raises:
            RequestError: There is no such file or name.
        """
        parameter, value = at
        key = (parameter, repr(value) if isinstance(value, list) else value)
        if key not in self._found:
            self._found[key] = self._policies(value) if parameter == self._verb.policies else self._read(*at)
        return self._found[key]

    def __contains__(self, parameter: str) -> bool:
        return parameter in self._verb.nouns or parameter == self._verb.policies

    def _policies(self, value: Any) -> tuple[object, str]:  # noqa: ANN401 (what TOML holds)
        found = user_policies.written(value, self._base)
        return found, user_policies.digest(found)

    def _read(self, parameter: str, value: Any) -> tuple[object, str]:  # noqa: ANN401 (what TOML holds)
        if not isinstance(value, str):
            message = f"{parameter}: {value!r} is no name\nhint: write the name of a catalog entry, or a path"
            raise StudyError(message)
        beside = self._base / value
        found = self._verb.nouns[parameter](str(beside) if value and beside.exists() else value)
        return found, hashlib.sha256(_content(found).encode()).hexdigest()


def _content(noun: object) -> str:
    """All that an engine reads of a noun: its document, or the fields of a plain data class."""
    data = getattr(noun, "data", None)
    return repr(noun) if data is None else json.dumps(data, sort_keys=True)


def named(flaws: Flaws, nouns: Nouns, fixed: Mapping[str, Any], axes: Mapping[str, Axis]) -> None:
    """Adds every name that stands for nothing: nouns that are not there, and parts that the nouns do not have."""
    varied = [(name, value) for name, axis in axes.items() if isinstance(axis, Choice) for value in axis.values]
    asked = [(name, value) for name, value in [*fixed.items(), *varied] if name in nouns]
    read = [flaws.of(nouns.__getitem__, at) for at in asked]
    found = [noun for noun, _ in filter(None, read)]
    machines = [noun for noun in found if isinstance(noun, Machine)]
    profiles = [noun for noun in found if isinstance(noun, Profile)]
    if not machines:
        return
    memories = list(dict.fromkeys(memory["name"] for each in machines for memory in each.data["memories"]))
    objects = [EVERY, *dict.fromkeys(item["name"] for each in profiles for item in each.data["objects"])]
    ends: dict[str, tuple[Sequence[str], Sequence[str]]] = {"scale": (memories, SCALED), "place": (objects, memories)}
    for name in dict.fromkeys([*fixed, *axes]):
        family, dot, rest = name.partition(".")
        if dot and family in ends and (family != "place" or profiles):
            for told in _unknown(rest, *ends[family]):
                flaws.add(f"{name}: {told[0]}", told[1])


def _unknown(rest: str, *known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The parts of ``cxl.idle`` that are none of those that are known, each with what may be meant."""
    before, _, last = rest.rpartition(".")
    for part, names in zip((before, last), known, strict=True):
        if part not in names:
            yield f"there is no `{part}`", meant(part, names)
