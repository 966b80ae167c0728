"""The published cases by name: the door of this room to the catalog.

A case keeps what went into the published experiment apart from what came out of it. Predictions get the
`inputs` alone; `claims` are only ever compared with.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom import arguments, catalog
from tierloom.capacity.run_files import parse, read
from tierloom.errors import RequestError

if TYPE_CHECKING:
    from tierloom.capacity.runs import Run

FOLDER = "capacity"


@dataclass(frozen=True)
class Case:
    """One published experiment.

    Attributes:
        name: As on the command line.
        title: What was run.
        machine: Name of the machine in the catalog; empty where none matters.
        sources: Who says so, by short name.
        inputs: What went in, each figure with kind and source.
        claims: What came out.
        impossible: A point of it that no model of this kind can have, and why.
    """

    name: str
    title: str
    machine: str
    sources: dict[str, str]
    inputs: dict[str, Any]
    claims: dict[str, Any]
    impossible: dict[str, Any] = field(default_factory=dict)

    def value(self, name: str) -> Any:  # noqa: ANN401 (a figure is a number, a name, or a list of them)
        """The value of one input."""
        return self.inputs[name]["value"]


def names() -> list[str]:
    """Names of the published cases, sorted."""
    return catalog.catalog_names(FOLDER)


def run_names() -> list[str]:
    """Names of the measured runs in the catalog, sorted."""
    return catalog.catalog_names(FOLDER, ".csv")


def load_runs(name_or_path: str) -> list[Run]:
    """Runs by their name in the catalog or the path of a CSV file.

    Raises:
        RequestError: There are no such runs, or the file does not hold some.
    """
    name_or_path = arguments.path("runs", name_or_path)
    if name_or_path in run_names():
        text = catalog.catalog_text(FOLDER, f"{name_or_path}.csv")
        return parse(text.content, text.file)
    path = Path(name_or_path)
    if path.suffix == ".csv" or path.exists():
        return read(path)
    known = ", ".join(run_names())
    message = f"there are no runs `{name_or_path}`\nhint: the catalog has {known}; a CSV file is given by its path"
    raise RequestError(message)


def load(name: str) -> Case:
    """A published case by name.

    Raises:
        RequestError: There is none of that name.

    Example:
        >>> load("cost-model").value("dram")
        10.0
    """
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=3, cutoff=0.4)
        message = f"there is no case `{name}`\nhint: there are {', '.join(near or names())}"
        raise RequestError(message)
    data = catalog.catalog_table(FOLDER, name)
    return Case(
        name=name,
        title=data["title"],
        machine=data.get("machine", ""),
        sources=data["sources"],
        inputs=data["inputs"],
        claims=data["claims"],
        impossible=data.get("impossible", {}),
    )
