"""A chart's specification with its data in it: for a page, and as a document that stands alone, or beside others.

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
    from tierloom.report.pages.parts import Chart, Picture

Document = dict[str, Any]

VEGA_LITE = "https://vega.github.io/schema/vega-lite/v5.json"
"""The grammar that every notebook of today reads; what the builders say means the same in version 6, the page's."""

THEME = "theme.json"
"""How all charts look; colours are names of the style sheet."""

WIDTH = 680
"""Of a document, pixels: a cell of a notebook beside its file list."""

PANEL_WIDTH = 400
"""Of a chart beside others in a picture, pixels between its axes."""

GAP = 36
"""Between the charts of a picture, pixels."""

TICKS = 44
"""Room for the labels of an upright axis in a picture, pixels."""

EDGE = 14
"""Around a picture, pixels."""

HEADING = 17
"""Size of a picture's title, above those of its charts."""

ABOUT_LETTER = 6.2
"""Width of a subtitle's letter, pixels: as wide as most."""

DIGITS = 6
"""Significant digits of values that are drawn or saved: more than a screen can show, or anybody measured."""

WIDE = re.compile(r"\bwidth\b")

COLOUR = re.compile(r"var\((--[\w-]+)\)")


def filled(chart: Chart) -> Document:
    """The specification with its data, as a page draws it."""
    told: Document = {**chart.spec, "description": f"{chart.title}. {chart.told}".strip()}
    if is_lite(told):
        told = labelled({**told, "params": [*told.get("params", ()), SCREEN]}, chart.data)
    document: Document = rounded(with_data(told, [{**row} for row in chart.data]))
    return document


def standalone(chart: Chart) -> Document:
    """The same with schema, title, colours and width: whatever draws Vega-Lite, or Vega, draws it.

    Example:
        >>> from tierloom.report.pages.parts import Chart
        >>> from tierloom.report.table_layout.table import Table
        >>> spec = {"data": {"name": "table"}, "mark": {"type": "bar", "color": "var(--ink)"}, "width": "container"}
        >>> made = standalone(Chart("Sizes", spec, Table([], [{"bytes": 4}])))
        >>> made["data"]["values"], made["mark"]["color"], made["title"]["text"]
        ([{'bytes': 4}], '#1c2833', 'Sizes')
    """
    told = {"$schema": VEGA_LITE, "title": _title(chart.title, chart.told, WIDTH), **filled(chart)}
    return _dressed(_fixed(told))


def together(picture: Picture) -> Document:
    """A picture's charts as one document, in rows of as many as it has columns; nothing in it can be moved."""
    width = WIDTH if picture.columns == 1 else PANEL_WIDTH
    views, params = [], {}
    for number, chart in enumerate(picture.charts):
        view = {"title": _title(chart.title, chart.about, width), **filled(chart), "width": width}
        params.update({each["name"]: each for each in view.pop("params")})
        view.pop("usermeta", None)
        views.append(_as_wide(_renamed(_visible(view), f"table{number}"), width))
    told = {
        "$schema": VEGA_LITE,
        "description": f"{picture.title}. {picture.about}".strip(),
        "title": {**_title(picture.title, picture.about, picture.columns * width), "fontSize": HEADING, "offset": 18},
        "params": [{key: value for key, value in each.items() if key != "bind"} for each in params.values()],
        "padding": EDGE,
        "concat": views,
        "columns": picture.columns,
        "spacing": GAP,
        "align": "each",
        "resolve": {"scale": dict.fromkeys(("color", "shape", "strokeDash", "size"), "independent")},
    }
    dressed = _dressed(told)
    # Charts above each other begin at one place.
    dressed["config"]["axisYQuantitative"]["minExtent"] = TICKS
    return dressed


def _as_wide(part: Any, width: int) -> Any:  # noqa: ANN401 (JSON)
    """The specification with the number where an expression asks for its width: beside others no view knows it."""
    if isinstance(part, dict):
        return {
            key: WIDE.sub(str(width), value) if key == "expr" else value if key == "values" else _as_wide(value, width)
            for key, value in part.items()
        }
    return [_as_wide(each, width) for each in part] if isinstance(part, list | tuple) else part


def _visible(view: Document) -> Document:
    """Without the layers that are there to be pointed at."""
    layers = [
        each
        for each in view.get("layer", ())
        if not (isinstance(each["mark"], dict) and each["mark"].get("opacity") == 0)
    ]
    return {**view, "layer": layers} if layers else view


def _title(text: str, about: str, width: int) -> Document:
    lines = textwrap.wrap(about, int(width / ABOUT_LETTER))
    return {"text": text, **({"subtitle": lines} if lines else {})}


def _dressed(told: Document) -> Document:
    """With the look of a page in the light."""
    config = {**json.loads(own_file(THEME)), "background": "var(--card)"}
    document: Document = painted({**told, "config": config}, look())
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


def _renamed(part: Any, name: str) -> Any:  # noqa: ANN401 (JSON)
    """The specification with its data under another name than that of the chart beside it."""
    if isinstance(part, dict):
        if part.get("name") == "table":
            return {**part, "name": name}
        return {key: value if key == "values" else _renamed(value, name) for key, value in part.items()}
    return [_renamed(each, name) for each in part] if isinstance(part, list | tuple) else part


def rounded(part: Any) -> Any:  # noqa: ANN401 (JSON)
    """Numbers with as many digits as can be seen, whole ones without a point; what is no number is left out."""
    if isinstance(part, float):
        seen = float(f"{part:.{DIGITS}g}") if math.isfinite(part) else None
        return int(seen) if seen is not None and seen.is_integer() else seen
    if isinstance(part, dict):
        return {key: rounded(value) for key, value in part.items()}
    return [rounded(each) for each in part] if isinstance(part, list | tuple) else part
