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

from tierloom import __version__
from tierloom.readers import Flaws
from tierloom.sweeps.nouns import named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.sweeps.nouns import Nouns
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


class Addresses:
    """Keys of a study's points; which parameters vary in the study is no part of them.

    Raises:
        RequestError: Files or names of the study are not there.
    """

    def __init__(self, study: Study, nouns: Nouns) -> None:
        self._nouns = nouns
        flaws = Flaws()
        fixed = {**study.verb.always, **study.parameters}
        named(flaws, nouns, fixed, study.axes)
        flaws.refuse()
        told = {name: self._told(name, value) for name, value in fixed.items()}
        self._fixed = told
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
