"""Text of the report against what it stands on: 4.5 to 1, as WCAG 2 asks of text of this size."""

from __future__ import annotations

import re

import pytest
from support import ROOT

LEAST = 4.5
STYLE = (ROOT / "python/tierloom/report/pages/page.css").read_text(encoding="utf-8")
GROUNDS = ("page", "card")


def themes() -> dict[str, dict[str, str]]:
    """Colours by name, of the light theme and of the dark one."""
    blocks = {"light": r":root \{(.*?)\n\}", "dark": r':root\[data-theme="dark"\] \{(.*?)\n\}'}
    found = {theme: re.search(block, STYLE, re.DOTALL) for theme, block in blocks.items()}
    return {theme: dict(re.findall(r"--([\w-]+): (#\w+);", block[1])) for theme, block in found.items() if block}


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2 of #rgb or #rrggbb."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def text_colours() -> set[str]:
    """Names of the colours that the style sheet writes in."""
    return set(re.findall(r"[ {;]color: var\(--([\w-]+)\)", STYLE))


def test_black_on_white_is_the_most_there_is() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(theme: str) -> None:
    colours = themes()[theme]
    assert text_colours() >= {"ink", "soft", "link", "say"}
    low = {
        (name, ground): round(contrast(colours[name], colours[ground]), 2)
        for name in text_colours()
        for ground in GROUNDS
        if contrast(colours[name], colours[ground]) < LEAST
    }
    assert not low
