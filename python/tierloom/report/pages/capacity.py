"""The sections of data that does not fit: time against memory, and what purchases of memory cost and bring."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tierloom.columns import Column, Row
from tierloom.report.pages.parts import Chart, Fact, Picture, Section
from tierloom.report.pages.specs import (
    COLOURS,
    INK,
    OTHERS,
    OURS,
    chart,
    dots,
    field,
    line_with_dots,
    marked,
    points,
    tips,
)
from tierloom.report.pages.specs import scale as colours_of
from tierloom.report.table_layout.table import Table
from tierloom.units import bytes_text, count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.report.pages.sources import Shelf, Source

    Data = Mapping[str, Any]

STEPS = 120
"""Points of the model's curve."""

MARGIN = 1.15
"""Of an axis over the largest amount and under the least."""

HEIGHT = 300
UNSEEN = "predicted, this memory not seen"


def fitted(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """A few runs, and the model of them."""
    data = source.data
    return Section(
        kind="data that spills",
        title=data["runs"],
        about=_error(data),
        facts=[Fact("runs", str(len(data["points"]))), Fact("largest error", percent_text(data["spread"]))],
        charts=_fitted(data),
    )


def picture_of_fit(data: Data) -> Picture:
    """Both charts of a fit."""
    return Picture(data["runs"], _fitted(data), about=_error(data))


def _error(data: Data) -> str:
    tested = any(point["unseen_s"] is not None for point in data["points"])
    return f"Largest error on memory that the fit has {'not ' if tested else ''}seen: {percent_text(data['spread'])}."


def _fitted(data: Data) -> list[Chart]:
    rows: list[Row] = [
        {**point, "streams": _streams(point), "gb": point["storage_bytes"] / 1e9} for point in data["points"]
    ]
    return [_times(data, rows), *([_traffic(rows)] if any(row["gb"] for row in rows) else [])]


def _streams(point: Data) -> str:
    return count_text(point["streams"], "stream")


def _times(data: Data, rows: Sequence[Row]) -> Chart:
    """Measured time against memory, and the model's curve."""
    # The models of data that spills take a package that most readers of pages do without.
    from tierloom.capacity.spill import Spill

    told = data["model"]
    spill = Spill(**{**told, "working_set_bytes": told["working_set_bytes"] or math.inf})
    sizes = [row["memory_bytes"] for row in rows]
    curve: list[Row] = [
        {
            "memory_bytes": size,
            "model_s": spill.seconds(size, count),
            "streams": count_text(count, "stream"),
            "curve": True,
        }
        for count in dict.fromkeys(point["streams"] for point in data["points"])
        for size in np.geomspace(min(sizes) / MARGIN, max(sizes) * MARGIN, STEPS).tolist()
    ]
    kinds = list(dict.fromkeys(row["streams"] for row in rows))
    look = points("kind", {"domain": [*kinds, UNSEEN], "range": [*colours_of(kinds)["range"], INK]})
    x = _memory(sizes)
    tip = tips(
        *(("streams", "streams"), ("memory", "memory"), ("seconds", "measured, s", ".4~g")),
        *(("model_s", "by the model, s", ".4~g"), ("unseen_s", "not having seen it, s", ".4~g")),
    )
    spec = chart(
        {
            "transform": [{"filter": "datum.curve"}],
            "mark": {"type": "line", "strokeWidth": 1.8},
            "encoding": {
                "x": x,
                "y": field("model_s", title="time, s", scale={"zero": True}),
                "color": {**look["color"], "field": "streams"},
            },
        },
        {
            "transform": [{"filter": "!datum.curve"}, {"calculate": "datum.streams", "as": "kind"}],
            **dots(60, x=x, y=field("seconds"), **look, tooltip=tip),
        },
        {
            "transform": [{"filter": "isValid(datum.unseen_s)"}, {"calculate": f"'{UNSEEN}'", "as": "kind"}],
            "mark": {"type": "point", "size": 60, "strokeWidth": 1.6, "opacity": 1},
            "encoding": {"x": x, "y": field("unseen_s"), **look},
        },
        height=HEIGHT,
    )
    columns = [
        *(Column("memory_bytes", "memory", "bytes"), Column("streams", "streams")),
        *(Column("seconds", "measured", "seconds"), Column("model_s", "by the model", "seconds")),
        Column("unseen_s", "not having seen it", "seconds"),
    ]
    named = [{**row, "memory": bytes_text(row["memory_bytes"])} for row in rows]
    about = "Line: the model. Points: medians of runs."
    return Chart("Time against memory", spec, Table(columns, rows), values=[*named, *curve], about=about)


def _traffic(rows: Sequence[Row]) -> Chart:
    look = points("streams", colours_of(dict.fromkeys(row["streams"] for row in rows)))
    x, y = _memory([row["memory_bytes"] for row in rows]), field("gb", title="GB", scale={"zero": True})
    spec = chart(
        *line_with_dots(x, y, look, tips(("streams", "streams"), ("gb", "GB", ".3~g")), width=1),
        height=HEIGHT,
    )
    columns = [
        *(Column("memory_bytes", "memory", "bytes"), Column("streams", "streams")),
        Column("gb", "GB read and written", "number"),
    ]
    return Chart("Storage traffic", spec, Table(columns, rows), about="Read and written, all streams.")


def _memory(sizes: Sequence[float]) -> dict[str, Any]:
    """An axis of memory with a mark at each power of two."""
    least, most = min(sizes) / MARGIN, max(sizes) * MARGIN
    powers = range(math.ceil(math.log2(least)), math.floor(math.log2(most)) + 1)
    scale = {"type": "log", "base": 2, "domain": [least, most], "nice": False}
    return field("memory_bytes", title="memory", scale=scale, axis=marked([2.0**power for power in powers], bytes_text))


def purchases(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """What purchases of memory cost and bring."""
    data = source.data
    return Section(
        kind="data that spills",
        title="Purchases of memory",
        about=_chosen(data),
        facts=[
            Fact("chosen", _amounts(data["chosen"]), f"{data['chosen']['usd']:.4g} USD"),
            Fact("it takes", seconds_text(data["chosen"]["seconds"]), count_text(data["streams"], "stream")),
        ],
        charts=[_costs(data)],
    )


def picture_of_purchases(data: Data, name: str) -> Picture:
    """The one chart of purchases."""
    return Picture(name, [_costs(data)], about=_chosen(data), columns=1)


def _chosen(data: Data) -> str:
    mix = data["chosen"]
    return f"Chosen: {_amounts(mix)} for {mix['usd']:.4g} USD, {mix['results_h']:.4g} results an hour."


def _amounts(mix: Data) -> str:
    cxl = f" and {bytes_text(mix['cxl_bytes'])} of CXL memory" if mix["cxl_bytes"] else ""
    return f"{bytes_text(mix['dram_bytes'])} of DRAM{cxl}"


PLAIN, MIXED, CHOSEN = "DRAM alone", "with CXL memory", "chosen"


def _costs(data: Data) -> Chart:
    """Cost against results; the line is what no cheaper purchase beats."""
    rows: list[Row] = [
        {
            **{key: mix[key] for key in ("dram_bytes", "cxl_bytes", "seconds", "results_h", "usd")},
            "memory": _amounts(mix),
            "kind": CHOSEN if mix == data["chosen"] else MIXED if mix["cxl_bytes"] else PLAIN,
        }
        for mix in data["purchases"]
    ]
    x, y = (
        field("usd", title="USD", scale={"zero": False, "padding": 12}),
        field("results_h", title="results an hour", scale={"zero": True}),
    )
    look = points(
        "kind", {"domain": [PLAIN, MIXED, CHOSEN], "range": [OTHERS, COLOURS[0], OURS]}, ("circle", "square", "diamond")
    )
    best = {"window": [{"op": "max", "field": "results_h", "as": "best"}], "sort": [{"field": "usd"}]}
    spec = chart(
        {
            "transform": [best],
            "mark": {"type": "line", "interpolate": "step-after", "color": OTHERS, "strokeWidth": 1},
            "encoding": {"x": x, "y": field("best")},
        },
        {
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {
                "x": x,
                "y": y,
                **look,
                "size": {"condition": {"test": f"datum.kind === '{CHOSEN}'", "value": 150}, "value": 60},
                "tooltip": tips(("memory", "memory"), ("usd", "USD", ".4~g"), ("results_h", "results an hour", ".4~g")),
            },
        },
        height=HEIGHT,
    )
    columns = [
        *(
            Column("dram_bytes", "DRAM", "bytes"),
            Column("cxl_bytes", "CXL memory", "bytes"),
            Column("usd", "USD", "number"),
        ),
        *(Column("seconds", "time", "seconds"), Column("results_h", "results an hour", "number"), Column("kind", "")),
    ]
    return Chart(
        "What memory costs and brings", spec, Table(columns, rows), about="Line: the most for the money.", wide=True
    )
