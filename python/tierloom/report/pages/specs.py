"""Vega-Lite specifications as the charts of a page share them: scales, layers, bars, lines.

Colours are names of the page's style sheet, ``var(--c1)``; the page's script puts the colours of
the reader's theme in before it draws. Widths are the container's, so that a telephone is no
special case.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Spec = dict[str, Any]

DATA: Spec = {"name": "table"}
"""Where the page puts a chart's values."""

OURS = "var(--ours)"
OTHERS = "var(--others)"
INK = "var(--ink)"
FAINT = "var(--faint)"
COLOURS = tuple(f"var(--c{number})" for number in range(1, 9))

KNOWN = {"ldram": 0, "dram": 0, "rdram": 1, "cxl": 2, "hbm": 3, "gpu": 4, "pmem": 5, "nvme": 6, "ssd": 6, "lpddr": 7}
"""Memories keep their colour from section to section, by the name that catalogs give them."""

SI_AXIS: Spec = {"labelExpr": "abs(datum.value) < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"}
"""Ticks as 10k and 2M, and as 0.8 and 0: a thousandth of a GB/s is nobody's unit."""

BAR_STEP = 26
"""Height of a bar with its gap, pixels."""

ROOM = 46
"""Beside the longest bar, pixels, so that its figure can stand there."""

LINE_HEIGHT = 260


def memory_scale(names: Sequence[str]) -> Spec:
    """Colours of memories: those that their names are known by, the others what is left."""
    return kept_scale(names, {name: KNOWN.get(name.rstrip("0123456789")) for name in names})


def kept_scale(names: Sequence[str], known: Mapping[str, int | None]) -> Spec:
    """Colours of names that have their own in other charts, too; the others get what is left.

    Example:
        >>> kept_scale(["b", "c"], {"a": 0, "b": 1})["range"]
        ['var(--c2)', 'var(--c1)']
    """
    taken: dict[str, int] = {}
    for name in names:
        index = known.get(name)
        if index is not None and index not in taken.values():
            taken[name] = index
    free = [index for index in range(len(COLOURS)) if index not in taken.values()]
    for name in names:
        if name not in taken:
            taken[name] = free.pop(0) if free else len(COLOURS) - 1
    return {"domain": list(names), "range": [COLOURS[taken[name]] for name in names]}


def scale(names: Iterable[str]) -> Spec:
    """Colours of a few names, in order; more than there are colours begin again."""
    listed = list(names)
    return {"domain": listed, "range": [COLOURS[index % len(COLOURS)] for index in range(len(listed))]}


DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (12, 4), (2, 5))
"""Lines of a few names, told apart without colours, too."""


def lines(name: str, listed: Sequence[str], **legend: object) -> Spec:
    """Channels of lines by name: each its colour and its dashes."""
    look: Spec = {**LEGEND, "symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 2, **legend}
    dashes = [list(DASHES[index % len(DASHES)]) for index in range(len(listed))]
    return {
        "color": field(name, "nominal", None, scale=scale(listed), legend=look),
        "strokeDash": field(name, "nominal", None, scale={"domain": list(listed), "range": dashes}, legend=look),
    }


SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")


def points(name: str, colours: Spec, shapes: Sequence[str] = SHAPES) -> Spec:
    """Channels of points by name: each its colour and its shape."""
    used = [shapes[at % len(shapes)] for at in range(len(colours["domain"]))]
    look = {key: value for key, value in LEGEND.items() if key != "symbolType"}
    return {
        "color": field(name, "nominal", None, scale=colours, legend=look),
        "shape": field(name, "nominal", None, scale={"domain": colours["domain"], "range": used}, legend=look),
    }


def marked(values: Sequence[float], text: Callable[[float], str]) -> Spec:
    """An axis with marks at these values, each in words."""
    words = json.dumps([text(value) for value in values], ensure_ascii=False)
    # What is not as exact as the values of a chart would not be found among them.
    places = [float(f"{value:.6g}") for value in values]
    return {"values": places, "labelExpr": f"{words}[indexof({json.dumps(places)}, datum.value)]"}


MARKS = ((2.5, (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)), (12.0, (1.0, 2.0, 5.0)), (1e3, (1.0, 3.0)))
"""Where a decade of a logarithmic axis is marked, by how many times the least the most is."""


FEWEST_MARKS = 3
"""On an axis: of fewer, nobody sees that it is logarithmic, nor how far its ends are."""


def log_marks(least: float, most: float) -> list[float]:
    """Round numbers along a logarithmic axis, few enough for labels to stand beside each other.

    Example:
        >>> log_marks(3.0, 400.0), log_marks(1.0, 1000.0)
        ([3.0, 10.0, 30.0, 100.0, 300.0], [1.0, 10.0, 100.0, 1000.0])
    """
    steps = next((steps for span, steps in MARKS if most < span * least), (1.0,))
    powers = range(math.floor(math.log10(least)), math.floor(math.log10(most)) + 1)
    made = [value for power in powers for step in steps if least <= (value := _digits(step * 10.0**power)) <= most]
    return made if len(made) >= FEWEST_MARKS else _even_marks(least, most)


def _even_marks(least: float, most: float) -> list[float]:
    """The fewest round numbers at even distances, but enough."""
    power = 10.0 ** math.floor(math.log10(max(most - least, 1e-6 * most)))
    steps = (step * power for step in (1.0, 0.5, 0.2, 0.1))
    marks = (
        [_digits(at * step) for at in range(math.ceil(least / step), math.floor(most / step) + 1)] for step in steps
    )
    return next((made for made in marks if len(made) >= FEWEST_MARKS), [least, most])


def _digits(value: float) -> float:
    """Without what adding up binary fractions leaves."""
    return float(f"{value:.6g}")


def field(name: str, kind: str = "quantitative", title: str | None = None, **more: object) -> Spec:
    """One channel that reads a field."""
    told = {} if title is None and kind == "quantitative" else {"title": title}
    return {"field": name, "type": kind, **told, **more}


def tips(*fields: tuple[str, str] | tuple[str, str, str]) -> list[Spec]:
    """What a chart says where it is pointed at: field, title, and a number's format."""
    made = []
    for name, title, *form in fields:
        kind = "quantitative" if form else "nominal"
        made.append({"field": name, "title": title, "type": kind, **({"format": form[0]} if form else {})})
    return made


def chart(*layers: Spec, height: int | Spec = LINE_HEIGHT, **more: object) -> Spec:
    """A chart as wide as its container; one layer or several over each other."""
    top: Spec = {"data": DATA, "width": "container", "height": height, **more}
    return {**top, **layers[0]} if len(layers) == 1 else {**top, "layer": list(layers)}


def bars_height(rows: int) -> int:
    """Height of a chart of horizontal bars."""
    return max(rows, 1) * BAR_STEP


def room(ends: Iterable[float]) -> Spec:
    """A scale with room for the figures that stand at the ends of bars."""
    return {"domainMax": max(ends, default=1.0), "rangeMax": {"expr": f"width - {ROOM}"}, "nice": False}


def names_axis(name: str, order: Sequence[str] | None = None, standing_out: str | None = None, **more: object) -> Spec:
    """Names down the side of horizontal bars, in the order that they are given; one of them may be bold."""
    sort = list(order) if order is not None else None
    axis: Spec = {"labelPadding": 8, "ticks": False, "domain": False, "grid": False}
    if standing_out is not None:
        test = f"datum.value === {json.dumps(standing_out)}"
        axis["labelFontWeight"] = {"condition": {"test": test, "value": "bold"}, "value": "normal"}
    return field(name, "nominal", None, sort=sort, axis=axis, **more)


def chosen_colour() -> Spec:
    """The chosen one in our colour, the others in theirs."""
    return {"condition": {"test": "datum.ours", "value": OURS}, "value": OTHERS}


def stacked(
    name: str,
    value: str,
    part: str,
    colours: Spec,
    *,
    title: str,
    tooltip: list[Spec],
    names: Sequence[str],
    along: Spec | None = None,
) -> Spec:
    """Horizontal bars whose parts add up, in the order of their rank; `along` says more of their axis."""
    return {
        "mark": {"type": "bar", "height": {"band": 0.68}},
        "encoding": {
            "y": names_axis(name, names),
            "x": field(value, title=title, stack="zero", **(along or {})),
            "color": field(part, "nominal", None, scale=colours, legend=LEGEND, sort=colours["domain"]),
            "order": {"field": "rank", "type": "quantitative"},
            "tooltip": tooltip,
        },
    }


SHARES: Spec = {"axis": {"format": ".0%"}, "scale": {"domain": [0, 1]}}
"""Along bars of parts of a whole."""


def dots(size: int, **encoding: object) -> Spec:
    """A layer of full points."""
    return {"mark": {"type": "point", "filled": True, "size": size, "opacity": 1}, "encoding": encoding}


def labels(text: str, *, x: Spec, y: Spec, dx: int = 6) -> Spec:
    """A layer of words behind marks; `text` is an expression of Vega's."""
    return {
        "transform": [{"calculate": text, "as": "label"}],
        "mark": {"type": "text", "align": "left", "dx": dx, "fontSize": 11},
        "encoding": {"y": y, "x": x, "text": {"field": "label"}, "color": {"value": INK}},
    }


def heat(name: str, title: str, scale: Spec) -> Spec:
    """A channel of colour from cold to hot."""
    colours = ["var(--heat-0)", "var(--heat-1)", "var(--heat-2)", "var(--heat-3)"]
    legend = {"orient": "top", "gradientLength": 160, "gradientThickness": 8, "tickCount": 3}
    return field(name, title=title, scale={**scale, "range": colours}, legend=legend)


def line_with_dots(x: Spec, y: Spec, look: Spec, tooltip: list[Spec], width: float = 1.8) -> list[Spec]:
    """Layers of lines by name, and of the points that they go through; `look` is that of :func:`points`."""
    line = {"mark": {"type": "line", "strokeWidth": width}, "encoding": {"x": x, "y": y, "color": look["color"]}}
    return [line, dots(60, x=x, y=y, **look, tooltip=tooltip)]


LEGEND: Spec = {"orient": "top", "symbolType": "square", "direction": "horizontal"}
