"""The section of reproduced claims: what was published, what is ours, and the verdict."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tierloom.columns import Column, Row
from tierloom.report.pages.parts import Chart, Fact, Picture, Section
from tierloom.report.pages.specs import (
    INK,
    LEGEND,
    OURS,
    SI_AXIS,
    Spec,
    chart,
    field,
    log_marks,
    names_axis,
    points,
    tips,
)
from tierloom.report.pages.unknown_documents import text
from tierloom.report.table_layout.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tierloom.report.pages.sources import Shelf, Source

IN_BAND, MISSED, NOT_MODELLED = "in band", "missed", "not modelled"
VERDICTS = {"domain": [IN_BAND, MISSED, NOT_MODELLED], "range": ["var(--c2)", "var(--ours)", "var(--others)"]}
FARTHEST = 5.0
MANY = 12
"""Claims from which a document's picture takes a whole line."""

STEP = 18
"""Height of a claim, pixels: there are hundreds."""


def section(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Every claim side by side."""
    told: list[dict[str, Any]] = source.data["claims"]
    predicted = [claim for claim in told if claim.get("kind") == "prediction"]
    verdicts = Counter(str(claim.get("verdict")) for claim in predicted)
    judged = verdicts[IN_BAND] + verdicts[MISSED]
    rows = [_row(claim) for claim in told]
    return Section(
        kind="reproduction",
        title=source.name,
        about="Published figures and ours. Inputs are what we took from a study; only numeric predictions are counted.",
        facts=[
            Fact("claims", str(len(told)), f"{len(predicted)} of them numeric predictions"),
            Fact(
                "predictions in band",
                f"{verdicts[IN_BAND] / judged:.0%}" if judged else "·",
                f"{verdicts[IN_BAND]} of {judged}",
            ),
            Fact("missed", str(verdicts[MISSED]), "each with its reason in the table"),
            Fact("not modelled", str(verdicts[NOT_MODELLED])),
        ],
        charts=[
            *_by_source(predicted),
            *_ratios(predicted),
            *(chart for each in pictures(told) for chart in each.charts),
        ],
        tables=[Table(_COLUMNS, rows, "Every claim")],
    )


_COLUMNS = (
    *(Column("id", "claim", "code"), Column("kind", "kind"), Column("printed", "printed")),
    *(Column("published", "published"), Column("ours", "ours")),
    *(Column("band", "band"), Column("verdict", "verdict"), Column("why", "why"), Column("place", "place")),
)


def _row(claim: Mapping[str, Any]) -> Row:
    return {
        **{
            column.key: text(column.key, claim[column.key]) if claim.get(column.key) is not None else None
            for column in _COLUMNS
        }
    }


WHOLE: Spec = {"labelExpr": "datum.value % 1 ? '' : format(datum.value, 'd')"}
"""Along bars of things that are counted: there is no half of one."""


def _by_source(claims: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Verdicts by document: the part of a claim's name before its first dot."""
    counted = Counter((str(claim.get("id", "")).split(".")[0], str(claim.get("verdict"))) for claim in claims)
    if not counted:
        return []
    names = sorted({name for name, _ in counted})
    places = VERDICTS["domain"]
    rows: list[Row] = [
        {
            "document": name,
            "verdict": verdict,
            "claims": count,
            "rank": places.index(verdict) if verdict in places else len(places),
        }
        for (name, verdict), count in sorted(counted.items())
    ]
    spec = chart(
        {
            "mark": {"type": "bar", "height": {"band": 0.66}},
            "encoding": {
                "y": names_axis("document", names),
                "x": field("claims", title="predictions", axis=WHOLE),
                "color": field("verdict", "nominal", None, scale=VERDICTS, legend=LEGEND),
                "order": {"field": "rank"},
                "tooltip": tips(("document", "document"), ("verdict", "verdict"), ("claims", "predictions", "d")),
            },
        },
        height=max(len(names) * 30, 60),
    )
    columns = [Column("document", "document"), Column("verdict", "verdict"), Column("claims", "predictions", "count")]
    return [Chart("Verdicts by document", spec, Table(columns, rows), wide=True)]


def _ratios(claims: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Ours over what was published, a chart a document."""
    rows = sorted(_comparable(claims), key=lambda row: (row["document"], row["ratio"], row["id"]))
    return [_ratio(document, list(held)) for document, held in groupby(rows, key=lambda row: str(row["document"]))]


def _comparable(claims: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """Claims of one number each, of the same sign."""
    for claim in claims:
        published, ours = _number(claim.get("published")), _number(claim.get("ours"))
        if published and ours and ours / published > 0:
            document, _, item = str(claim["id"]).partition(".")
            yield {
                "id": claim["id"],
                "document": document,
                "item": item or document,
                "verdict": claim.get("verdict"),
                "published": published,
                "ours": ours,
                "ratio": ours / published,
            }


def _ratio(document: str, rows: list[Row]) -> Chart:
    tip = tips(
        *(("id", "claim"), ("published", "published", ".4~g"), ("ours", "ours", ".4~g")),
        *(("ratio", "ratio", ".3f"), ("verdict", "verdict")),
    )
    ends = _around_one([row["ratio"] for row in rows])
    spec = chart(
        {
            "mark": {"type": "rule", "color": INK, "opacity": 0.5},
            "data": {"values": [{"one": 1}]},
            "encoding": {"x": field("one")},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 0.95},
            "encoding": {
                "y": names_axis("item", [row["item"] for row in rows]),
                "x": field(
                    "ratio",
                    title="ours over published",
                    scale=ends,
                    axis={"tickCount": 5, "format": "~g"},
                ),
                "color": field("verdict", "nominal", None, scale=VERDICTS, legend=LEGEND),
                "tooltip": tip,
            },
        },
        height=max(len(rows) * STEP, 80),
    )
    columns = [
        *(Column("id", "claim", "code"), Column("published", "published", "number"), Column("ours", "ours", "number")),
        *(Column("ratio", "ours over published", "times"), Column("verdict", "verdict")),
    ]
    about = f"At 1 they agree; what is more than {FARTHEST:g} times off stands at the end."
    return Chart(f"Ours over published: {document}", spec, Table(columns, rows), about=about, wide=len(rows) > MANY)


WIDE = 50.0
"""Largest over smallest value from which an axis is logarithmic."""

FIGURE_HEIGHT = 200


def pictures(claims: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """A picture of each published figure with known points: a chart a series of it, published and ours."""
    drawn: dict[str, dict[str, list[Row]]] = {}
    for claim in claims:
        spot, published, ours = claim.get("spot"), _number(claim.get("published")), _number(claim.get("ours"))
        if spot and published is not None and ours is not None:
            series = drawn.setdefault(f"{claim['study']}.{spot['figure']}", {}).setdefault(spot["series"], [])
            pair = (("published", published), ("ours", ours))
            series += [{"x": spot["x"], "over": spot["over"], "by": by, "value": value} for by, value in pair]
    return [
        Picture(name, [_series(name, title, rows) for title, rows in of.items()], columns=min(len(of), 3))
        for name, of in drawn.items()
    ]


def _series(figure: str, title: str, rows: list[Row]) -> Chart:
    """Published and ours side by side; over numbers as curves, over names as points."""
    over_numbers = all(row["x"].isdecimal() for row in rows) and len(rows) > len(BY)
    rows = [{**row, "x": float(row["x"])} for row in rows] if over_numbers else rows
    x = field("x", title=rows[0]["over"]) if over_numbers else field("x", "nominal", None, sort=None, axis=_NAMES)
    values = [row["value"] for row in rows]
    wide = min(values) > 0 and max(values) > WIDE * min(values)
    ticks: Spec = {"values": log_marks(min(values), max(values))} if wide else {"tickCount": 5}
    scale: Spec = {"type": "log"} if wide else {"zero": min(values) >= 0}
    y = field("value", title=title, scale=scale, axis={**SI_AXIS, **ticks, "title": None})
    look = points("by", {"domain": list(BY), "range": [INK, OURS]}, ("circle", "diamond"))
    tip = tips(("x", rows[0]["over"] or "of"), ("by", ""), ("value", title, ".4~g"))
    marks: list[Spec] = [
        {
            "transform": [{"filter": f"datum.by === '{by}'"}],
            "mark": {"type": "point", "filled": filled, "size": size, "opacity": 1},
            "encoding": {"x": x, "y": y, **look, "tooltip": tip},
        }
        for by, filled, size in zip(BY, (False, True), (110, 60), strict=True)
    ]
    line: Spec = {"mark": {"type": "line", "strokeWidth": 1.4}, "encoding": {"x": x, "y": y, "color": look["color"]}}
    spec = chart(*([line] if over_numbers else []), *marks, height=FIGURE_HEIGHT)
    columns = [Column("x", rows[0]["over"] or "of"), Column("by", ""), Column("value", title, "number")]
    return Chart(f"{figure}: {title}", spec, Table(columns, rows))


BY = ("published", "ours")
_NAMES = {"labelAngle": -30, "labelAlign": "right"}


def _around_one(ratios: Sequence[float]) -> Spec:
    """A logarithmic scale with 1 on it; what is far off stands at its end."""
    low, high = min([0.9, *ratios]), max([1.1, *ratios])
    domain = [max(low, 1 / FARTHEST), min(high, FARTHEST)]
    return {"type": "log", "domain": domain, "nice": False, "clamp": True, "padding": 12}


def _number(value: object) -> float | None:
    """A single number, bare or as the `value` of an object."""
    if isinstance(value, dict):
        value = value.get("value")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
