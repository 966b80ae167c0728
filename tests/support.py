"""Names that tests share; fixtures are in the `conftest.py` files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tierloom.debian.packages import lacking
from tierloom.errors import TierloomError

if TYPE_CHECKING:
    import subprocess

    import click.testing

__all__ = ["LIBRARIES", "ROOT", "Run", "Tierloom", "lacking", "names", "words_of", "works_or_explains"]

ROOT = Path(__file__).parent.parent
"""The repository."""

LIBRARIES = {
    "jemalloc": "libjemalloc-dev",
    "mimalloc": "libmimalloc-dev",
    "tcmalloc_minimal": "libgoogle-perftools-dev",
}
"""Packages of the allocators that the torture programs are linked with."""

Tierloom = Callable[..., "click.testing.Result"]
"""Calls a verb in this process: the fixture `tierloom`."""

Run = Callable[..., "subprocess.CompletedProcess[str]"]
"""Calls a verb as a process of its own: the fixture `run`."""


def words_of(picture: Path) -> list[str]:
    """What is written in an SVG, text by text."""
    return ["".join(each.itertext()) for each in ET.parse(picture).iter("{http://www.w3.org/2000/svg}text")]


def names(folder: Path) -> list[str]:
    """What is in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())


def works_or_explains(call: Callable[[], object]) -> None:
    """The law of every reader: a file is read, or refused with one error that says what to do."""
    problem = None
    try:
        call()
    except TierloomError as error:
        problem = str(error)
    assert problem is None or problem.count("\nhint: ") == 1, problem


REHEARSE = ("--node", "rdram=0", "--node", "ldram=0", "--node", "cxl=0")
"""All memories of a plan for liu-a are node 0, which every machine has."""
