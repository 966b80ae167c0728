"""Objects by the call stack that allocates them (a flame graph), and by size (a treemap).

Width and area are bytes or what the program waits for; colour is how much an object is asked for by
its size: small and hot belongs in fast memory, large and cold does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tierloom.columns import Column, Row
from tierloom.report.labels import cut, shortened
from tierloom.report.pages.parts import Chart
from tierloom.report.table_layout.table import Table
from tierloom.units import bytes_text, percent_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tierloom.nouns import Profile
    from tierloom.nouns.profile_objects import Traffic
    from tierloom.schema import ObjectDoc

ROW = 24
"""Height of a frame, pixels."""

DEEPEST = 24
"""Frames that are drawn; of deeper stacks the innermost."""

NAME = 100
"""Letters of a frame's name: names of templates have thousands."""

LETTER = 0.55
"""Width of a letter for the size of its font: a mean of what browsers take for a name in lower case."""

LABELS = (8, 14, 24, 40)
"""Letters that boxes have room for, from where a label says anything."""

MOST_OBJECTS = 400
WAITS, TRAFFIC = "waits", "memory traffic"
"""What is asked of an object."""

LIMITS = (0.1, 10.0)
"""Heat beyond these is drawn as these."""

TREE_HEIGHT = 300

Spec = dict[str, Any]


class Heated(NamedTuple):
    """An object with its share of the bytes and of what the program asks memory for."""

    item: ObjectDoc
    bytes_share: float
    asked_share: float

    @property
    def heat(self) -> float:
        """What is asked of it for its size; 1 is the mean over all data."""
        return self.asked_share / self.bytes_share if self.bytes_share > 0 else 0.0


def asked_of(profile: Profile, totals: Mapping[str, Traffic]) -> tuple[str, dict[str, float]]:
    """What the program asks of each object: the waits that were sampled, or the traffic where none were."""
    waits = {item["name"]: item["stall"]["share"] for item in profile.data["objects"] if "stall" in item}
    if any(waits.values()):
        return WAITS, waits
    return TRAFFIC, {name: total.total_bytes for name, total in totals.items()}


def heated(objects: Sequence[ObjectDoc], asked: Mapping[str, float]) -> list[Heated]:
    """Objects with their shares, those first that are asked for most."""
    size = sum(item["size_bytes"] for item in objects) or 1
    most = sum(asked.get(item["name"], 0.0) for item in objects) or 1.0
    made = [Heated(item, item["size_bytes"] / size, asked.get(item["name"], 0.0) / most) for item in objects]
    return sorted(made, key=lambda each: (-each.asked_share, each.item["name"]))


def table(items: Sequence[Heated], what: str, *, paths: bool) -> Table:
    """The data of a picture: an object a line, with its whole path where that is drawn."""
    rows = [
        {
            "object": each.item["name"],
            "size_bytes": each.item["size_bytes"],
            "bytes": each.bytes_share,
            "asked": each.asked_share,
            "heat": each.heat,
            "path": " → ".join(path(each.item)) if paths else None,
        }
        for each in items
    ]
    columns = [
        *(Column("object", "object"), Column("size_bytes", "size", "bytes"), Column("bytes", "of the data", "percent")),
        *(Column("asked", what, "percent"), Column("heat", "for its size", "times")),
        *([Column("path", "path", "code")] if paths else []),
    ]
    return Table(columns, rows)


def path(item: ObjectDoc) -> list[str]:
    """From the program's outermost frame to the allocation."""
    site = item["site"]
    if "stack" in site:
        return [_frame(frame) for frame in reversed(site["stack"][:DEEPEST])]
    if "symbol" in site:
        return ["static data", str(site["symbol"]["module"])]
    if "file" in site:
        return ["mapped files"]
    return [{"arena": "too small to tell apart"}.get(item["kind"], item["kind"])]


def _frame(frame: Mapping[str, Any]) -> str:
    name = str(frame.get("function") or frame.get("line") or f"{frame['module']}+{frame['offset']:#x}")
    return cut(name, NAME)


def flame(items: Sequence[Heated], program: str, what: str) -> Chart:
    """The flame graph, outermost frame on top; a choice of what its width is."""
    shown = items[:MOST_OBJECTS]
    boxes = [
        *_boxes(shown, program, "bytes", [each.bytes_share for each in shown]),
        *_boxes(shown, program, what, [each.asked_share for each in shown]),
    ]
    depth = max(box["depth"] for box in boxes) + 1
    labels = _labels(box["name"] for box in boxes)
    return Chart(
        "Objects by call stack",
        _flame_spec(depth * ROW, what, labels, _places(boxes)),
        table(shown, what, paths=True),
        values=boxes,
        about="Who allocates what: outermost frame on top, data objects at the bottom of each stack. Click a frame "
        "to widen it, or choose it; click it again to see all. Colour: what is asked of the data, for its size."
        f"{_left_out(items)}",
        wide=True,
    )


def _boxes(items: Sequence[Heated], program: str, measure: str, values: Sequence[float]) -> list[Row]:
    """Frames of one measure from left to right; neighbours with the same path share a frame."""
    tree = _Node(program)
    for each, value in zip(items, values, strict=True):
        if value > 0:
            tree.add([*path(each.item), each.item["name"]], value, each.heat)
    return [{**box, "measure": measure} for box in tree.boxes(0.0, 0, max(tree.value, 1e-12))]


class _Node:
    def __init__(self, name: str) -> None:
        self.name = name
        self.value = 0.0
        self.heat: float | None = None
        self.inner: dict[str, _Node] = {}

    def add(self, names: Sequence[str], value: float, heat: float) -> None:
        self.value += value
        if names:
            self.inner.setdefault(names[0], _Node(names[0])).add(names[1:], value, heat)
        else:
            self.heat = heat

    def boxes(self, left: float, depth: int, whole: float) -> list[Row]:
        right = left + self.value / whole
        box: Row = {"name": self.name, "depth": depth, "x0": left, "x1": right, "leaf": self.heat is not None}
        made: list[Row] = [
            {**box, "heat": min(max(self.heat or LIMITS[0], LIMITS[0]), LIMITS[1]), "share": right - left}
        ]
        for node in sorted(self.inner.values(), key=lambda node: (-node.value, node.name)):
            made += node.boxes(left, depth + 1, whole)
            left += node.value / whole
        return made


def _labels(names: Iterable[str]) -> Spec:
    """What boxes are called that are too narrow for their whole names: no two alike at any width."""
    listed = list(dict.fromkeys(names))
    by_room = [shortened(listed, letters) for letters in LABELS]
    long = (name for name in listed if len(name) > LABELS[0])
    return {"name": "labels", "values": [{"of": name, "labels": [made[name] for made in by_room]} for name in long]}


def _labelled(name: str) -> Spec:
    """Looks up the labels of a row's name."""
    return {"type": "lookup", "from": "labels", "key": "of", "fields": [name], "values": ["labels"]}


def _fitting(name: str, room: str, size: int) -> str:
    """An expression of the longest label of a name that so many pixels have room for, if any."""
    letters = f"floor(({room}) / {LETTER * size:.3g})"
    shorter = "".join(f"{letters} >= {LABELS[at]} ? datum.labels[{at}] : " for at in reversed(range(len(LABELS))))
    return f"{letters} >= length({name}) ? {name} : !datum.labels ? '' : {shorter}''"


WIDTH: Spec = {
    "name": "width",
    "init": "isFinite(containerSize()[0]) ? containerSize()[0] : 300",
    "on": [{"events": "window:resize", "update": "isFinite(containerSize()[0]) ? containerSize()[0] : 300"}],
}

HEAT: list[Spec] = [
    {
        "name": "heat",
        "type": "log",
        "domain": [LIMITS[0], 1, LIMITS[1]],
        "range": ["var(--cold)", "var(--mild)", "var(--hot)"],
        "interpolate": "lab",
        "clamp": True,
    }
]

HEAT_LEGEND: Spec = {
    "fill": "heat",
    "title": "asked of it for its size, times the mean",
    "orient": "top",
    "direction": "horizontal",
    "gradientLength": 160,
    "gradientThickness": 8,
    "values": [LIMITS[0], 1, LIMITS[1]],
    "format": "~g",
}


ALL = "all"
MOST_CHOICES = 40
"""Frames in the list of those that can be widened, the widest."""


def _places(boxes: Sequence[Row]) -> dict[str, dict[str, list[float]]]:
    """Where frames are by what they are wide by, for a list that a keyboard reaches, the widest first."""
    places: dict[str, dict[str, list[float]]] = {}
    for box in sorted(boxes, key=lambda box: -box["share"]):
        if box["depth"] > 0:
            places.setdefault(cut(box["name"], NAME), {}).setdefault(box["measure"], [box["x0"], box["x1"]])
    return {f"{at}. {name}": places[name] for at, name in enumerate([*places][:MOST_CHOICES], 1)}


def _flame_spec(height: int, what: str, labels: Spec, places: Mapping[str, Any]) -> Spec:
    left, right = "clamp(scale('x', datum.x0), 0, width)", "clamp(scale('x', datum.x1), 0, width)"
    chosen = f"widened === '{ALL}' ? [0, 1] : places[widened][measure] || [0, 1]"
    tip = "{'frame': datum.name, 'share': format(datum.share, '.1%')}"
    leaf_tip = f"merge({tip}, {{'for its size': format(datum.heat, '.2~f') + ' times the mean'}})"
    return {
        "$schema": "https://vega.github.io/schema/vega/v6.json",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "signals": [
            WIDTH,
            {
                "name": "measure",
                "value": what,
                "bind": {"input": "select", "options": [what, "bytes"], "name": "width: "},
            },
            {"name": "places", "value": places},
            {
                "name": "widened",
                "value": ALL,
                "bind": {"input": "select", "options": [ALL, *places], "name": "widened: "},
            },
            {
                "name": "zoom",
                "value": [0, 1],
                "on": [
                    {
                        "events": "@frame:click",
                        "update": "zoom[0] === datum.x0 && zoom[1] === datum.x1 ? [0, 1] : [datum.x0, datum.x1]",
                    },
                    {"events": [{"signal": "measure"}, {"signal": "widened"}], "update": chosen},
                ],
            },
        ],
        "data": [
            labels,
            {
                "name": "table",
                "transform": [{"type": "filter", "expr": "datum.measure === measure"}, _labelled("name")],
            },
        ],
        "scales": [
            {"name": "x", "type": "linear", "domain": {"signal": "zoom"}, "range": "width", "zero": False},
            *HEAT,
        ],
        "legends": [HEAT_LEGEND],
        "marks": [
            {
                "type": "rect",
                "name": "frame",
                "description": "frames of call stacks, and the objects that they allocate",
                "from": {"data": "table"},
                "encode": {
                    "update": {
                        "x": {"signal": left},
                        "x2": {"signal": right},
                        "y": {"signal": f"datum.depth * {ROW}"},
                        "height": {"value": ROW - 2},
                        "cornerRadius": {"value": 3},
                        "fill": [{"test": "datum.leaf", "scale": "heat", "field": "heat"}, {"value": "var(--frame)"}],
                        "fillOpacity": {"value": 1},
                        "cursor": {"value": "pointer"},
                        "tooltip": {"signal": f"datum.leaf ? {leaf_tip} : {tip}"},
                    },
                    "hover": {"fillOpacity": {"value": 0.75}},
                },
            },
            {
                "type": "text",
                "interactive": False,
                "from": {"data": "table"},
                "encode": {
                    "update": {
                        "x": {"signal": f"{left} + 6"},
                        "y": {"signal": f"datum.depth * {ROW} + {ROW / 2 - 1}"},
                        "baseline": {"value": "middle"},
                        "text": {"signal": _fitting("datum.name", f"{right} - ({left}) - 10", 12)},
                        "limit": {"signal": f"max({right} - ({left}) - 10, 1)"},
                        "opacity": {"signal": f"{right} - ({left}) > 26 ? 1 : 0"},
                        "fill": [{"test": "datum.leaf", "value": "var(--on-heat)"}, {"value": "var(--ink)"}],
                        "fontSize": {"value": 12},
                    }
                },
            },
        ],
    }


def treemap(items: Sequence[Heated], what: str) -> Chart:
    """Every object's bytes as an area."""
    shown = items[:MOST_OBJECTS]
    labels = _labels(each.item["name"] for each in shown)
    values: list[Row] = [{"id": "all"}]
    values += [
        {
            "id": each.item["name"],
            "parent": "all",
            "size": each.item["size_bytes"],
            "held": bytes_text(each.item["size_bytes"]),
            "share": each.asked_share,
            "heat": min(max(each.heat, LIMITS[0]), LIMITS[1]),
        }
        for each in shown
        if each.item["size_bytes"] > 0
    ]
    return Chart(
        "Where the bytes are, and which are hot",
        _tree_spec(what, labels),
        table(items, what, paths=False),
        values=values,
        about=f"Area: bytes. Colour: share of {what} over share of bytes.{_left_out(items)}",
    )


def _left_out(items: Sequence[Heated]) -> str:
    """How many objects are not drawn, and what they come to."""
    others = items[MOST_OBJECTS:]
    if not others:
        return ""
    held = percent_text(sum(each.bytes_share for each in others))
    asked = percent_text(sum(each.asked_share for each in others))
    return (
        f" Drawn are the {MOST_OBJECTS} objects that are asked for most; the other {len(others)} hold {held} of the "
        f"bytes and have {asked} of what is asked."
    )


def _tree_spec(what: str, labels: Spec) -> Spec:
    tip = f"{{'object': datum.id, 'size': datum.held, '{what}': format(datum.share, '.1%')}}"
    return {
        "$schema": "https://vega.github.io/schema/vega/v6.json",
        "height": TREE_HEIGHT,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "signals": [WIDTH],
        "data": [
            labels,
            {
                "name": "table",
                "transform": [
                    _labelled("id"),
                    {"type": "stratify", "key": "id", "parentKey": "parent"},
                    {
                        "type": "treemap",
                        "field": "size",
                        "sort": {"field": "value", "order": "descending"},
                        "method": "squarify",
                        "ratio": 1.4,
                        "paddingInner": 3,
                        "round": True,
                        "size": [{"signal": "width"}, {"signal": "height"}],
                    },
                    {"type": "filter", "expr": "datum.parent"},
                ],
            },
        ],
        "scales": HEAT,
        "legends": [HEAT_LEGEND],
        "marks": [
            {
                "type": "rect",
                "description": "objects by their bytes",
                "from": {"data": "table"},
                "encode": {
                    "update": {
                        **{name: {"field": name} for name in ("x0", "y0", "x1", "y1")},
                        "x": {"field": "x0"},
                        "x2": {"field": "x1"},
                        "y": {"field": "y0"},
                        "y2": {"field": "y1"},
                        "fill": {"scale": "heat", "field": "heat"},
                        "cornerRadius": {"value": 4},
                        "tooltip": {"signal": tip},
                    }
                },
            },
            *(_tree_text(line) for line in _TREE_LINES),
        ],
    }


_IN_BOX = "datum.x1 - datum.x0 - 14"
_TREE_LINES = (
    {"dy": 8, "text": _fitting("datum.id", _IN_BOX, 13), "size": 13, "weight": 600, "room": 24},
    {
        "dy": 26,
        "text": f"length(datum.held) * {LETTER * 11:.3g} <= {_IN_BOX} ? datum.held : ''",
        "size": 11,
        "weight": 400,
        "room": 44,
    },
)


def _tree_text(line: Mapping[str, Any]) -> Spec:
    fits = f"datum.x1 - datum.x0 > 34 && datum.y1 - datum.y0 > {line['room']}"
    return {
        "type": "text",
        "interactive": False,
        "from": {"data": "table"},
        "encode": {
            "update": {
                "x": {"signal": "datum.x0 + 9"},
                "y": {"signal": f"datum.y0 + {line['dy']}"},
                "baseline": {"value": "top"},
                "text": {"signal": line["text"]},
                "limit": {"signal": "max(datum.x1 - datum.x0 - 14, 1)"},
                "opacity": {"signal": f"{fits} ? 1 : 0"},
                "fill": {"value": "var(--on-heat)"},
                "fontSize": {"value": line["size"]},
                "fontWeight": {"value": line["weight"]},
            }
        },
    }
