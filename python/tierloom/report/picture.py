"""Charts of a page as files: drawn by the converter that carries Vega, in the font that it carries.

A picture is the same on every machine, and the same each time: nothing is fetched, no setting of the machine's language
counts, and neither dates nor random names are in the file, so that it can be kept in git.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from tierloom import outputs
from tierloom.errors import RequestError
from tierloom.extras import brought_by
from tierloom.report.pages import vega

with brought_by("report"):
    import vl_convert

if TYPE_CHECKING:
    from pathlib import Path

    from tierloom.report.pages.parts import Picture

ENDINGS = (".png", ".svg", ".pdf")

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""The converter's own font, and for whoever shows an SVG fonts whose letters are as wide."""

COMPILER = "6.4"
"""Of the Vega-Lite that pages have."""

DOTS = 2.0
"""Of a PNG for each pixel: sharp on paper and on screens of high resolution."""

PNG = b"\x89PNG\r\n\x1a\n"
"""What such a file begins with."""

NUMBERED = re.compile(r"\b(clip|gradient_)(\d+)")
"""Names within an SVG that the converter numbers on from picture to picture of a process."""


LISTED = re.compile(rb"(?:(?<=<<\n)|(?<= R\n))(?: +/\w+ \d+ 0 R\n)+")
"""References to parts of a PDF, a line each."""


def save(picture: Picture, path: Path) -> None:
    """Writes a picture in the format that the path's ending names.

    Raises:
        RequestError: The ending names no format that can be drawn, or the file cannot be written.
    """
    write(vega.together(picture), path)


def write(document: vega.Document, path: Path) -> None:
    """The same of a document that stands alone.

    Raises:
        RequestError: The ending names no format that can be drawn, or the file cannot be written.
    """
    if path.suffix not in ENDINGS:
        message = f"{path}: `{path.suffix}` is no kind of picture\nhint: let the name end with {', '.join(ENDINGS)}"
        raise RequestError(message)
    drawn = svg(document)
    match path.suffix:
        case ".png":
            outputs.write(path, packed(vl_convert.svg_to_png(drawn, scale=DOTS)))
        case ".pdf":
            # Fonts are written in any order, too; without bold letters there is one.
            outputs.write(path, ordered(vl_convert.svg_to_pdf(drawn.replace(' font-weight="bold"', ""))))
        case _:
            outputs.write(path, drawn)


def svg(document: vega.Document) -> str:
    """A document that stands alone as SVG."""
    text = json.dumps(document).replace(json.dumps(vega.look()["--font"]), json.dumps(FONT))
    if vega.is_lite(document):
        drawn = vl_convert.vegalite_to_svg(text, vl_version=COMPILER, allowed_base_urls=[])
    else:
        drawn = vl_convert.vega_to_svg(text, allowed_base_urls=[])
    numbers: dict[str, int] = {}
    named = NUMBERED.sub(lambda found: f"{found[1]}{numbers.setdefault(found[0], len(numbers))}", drawn)
    return named.replace("<svg", f'<svg role="graphics-document" aria-label={quoteattr(document["description"])}', 1)


def ordered(pdf: bytes) -> bytes:
    """The same PDF with the parts of each page in order: the converter lists them in any."""
    return LISTED.sub(lambda found: b"".join(sorted(found[0].splitlines(keepends=True))), pdf)


def packed(png: bytes) -> bytes:
    """The same PNG, packed as tightly as can be: the converter writes it fast, and three times as large."""
    chunks, pixels, place = [], b"", len(PNG)
    while place < len(png):
        length, kind = struct.unpack_from(">I4s", png, place)
        content = png[place + 8 : place + 8 + length]
        place += length + 12
        if kind == b"IDAT":
            pixels += content
        else:
            chunks.append(kind + content)
    chunks.insert(-1, b"IDAT" + zlib.compress(zlib.decompress(pixels), 9))
    return PNG + b"".join(struct.pack(f">I{len(each)}sI", len(each) - 4, each, zlib.crc32(each)) for each in chunks)
