"""Names along axes and in legends, as short as a screen has room for: every chart gets its labels here.

A specification says only which field is shown. What stands beside it is looked up in lists that come from the names in
the chart's data, one for a wide and one for a narrow screen, so that no two look alike on either.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tierloom.report.labels import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tierloom.columns import Row

WIDE, NARROW = 36, 15
"""Letters of a label on a wide and on a narrow screen: a third of a chart, or two names of a legend on a line."""

SCREEN: dict[str, Any] = {"name": "narrow", "value": False}
"""The parameter that the page's script sets on a telephone."""

AXES = ("x", "y")
LEGENDS = ("color", "fill", "shape", "strokeDash")


def labelled(part: Any, rows: Sequence[Row]) -> Any:  # noqa: ANN401 (JSON)
    """A specification of Vega-Lite whose discrete axes and legends have labels."""
    if isinstance(part, list | tuple):
        return [labelled(each, rows) for each in part]
    if not isinstance(part, dict):
        return part
    made = {key: value if key == "values" else labelled(value, rows) for key, value in part.items()}
    if isinstance(encoding := made.get("encoding"), dict):
        made["encoding"] = {channel: _channel(channel, told, rows) for channel, told in encoding.items()}
    return made


def _channel(channel: str, told: Any, rows: Sequence[Row]) -> Any:  # noqa: ANN401 (JSON)
    guide = "axis" if channel in AXES else "legend" if channel in LEGENDS else None
    if guide is None or not isinstance(told, dict) or told.get("type") not in ("nominal", "ordinal"):
        return told
    look = told.get(guide, {})
    looked_up = lookup(_names(told, rows))
    return (
        told
        if look is None or "labelExpr" in look or not looked_up
        else {
            **told,
            guide: {**look, "labelExpr": looked_up},
        }
    )


def _names(told: Mapping[str, Any], rows: Sequence[Row]) -> list[str]:
    """What a channel shows: the values of its field; of a field that is computed, any text there is."""
    name, domain = str(told.get("field")), told.get("scale", {}).get("domain", ())
    known = [row[name] for row in rows if isinstance(row.get(name), str)]
    found = known or [value for row in rows for value in row.values() if isinstance(value, str)]
    return [*(value for value in domain if isinstance(value, str)), *found]


def lookup(names: Iterable[str]) -> str | None:
    """An expression of a label's text; nothing where every name is short."""
    narrow, wide = shortened(names, NARROW), shortened(names, WIDE)
    cut = [name for name, label in narrow.items() if label != name]
    if not cut:
        return None
    place = f"indexof({_text(cut)}, datum.value)"
    return f"{_either([narrow[name] for name in cut], [wide[name] for name in cut])}[{place}] || datum.label"


def by_place(names: Sequence[str], place: str) -> str:
    """An expression of the label of the name at a place."""
    narrow, wide = shortened(names, NARROW), shortened(names, WIDE)
    return f"{_either([narrow[name] for name in names], [wide[name] for name in names])}[{place}]"


def _either(narrow: Sequence[str], wide: Sequence[str]) -> str:
    return f"({SCREEN['name']} ? {_text(narrow)} : {_text(wide)})"


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
