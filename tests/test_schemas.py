"""JSON schemas for editors: what the catalog holds keeps to them, and a slip of the pen does not."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support import ROOT

import tierloom
from tierloom import catalog

Document = dict[str, Any]
ROOM = ROOT / "python" / "tierloom" / "catalog"


def files(folder: str) -> list[Document]:
    """All files of a folder of the catalog, as TOML."""
    return [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOM / folder).glob("*.toml"))]


DOCUMENTS: dict[str, Callable[[], list[Document]]] = {
    "machine": lambda: files("machines"),
    "workload": lambda: files("workloads"),
    "study": lambda: [*files("studies"), MIXED],
    "gpu": lambda: files("gpus"),
    "profile": lambda: [json.loads(tierloom.profile(name).text) for name in catalog.profile_names()],
    "plan": lambda: [tomllib.loads(answer().plan().text)],
    "comparison": lambda: [answer().data],
}
"""By schema: documents that keep to it."""

MIXED = tomllib.loads("""
version = 1
verb = "simulate"
[parameters]
machine = "liu-a"
workload = "silo"
[axes]
policy = ["none", "own.py:Policy"]
"knob.hot" = { from = 1, to = 8, log = true }
[sample]
method = "search"
points = 32
objective = { time_s = "minimize" }
""")

SLIPS: list[tuple[str, tuple[str | int, ...], object]] = [
    ("machine", ("sokets",), []),
    ("machine", ("memories", 0, "capacity_byte"), 1),
    ("machine", ("memories", 0, "kind"), "dramm"),
    ("workload", ("phases", 0, "streams", 0, "spread"), "zipff"),
    ("workload", ("regions", 0, "size"), 1),
    ("study", ("verb",), "explode"),
    ("study", ("axes", "thread"), [8]),
    ("study", ("axes", "threads"), 8),
    ("study", ("axes", "threads"), {"from": 1}),
    ("study", ("parameters", "max_speedup"), 2),
    ("study", ("sample",), {"method": "grid", "points": 3}),
    ("study", ("sample",), {"method": "latin-hypercube"}),
    ("gpu", ("memory_gbs",), {"value": 1.0, "kind": "assumed", "source": "me"}),
    ("gpu", ("tflop_s",), {"value": 1.0, "kind": "guessed", "source": "me"}),
    ("gpu", ("tflop_s",), {"value": 1.0, "kind": "assumed"}),
    ("profile", ("objects", 0, "size"), 1),
    ("plan", ("rules", 0, "plaice"), "cxl"),
]
"""By schema: where something is put into its first document that does not belong there."""


def answer() -> tierloom.Comparison:
    return tierloom.plan("mg-e", "liu-a", threads=32, fast_memory="64GiB")


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((ROOT / "docs" / "schema" / f"{name}.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_every_schema_is_held_to_documents() -> None:
    assert {path.stem for path in (ROOT / "docs" / "schema").iterdir()} == set(DOCUMENTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_there_is_keeps_to_its_schema(name: str) -> None:
    checked, documents = validator(name), DOCUMENTS[name]()
    assert documents
    wrong = [f"{'.'.join(map(str, e.path))}: {e.message}" for each in documents for e in checked.iter_errors(each)]
    assert wrong == []


@pytest.mark.parametrize(("name", "where", "what"), SLIPS)
def test_a_slip_is_seen(name: str, where: tuple[str | int, ...], what: object) -> None:
    document = copy.deepcopy(DOCUMENTS[name]()[0])
    at: Any = document
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = what
    assert not validator(name).is_valid(document)
