"""Pictures of pages held against those that somebody looked at, so that a page is judged and no letter's edge is.

A picture is kept as the mean colours of its squares, a few dozen colours in all. Letters become grey, so another build
of the browser, which draws their edges otherwise, changes little; what is gone, or moved, or of another colour, changes
much. Of 72 pictures in Chromium 150 and 156, no square differs by more than 3 levels. Of a dozen planted faults the
smallest, dashes that become a line, changes 19 squares by more than `OFF`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
from PIL import Image
from support import ROOT
from syrupy.extensions.image import PNGImageSnapshotExtension

SQUARE = 8
"""Side of a square, pixels: half a line of text."""
COLOURS = 64
"""Of a kept picture."""
OFF = 12
"""Levels of 255 by which a square's red, green or blue may be off."""
MOST_OFF = 10
"""Squares that may be off by more: a word."""
SEEN = ROOT / "build" / "report"
"""Where pictures in full size are, for people to look at."""


def small(png: bytes) -> bytes:
    """A picture as it is kept."""
    reduced = Image.open(io.BytesIO(png)).convert("RGB").reduce(SQUARE)
    kept = io.BytesIO()
    reduced.quantize(COLOURS, dither=Image.Dither.NONE).save(kept, "PNG", optimize=True)
    return kept.getvalue()


def squares(kept: bytes) -> np.ndarray:
    """The colours of its squares, by row and column."""
    return np.asarray(Image.open(io.BytesIO(kept)).convert("RGB"), dtype=np.int16)


def off(one: bytes, other: bytes) -> int:
    """How many squares differ of two pictures as they are kept; all where they differ in size."""
    first, second = squares(one), squares(other)
    if first.shape != second.shape:
        return max(first.size, second.size)
    return int((np.abs(first - second).max(axis=2) > OFF).sum())


class Pictures(PNGImageSnapshotExtension):
    """Snapshots of screens: `--snapshot-update` keeps what was seen."""

    def serialize(self, data: bytes, **_: object) -> bytes:
        return small(data)

    def matches(self, *, serialized_data: bytes, snapshot_data: bytes) -> bool:
        return off(serialized_data, snapshot_data) <= MOST_OFF

    def diff_lines(self, serialized_data: bytes, snapshot_data: bytes) -> Iterator[str]:
        sizes = [squares(each).shape[:2] for each in (snapshot_data, serialized_data)]
        yield f"{off(serialized_data, snapshot_data)} squares differ; rows and columns: {sizes}; see {SEEN}"
