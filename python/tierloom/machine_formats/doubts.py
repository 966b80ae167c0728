"""Guesses about kinds of memory, told: in the answer, in the machine file, and under ``--sources``.

The last step before a machine is assembled: whatever a source or the user has settled by now is no guess. What nobody
has given by now is left out, and that is told, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.machine_formats.sketch import Known
from tierloom.units import GIB

if TYPE_CHECKING:
    from tierloom.machine_formats.sketch import Sketch
    from tierloom.schema import WarningDoc

UNTOLD = "untold"
"""Key of the source of what nobody told."""


def tell_guesses(sketch: Sketch, given: str) -> None:
    """Fills in kinds that no source tells and adds a warning and a note for each that is a guess.

    Args:
        sketch: The machine, all sources laid over each other.
        given: Key of the source of what the user says, which is no guess.
    """
    for number, node in sorted(sketch.nodes.items()):
        node.kind = node.kind or _guess(sketch, number)
        if node.kind.kind == "assumed" and node.kind.source != given:
            _tell(sketch, number, node.kind, node.name or f"node{number}")


def tell_left_out(sketch: Sketch) -> None:
    """Adds a warning for memory of GPUs, and for cores without a node, that nobody has given by now."""
    sketch.warnings += [*_gpus(sketch), *_strays(sketch)]


def _gpus(sketch: Sketch) -> list[WarningDoc]:
    if not sketch.gpus:
        return []
    first, found = next(iter(sorted(sketch.gpus.items())))
    size = sum(gpu.node.capacity_bytes.value for gpu in sketch.gpus.values() if gpu.node.capacity_bytes)
    return [
        {
            "what": f"node {', '.join(map(str, sorted(sketch.gpus)))}: {size / GIB:g} GiB of GPU memory are left out",
            "cause": f"the kernel shows the memory of GPUs as nodes ({found.gpu})",
            "remedy": f"to plan on it, give it: --node {first}=hbm:16GiB",
        }
    ]


def _strays(sketch: Sketch) -> list[WarningDoc]:
    return [
        {
            "what": f"{_cores(sketch, number)} cores belong to no node that is described; they are socket{number}",
            "cause": "their node has no memory, is offline, or the cgroup in which this was written does not allow it",
            "remedy": f"if it is there, give it: --node {number}=dram:64GiB",
        }
        for number in sketch.strays
        if number not in sketch.nodes
    ]


def _cores(sketch: Sketch, number: int) -> int:
    cores = sketch.cpus[number].cores
    return cores.value if cores else 0


def _guess(sketch: Sketch, number: int) -> Known[str]:
    if number in sketch.cpus:
        return Known("dram", "derived", UNTOLD, "CPUs sit on its node")
    return Known("cxl", "assumed", UNTOLD, "it has no CPUs, and no source says what it is")


def _tell(sketch: Sketch, number: int, kind: Known[str], name: str) -> None:
    other = "dram" if kind.value == "hbm" else "hbm"
    sketch.warnings.append(
        {
            "what": f"node {number} is taken for {kind.value}: a guess",
            "cause": kind.how,
            "remedy": f"settle it: --node {number}={kind.value} if that is right, else --node {number}={other}, …",
        }
    )
    sketch.notes.append(
        f'A guess: {name} is taken for {kind.value} ({kind.how}). Settle it: kind = "…" of {name} in this file, or '
        f"import with --node {number}={kind.value}."
    )
