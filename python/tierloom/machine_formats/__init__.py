"""Machines that others have described: what firmware, hwloc, cxl, Intel MLC and Mess say, as a machine file.

Each format has a reader that returns a sketch (``sketch.py``), as far as the source tells; several may
describe the same machine, and ``assembly.py`` makes one machine of them, every figure marked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom import arguments
from tierloom.catalog import one_line
from tierloom.errors import MachineError, RequestError
from tierloom.machine_formats import archives, cxl_list, hwloc, mess, mlc, sysfs, unplaced
from tierloom.machine_formats.assembly import assemble
from tierloom.machine_formats.assumed_figures import tell_assumed
from tierloom.machine_formats.doubts import tell_guesses, tell_left_out
from tierloom.machine_formats.hwloc_export import to_hwloc
from tierloom.machine_formats.sketch import Cpus, Known, Node, Sketch
from tierloom.readers import reading
from tierloom.units import amount_in_bytes

if TYPE_CHECKING:
    from tierloom.nouns import Machine
    from tierloom.schema import WarningDoc

__all__ = ["Imported", "import_machine", "to_hwloc"]

GIVEN = "given"
"""Key of the source of what the user says."""


@dataclass(frozen=True)
class Imported:
    """A machine that others have described, and what to know before believing it."""

    machine: Machine
    warnings: list[WarningDoc]


NUMBERED = arguments.table(arguments.text, arguments.whole(0, 9999))


@arguments.reads(
    sources=arguments.sources, nodes=arguments.or_none(NUMBERED), ghz=arguments.or_none(arguments.real(0.01, 100.0))
)
def import_machine(
    sources: Sequence[str | Path],
    name: str | None = None,
    *,
    cores: int | None = None,
    nodes: Mapping[int, str] | None = None,
    ghz: float | None = None,
) -> Imported:
    """Makes a machine of what others have written about it; a later source counts over an earlier one.

    Args:
        sources: Folders with a machine's proc and sys or archives of one, hwloc XML files, what ``cxl list``
            printed, logs of Intel MLC, and curve directories of Mess. ``"0:2=curves"`` says that curves, or loaded
            latencies, are those of the CPUs of node 0 and the memory of node 2.
        name: Name of the machine; that of the source by default.
        cores: Cores of a socket (a node with CPUs), where no source tells.
        nodes: What a node is, by its number, as ``"cxl:128GiB"``: its kind (dram, lpddr, cxl, hbm, pmem or ssd) and
            size. It counts over what sources tell.
        ghz: Mess's bwlat files are in cycles of this clock; in ns by default.

    Raises:
        MachineError: A source is not what it should be, or together they do not tell enough.
        RequestError: A quantity or a kind is wrong.

    Example:
        >>> import pathlib, tempfile, tierloom
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "liu-a.xml"
        >>> _ = file.write_text(to_hwloc(tierloom.machine("liu-a")))
        >>> [memory["name"] for memory in import_machine([file]).machine.data["memories"]]
        ['rdram', 'ldram', 'cxl']
    """
    whole = Sketch()
    for source in sources:
        ends, path = _ends(str(source))
        with reading(path, "machine", "give it as the tool wrote it", MachineError):
            whole.add(_read(path, ends, ghz))
    for number in nodes or {}:
        whole.take_in(number)
    unplaced.place(whole, nodes or {})
    whole.add(_given(whole, cores, nodes or {}))
    tell_guesses(whole, GIVEN)
    tell_left_out(whole)
    tell_assumed(whole)
    last = _ends(str(sources[-1]))[1]
    called = name or whole.name or re.sub(r"\W+", "-", last.absolute().name.split(".")[0]).strip("-") or "imported"
    title = f"{len(whole.cpus)} socket(s), {len(whole.nodes)} memory node(s), imported from {_words(sources)}"
    with reading(_words(sources), "machine that can be", "look at what the warnings name", MachineError):
        return Imported(assemble(whole, called, title, file=_words(sources)), whole.warnings)


def _words(sources: Sequence[str | Path]) -> str:
    return " and ".join(str(_ends(str(source))[1]) for source in sources)


def _ends(source: str) -> tuple[tuple[int, int] | None, Path]:
    found = re.fullmatch(r"(\d{1,4}):(\d{1,4})=(.+)", source)
    return ((int(found[1]), int(found[2])), Path(found[3])) if found else (None, Path(source))


def _read(path: Path, ends: tuple[int, int] | None, ghz: float | None) -> Sketch:
    if not path.exists():
        message = f"{path}: No such file or directory\nhint: check the path"
        raise MachineError(message)
    if mess.is_mess(path):
        return mess.read(path, ends, ghz)
    if path.is_dir():
        if not sysfs.is_tree(path):
            hint = "give a folder that holds sys/devices/system, or one with Mess's bwlat_*.txt"
            message = f"{path}: neither a recorded /sys nor a curve directory of Mess\nhint: {hint}"
            raise MachineError(message)
        return sysfs.read(path)
    if path.suffix == ".xml" or hwloc.is_topology(path):
        return hwloc.read(path)
    if archives.is_archive(path):
        return archives.read(path)
    if cxl_list.is_cxl_list(path):
        return cxl_list.read(path)
    return mlc.read(path, ends)


def _given(whole: Sketch, cores: int | None, nodes: Mapping[int, str]) -> Sketch:
    """What the user says of the machine."""
    given = Sketch(sources={GIVEN: "given by hand when the machine was imported"} if cores or nodes else {})
    for number, text in nodes.items():
        kind, _, size = text.partition(":")
        if kind not in one_line.kinds():
            message = (
                f"node {number}: there is no kind of memory `{kind}`\nhint: use one of: {', '.join(one_line.kinds())}"
            )
            raise RequestError(message)
        given.nodes[number] = Node(kind=Known(kind, "assumed", GIVEN, "given by hand"))
        if size:
            capacity = amount_in_bytes(size, 0)
            given.nodes[number].capacity_bytes = Known(capacity, "assumed", GIVEN, "given by hand")
    if cores:
        for number, cpus in whole.cpus.items():
            if cpus.cores is None:
                given.cpus[number] = Cpus(cores=Known(cores, "assumed", GIVEN, "given by hand"))
    return given
