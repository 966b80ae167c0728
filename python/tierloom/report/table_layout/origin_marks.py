"""The origin marks of figures: every number of a machine says what kind of number it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from tierloom.schema import Kind

MARKS: dict[Kind, str] = {"measured": "m", "published": "p", "derived": "d", "assumed": "a"}
STYLES: dict[Kind, str] = {"measured": "green", "published": "cyan", "derived": "blue", "assumed": "yellow"}
LEGEND = "Marks: " + ", ".join(f"{mark} {kind}" for kind, mark in MARKS.items()) + "."


def marked(text: str, kind: Kind) -> Text:
    """A figure with its mark behind it."""
    return Text.assemble(text, " ", (MARKS[kind], STYLES[kind]))
