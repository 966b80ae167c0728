"""From what a person names to what it is: files, folders and names of the catalog become sources.

A source says what it is, or is recognised by its keys, not by its file name, so that whatever a verb printed under
``--json`` can be given as it is. Documents that hold several answers (the runs of a simulation stay
together) are taken apart into one source each.
"""

from __future__ import annotations

import json
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom import catalog
from tierloom.errors import MissingPackageError, RequestError, TierloomError
from tierloom.nouns import Machine, Plan, Profile
from tierloom.profile_folder import RECORDING_FILE
from tierloom.readers import reading
from tierloom.report.pages import earlier_answers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tierloom.policy_search import Comparison

Data = dict[str, Any]

STDIN = "-"

SWEPT = "results.parquet"
"""What a sweep leaves in its folder."""

ENDINGS = (".toml", ".json", ".parquet")
PROFILED = (catalog.PROFILE_FILE, RECORDING_FILE)
FOLDERS = (*PROFILED, SWEPT)
"""What is shown of a folder: files by their ending, folders by what is in them."""

PARTS = ("machine", "profile", "comparison")
"""Keys under which documents hold other documents: `demo --json`, `machine import --json`."""

HOLDERS = ("anything", "demo", "machine-import")
"""Documents that do."""


@dataclass(frozen=True)
class Source:
    """One noun or answer, and where it was read."""

    kind: str
    name: str
    data: Data
    noun: Machine | Profile | Plan | None = None


@dataclass
class Shelf:
    """Machines and profiles that the other sources may name: those of the page, then the catalog's."""

    machines: dict[str, Machine] = field(default_factory=dict)
    profiles: dict[str, Profile] = field(default_factory=dict)

    @classmethod
    def of(cls, sources: Sequence[Source]) -> Shelf:
        """What a page's sources bring."""
        shelf = cls()
        for source in sources:
            if isinstance(source.noun, Machine):
                shelf.machines.setdefault(source.noun.name, source.noun)
            if isinstance(source.noun, Profile):
                shelf.profiles.setdefault(source.noun.name, source.noun)
        return shelf

    def machine(self, name: str) -> Machine | None:
        """A machine by its name, where there is one."""
        if name not in self.machines and name in Machine.names():
            self.machines[name] = Machine.load(name)
        return self.machines.get(name)

    def profile(self, name: str) -> Profile | None:
        """A profile by its name, where there is one."""
        if name not in self.profiles and name in Profile.names():
            self.profiles[name] = Profile.load(name)
        return self.profiles.get(name)


def read(names: Sequence[str]) -> list[Source]:
    """Everything that the names stand for, in the order given, each thing once.

    Raises:
        RequestError: A name stands for nothing that can be shown.
    """
    found: list[Source] = []
    for name in names:
        for source in _read_one(name):
            if all(source.kind != other.kind or source.data != other.data for other in found):
                found.append(source)
    return found


def _read_one(name: str) -> Iterator[Source]:
    path = Path(name)
    if name == STDIN:
        yield from from_data(_json(sys.stdin.read(), "stdin"), "stdin")
    elif name in Machine.names():
        yield of_machine(Machine.load(name))
    elif name in Profile.names() or any((path / file).exists() for file in PROFILED):
        yield of_profile(Profile.load(name))
    elif (path / SWEPT).exists():
        yield swept(path / SWEPT, path.name.removesuffix(".sweep"))
    elif path.is_dir():
        yield from _folder(path)
    elif path.suffix == ".parquet" and path.exists():
        yield swept(path, path.stem)
    elif path.exists():
        yield from _file(path)
    else:
        raise RequestError(_nothing(name))


def _nothing(name: str) -> str:
    try:
        catalog.machine_text(name)
    except TierloomError as problem:
        near = str(problem).partition("did you mean ")[2]
        hint = f"did you mean {near}" if near else "give a file that a verb wrote or printed under --json, or a name"
        return f"{name}: there is no such file, and nothing in the catalog is called so\nhint: {hint}"
    return f"{name}: cannot be shown\nhint: give a file that a verb wrote or printed under --json"


def _folder(path: Path) -> Iterator[Source]:
    """Everything in a folder that can be shown, machines and profiles first."""
    held = sorted(path.iterdir())
    known = [each for each in held if each.suffix in ENDINGS or any((each / name).exists() for name in FOLDERS)]
    if not known:
        message = f"{path}: nothing here can be shown\nhint: name a folder with profiles, plans or results in it"
        raise RequestError(message)
    sources = [source for each in known for source in _read_one(str(each))]
    places = {kind: place for place, kind in enumerate(earlier_answers.SIGNS)}
    yield from sorted(sources, key=lambda source: places.get(source.kind, len(places)))


def _file(path: Path) -> Iterator[Source]:
    with reading(path, "text file", "give a file that a verb wrote or printed under --json"):
        text = path.read_text(encoding="utf-8")
    if path.suffix not in ENDINGS and not text.lstrip().startswith(("{", "[")):
        message = (
            f"{path}: this is no machine, profile or plan, and nothing that a verb printed under --json\n"
            "hint: give a file that a verb wrote, a profile's folder, or a name of the catalog"
        )
        raise RequestError(message)
    yield from from_data(_toml(text, path) if path.suffix == ".toml" else _json(text, str(path)), path.stem, str(path))


def swept(path: Path, name: str) -> Source:
    """A sweep's points, and the study that its file carries.

    Raises:
        MissingPackageError: The package that reads the file is not installed.
        RequestError: The file is no Parquet file.
    """
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as problem:
        message = f"{path}: a sweep's results need the package pyarrow\nhint: pip install '.[sweep]'"
        raise MissingPackageError(message) from problem
    try:
        table = parquet.read_table(path)
    except (ArrowException, OSError) as problem:
        message = f"{path}: {problem}\nhint: give the results.parquet that `tierloom sweep` wrote"
        raise RequestError(message) from problem
    with reading(path, "results of a sweep", "give the results.parquet that `tierloom sweep` wrote"):
        told = (table.schema.metadata or {}).get(b"study", b"").decode()
        return Source("study", name, {"study": _toml(told, path), "rows": table.to_pylist()})


def _json(text: str, file: str) -> Any:  # noqa: ANN401 (that is what JSON is)
    with reading(file, "JSON document", "give what a verb printed under --json"):
        return json.loads(text)


def _toml(text: str, path: Path) -> Data:
    with reading(path, "TOML document", "mend the text at the place named above"):
        return tomllib.loads(text)


def from_data(data: object, name: str, file: str | None = None, shown: str | None = None) -> Iterator[Source]:
    """The sources in a document; `file` is the path that a noun is read from again, to be checked.

    Errors call the document `shown`, else by its file, else by its name.

    Raises:
        RequestError: It is neither an object nor a list of objects, or an empty one.
    """
    if isinstance(data, list):
        for each in data:
            yield from from_data(each, name, shown=shown or file)
        return
    if not isinstance(data, dict):
        message = f"{shown or file or name}: holds no object\nhint: give what a verb printed under --json"
        raise RequestError(message)
    if not data:
        message = (
            f"{shown or file or name}: nothing is in it\nhint: give a file that a verb wrote or printed under --json"
        )
        raise RequestError(message)
    kind, data = _identified(data)
    held = [key for key in PARTS if isinstance(data.get(key), dict)]
    if kind in HOLDERS and held:
        for key in held:
            yield from from_data(data[key], name, shown=shown or file)
        return
    yield _source(kind, data, name, file)


def _identified(data: Data) -> tuple[str, Data]:
    """What a document is, and the rest of what it says."""
    if isinstance(kind := data.get("kind"), str) and "version" in data:
        return kind, {key: value for key, value in data.items() if key != "kind"}
    kind = earlier_answers.kind_of(data)
    return kind, earlier_answers.updated(kind, data)


def _source(kind: str, data: Data, name: str, file: str | None) -> Source:
    """A noun is checked as its own reader checks it; answers are taken as they are."""
    shown = file or name
    if kind == "machine":
        return of_machine(Machine.load(file) if file and file.endswith(".toml") else Machine.from_data(data, shown))
    if kind == "profile":
        return of_profile(Profile.from_data(data, shown, Path(file).parent if file else None))
    if kind == "plan" and file:
        plan = Plan.load(file)
        return Source("plan", name.removesuffix(".plan"), {**plan.data}, plan)
    return Source(kind, name, data)


def of_comparison(answer: Comparison) -> list[Source]:
    """What `tierloom plan` answered, with the machine and the profile that it is about."""
    name = f"{answer.profile.name} on {answer.machine.name}"
    return [Source("comparison", name, {**answer.data}), of_profile(answer.profile), of_machine(answer.machine)]


def of_machine(machine: Machine) -> Source:
    """A machine as a source."""
    return Source("machine", machine.name, {**machine.data}, machine)


def of_profile(profile: Profile) -> Source:
    """A profile as a source."""
    return Source("profile", profile.name, {**profile.data}, profile)
