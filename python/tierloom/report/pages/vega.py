"""A chart's specification with its data in it: for a page, and as a document that stands alone.

A page has its colours from its style sheet and its width from the screen. A document has them inside: the light colours
of the same style sheet, and a fixed width. It is Vega-Lite, or Vega where a builder's specification is.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from tierloom.report.pages.label_expressions import SCREEN, labelled

if TYPE_CHECKING:
    from tierloom.report.pages.parts import Chart

Document = dict[str, Any]

VEGA_LITE = "https://vega.github.io/schema/vega-lite/v5.json"
"""The grammar that every notebook of today reads; what the builders say means the same in version 6, the page's."""

THEME = "theme.json"
"""How all charts look; colours are names of the style sheet."""

WIDTH = 680
"""Of a document, pixels: a cell of a notebook beside its file list."""

ABOUT_LETTERS = 110
"""Letters of a subtitle's line that are as wide as the chart."""

DIGITS = 6
"""Significant digits of values that are drawn or saved: more than a screen can show, or anybody measured."""

COLOUR = re.compile(r"var\((--[\w-]+)\)")


def filled(chart: Chart) -> Document:
    """The specification with its data, as a page draws it."""
    told: Document = {**chart.spec, "description": f"{chart.title}. {chart.about}".strip()}
    if is_lite(told):
        told = labelled({**told, "params": [*told.get("params", ()), SCREEN]}, chart.data)
    document: Document = rounded(with_data(told, [{**row} for row in chart.data]))
    return document


def standalone(chart: Chart) -> Document:
    """The same with schema, title, colours and width: whatever draws Vega-Lite, or Vega, draws it.

    Example:
        >>> from tierloom.report.pages.parts import Chart
        >>> from tierloom.report.tables.layout import Table
        >>> spec = {"data": {"name": "table"}, "mark": {"type": "bar", "color": "var(--ink)"}, "width": "container"}
        >>> made = standalone(Chart("Sizes", spec, Table([], [{"bytes": 4}])))
        >>> made["data"]["values"], made["mark"]["color"], made["title"]["text"]
        ([{'bytes': 4}], '#1c2833', 'Sizes')
    """
    about = textwrap.wrap(chart.about, ABOUT_LETTERS)
    title = {"text": chart.title, **({"subtitle": about} if about else {})}
    told = {"$schema": VEGA_LITE, "title": title, **filled(chart)}
    told["config"] = {**json.loads(own_file(THEME)), "background": "var(--card)"}
    document: Document = painted(_fixed(told), look())
    return document


def is_lite(document: Document) -> bool:
    """Whether a document is Vega-Lite, as all are that do not say what they are."""
    return "/vega/" not in document.get("$schema", "")


def _fixed(told: Document) -> Document:
    """As wide as a document is, where a page has its container's width."""
    if is_lite(told):
        return {**told, "width": WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}}
    signals = [
        {"name": "width", "value": WIDTH} if signal["name"] == "width" else signal for signal in told.get("signals", [])
    ]
    return {**told, "signals": signals}


def painted(part: Any, by_name: dict[str, str]) -> Any:  # noqa: ANN401 (JSON)
    """Colours in the place of their names; values are the program's, and stay."""
    if isinstance(part, str):
        name = COLOUR.fullmatch(part)
        return by_name[name[1]] if name else part
    if isinstance(part, dict):
        return {key: value if key == "values" else painted(value, by_name) for key, value in part.items()}
    return [painted(each, by_name) for each in part] if isinstance(part, list | tuple) else part


@cache
def look() -> dict[str, str]:
    """The light colours of the page's style sheet, and its font, by their names.

    Example:
        >>> look()["--c1"]
        '#0072b2'
    """
    light = own_file("page.css").partition(":root {")[2].partition("}")[0]
    return {name: value.strip() for name, value in re.findall(r"(--[\w-]+):([^;]+);", light)}


@cache
def own_file(name: str) -> str:
    """A file beside this one."""
    return (resources.files("tierloom") / "report" / "pages" / name).read_text(encoding="utf-8")


def with_data(part: Any, values: list[dict[str, Any]]) -> Any:  # noqa: ANN401 (JSON)
    """The specification with its values where its data is named ``table``."""
    if isinstance(part, dict):
        if part.get("name") == "table":
            return {**part, "values": values}
        return {key: with_data(value, values) for key, value in part.items()}
    return [with_data(each, values) for each in part] if isinstance(part, list | tuple) else part


def rounded(part: Any) -> Any:  # noqa: ANN401 (JSON)
    """Numbers with as many digits as can be seen; what is no number is left out."""
    if isinstance(part, float):
        return float(f"{part:.{DIGITS}g}") if math.isfinite(part) else None
    if isinstance(part, dict):
        return {key: rounded(value) for key, value in part.items()}
    return [rounded(each) for each in part] if isinstance(part, list | tuple) else part
