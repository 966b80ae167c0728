"""A study: which verb, which parameters, which points. Read from a TOML file, checked before anything runs.

.. code-block:: toml

    kind = "study"
    version = 1
    verb = "predict"
    [parameters]            # the same in every point
    profile = "mg-e"
    machine = "liu-a"
    [axes]                  # what varies: lists, or spans
    threads = [8, 16, 32]
    "place.u.cxl" = { from = 0.0, to = 1.0, steps = 11 }
    [sample]                # all combinations, unless said otherwise
    method = "latin-hypercube"
    points = 1000
    seed = 1
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tierloom import arguments, catalog
from tierloom.errors import RequestError, StudyError
from tierloom.readers import Flaws, reading
from tierloom.sweeps import nouns
from tierloom.sweeps.axes import Axis, Span, axis
from tierloom.sweeps.verbs import VERBS, Verb

if TYPE_CHECKING:
    from collections.abc import Mapping

METHODS = ("grid", "latin-hypercube", "search")
DIRECTIONS = ("minimize", "maximize")
TABLES = ("parameters", "axes", "sample", "cluster")
KEYS = {"kind", "version", "title", "verb", *TABLES}
SAMPLE_KEYS = {
    "grid": {"method"},
    "latin-hypercube": {"method", "points", "seed"},
    "search": {"method", "points", "seed", "objective", "generation"},
}
GENERATION = 16
"""Points that a search asks for at once (assumed: enough to keep a desktop busy; TPE's own start-up takes 10)."""


@dataclass(frozen=True)
class Sample:
    """How points are chosen."""

    method: str = "grid"
    points: int = 0
    seed: int = 0
    generation: int = GENERATION
    objective: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A study that can be run; `base` is the folder that its paths are relative to."""

    name: str
    verb: Verb
    parameters: Mapping[str, Any]
    axes: Mapping[str, Axis]
    sample: Sample = Sample()
    cluster: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    base: Path = Path()
    text: str = ""

    @classmethod
    def load(cls, name_or_path: str | Path) -> Study:
        """Reads a study by its name in the catalog or the path of its TOML file.

        Raises:
            StudyError: There is no such study, or the file does not hold one.

        Example:
            >>> Study.load("cxl-share").verb.name
            'predict'
        """
        text = catalog.study_text(arguments.path("study", name_or_path, StudyError))
        path = Path(name_or_path)
        return cls.parse(text.content, text.file, path.stem, path.parent if path.exists() else Path())

    @classmethod
    def parse(cls, text: str, file: str = "study", name: str = "study", base: Path = Path()) -> Study:
        """Reads the text of a study file; `file` is only named in errors.

        Raises:
            StudyError: The text does not hold a study.
        """
        try:
            with reading(file, "study", "mend the text at the place named above", StudyError):
                return _study(tomllib.loads(text), name, base, text)
        except StudyError:
            raise
        except RequestError as problem:
            message = f"{file}: {problem}"
            raise StudyError(message) from problem

    @staticmethod
    def names() -> list[str]:
        """Names of the studies in the catalog, sorted."""
        return catalog.study_names()


def _study(raw: dict[str, Any], name: str, base: Path, text: str) -> Study:
    if (kind := raw.get("kind", "study")) != "study":
        message = f"kind: this is a {kind}, not a study\nhint: give the file of a study"
        raise RequestError(message)
    if raw.get("version") != 1:
        message = f"version: {raw.get('version')!r} is none that this tierloom reads\nhint: write version = 1"
        raise RequestError(message)
    flaws = Flaws()
    _known(flaws, "", raw, KEYS)
    verb = flaws.of(_verb, raw.get("verb", ""))
    parameters, axes, sample, cluster = (_table(flaws, raw, key) for key in TABLES)
    for name in sorted(set(parameters) & set(axes)):
        flaws.add(f"axes.{name}: it is among the parameters, too", "leave one of them out")
    for flaw in verb.flaws({**parameters, **axes}) if verb else ():
        flaws.add(*flaw)
    found = {key: flaws.of(axis, value, f"axes.{key}") for key, value in axes.items()}
    read = {key: each for key, each in found.items() if each is not None}
    if not axes:
        flaws.add("axes: nothing varies", "write for example [axes] and below it threads = [8, 16, 32]")
    chosen = _sample(flaws, sample, read)
    if flaws.told and verb:
        nouns.named(flaws, nouns.Nouns(Study(name, verb, parameters, read, base=base)), parameters, read)
    flaws.refuse()
    return Study(name, cast("Verb", verb), parameters, read, chosen, cluster, str(raw.get("title", "")), base, text)


def _verb(name: Any) -> Verb:  # noqa: ANN401 (what TOML holds)
    verb = VERBS.get(name) if isinstance(name, str) else None
    if verb is None:
        message = f"verb: {name!r} cannot be swept\nhint: use one of: {', '.join(VERBS)}"
        raise RequestError(message)
    return verb


def _sample(flaws: Flaws, raw: dict[str, Any], axes: Mapping[str, Axis]) -> Sample:
    method = raw.get("method", "grid")
    if method not in METHODS:
        flaws.add(f"sample.method: {method!r} is none", f"use one of: {', '.join(METHODS)}")
        return Sample()
    _known(flaws, "sample.", raw, SAMPLE_KEYS[method])
    if method == "grid":
        for name, each in axes.items():
            if isinstance(each, Span) and each.steps is None:
                hint = "{ from = …, to = …, steps = 5 }, or another method"
                flaws.add(f"axes.{name}: a grid needs steps", hint)
        return Sample()
    numbers = {
        key: flaws.of(_whole, raw, key, least, default) or 0
        for key, least, default in _NUMBERS
        if key in SAMPLE_KEYS[method]
    }
    sought = flaws.of(_objective, raw) if method == "search" else None
    return Sample(method, objective=sought or {}, **numbers)


_NUMBERS = (("points", 1, None), ("seed", 0, 0), ("generation", 1, GENERATION))


def _objective(raw: dict[str, Any]) -> dict[str, str]:
    found = raw.get("objective")
    if not isinstance(found, dict) or not found or not all(each in DIRECTIONS for each in found.values()):
        message = 'sample.objective: it says what is sought\nhint: write objective = { time_s = "minimize" }'
        raise RequestError(message)
    return found


def _whole(raw: dict[str, Any], key: str, least: int, default: int | None) -> int:
    value = raw.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        message = f"sample.{key}: {value!r} is no number\nhint: write a whole number of {least} or more"
        raise RequestError(message)
    return value


def _table(flaws: Flaws, raw: dict[str, Any], key: str) -> dict[str, Any]:
    found = raw.get(key, {})
    if isinstance(found, dict):
        return found
    flaws.add(f"{key}: it has to be a table", f"write [{key}] and its keys below")
    return {}


def _known(flaws: Flaws, where: str, raw: Mapping[str, Any], known: set[str]) -> None:
    for key in sorted(set(raw) - known):
        flaws.add(f"{where}{key}: there is no such key", f"use some of: {', '.join(sorted(known))}")
