"""Guesses about kinds of memory, told: in the answer, in the machine file, and under ``--sources``.

The last step before a machine is assembled: whatever a source or the user has settled by now is no guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.machine_formats.sketch import Known

if TYPE_CHECKING:
    from tierloom.machine_formats.sketch import Sketch

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
