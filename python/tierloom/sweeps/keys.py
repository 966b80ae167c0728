"""Content addresses: a result is known by what it was computed from, not by where it stood in a study.

A key is the SHA-256 (the first 128 bits) of the verb, the parameters, the contents of every file or entry
of the catalog that they name, and the code that computes: the version and the package's own files. So a
study can be changed, stopped and run again, and only what is new is computed; a new version of
Tierloom computes everything anew.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom import __version__, user_policies
from tierloom.errors import StudyError
from tierloom.readers import Flaws
from tierloom.sweeps.axes import Choice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.sweeps.points import Point
    from tierloom.sweeps.studies import Study

FACES = ("commands", "report")
"""Rooms that only show results: what changes there changes no key."""


@cache
def code_id() -> str:
    """The version, and a digest of the code that computes."""
    root = Path(str(resources.files("tierloom")))
    digest = hashlib.sha256()
    for path in sorted([*root.rglob("*.py"), *root.glob("_core*.so")]):
        if path.relative_to(root).parts[0] not in FACES:
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


class Nouns:
    """The files and catalog entries that a study names, read once; the digest of each goes into keys."""

    def __init__(self, study: Study) -> None:
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


class Addresses:
    """Keys of a study's points; which parameters vary in the study is no part of them.

    Raises:
        RequestError: Files or names of the study are not there.
    """

    def __init__(self, study: Study, nouns: Nouns) -> None:
        self._nouns = nouns
        flaws = Flaws()
        fixed = {**study.verb.always, **study.parameters}
        told = {name: flaws.of(self._told, name, value) for name, value in fixed.items()}
        listed = [
            (name, axis.values) for name, axis in study.axes.items() if isinstance(axis, Choice) and name in nouns
        ]
        for at in ((name, value) for name, values in listed for value in values):
            flaws.of(nouns.__getitem__, at)
        flaws.refuse()
        self._fixed = {name: text or "" for name, text in told.items()}
        self._names = sorted({*self._fixed, *study.axes})
        self._start = hashlib.sha256(f"{study.verb.name}\0{code_id()}".encode())
        self._seen: dict[tuple[str, type, Any], str] = {}

    def __call__(self, point: Point) -> bytes:
        """The key of one point."""
        told = self._fixed | {name: self._varied(name, value) for name, value in point.items()}
        digest = self._start.copy()
        digest.update("".join(told[name] for name in self._names).encode())
        return digest.digest()[:16]

    def _varied(self, name: str, value: Any) -> str:  # noqa: ANN401 (what TOML holds)
        at = (name, type(value), value)
        if at not in self._seen:
            self._seen[at] = self._told(name, value)
        return self._seen[at]

    def _told(self, name: str, value: Any) -> str:  # noqa: ANN401
        content = self._nouns[name, value][1] if name in self._nouns else value
        return f"\0{name}={json.dumps(content, sort_keys=True, default=str)}"


def resolved(nouns: Nouns, names: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with the objects that they name."""
    return {name: nouns[name, value][0] if name in nouns else value for name, value in names.items()}
