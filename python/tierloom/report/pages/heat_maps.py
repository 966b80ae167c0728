"""Which pages are touched when: samples by time and place in an object; and how unevenly over a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tierloom.columns import Column, Row
from tierloom.nouns.profile import UNKNOWN_OFFSET
from tierloom.report.pages.label_expressions import by_place
from tierloom.report.pages.parts import Chart
from tierloom.report.pages.specs import Spec, chart, field, heat, names_axis, tips
from tierloom.report.table_layout.table import Table
from tierloom.units import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tierloom.nouns import Profile

OBJECTS = 6
"""Objects that the map shows, those with most samples."""

PLACES = 16
"""Equal parts of each object's bytes."""

FEWEST_TIMES, MOST_TIMES = 20, 60
"""Steps of time: as many as leave a few samples to a cell."""

TO_A_CELL = 2
LEAST_SHARE = 0.01
"""Objects with fewer of the samples are left out."""

EVEN_TOP = 4.0
"""Least top of the colours of hotness: what is touched evenly looks even."""

BAND = 84
"""Height of an object in the map, pixels."""

SHARE_OBJECTS = 14


def over_time(profile: Profile) -> list[Chart]:
    """Samples by time and place in the object; nothing where no samples are at hand."""
    if not profile.has_samples:
        return []
    samples = profile.samples()
    known = samples[(samples["object"] >= 0) & (samples["access"] > 0) & (samples["offset"] != UNKNOWN_OFFSET)]
    if not len(known):
        return []
    shown = [int(index) for index in np.argsort(-np.bincount(known["object"]), kind="stable")[:OBJECTS]]
    shown = [index for index in shown if np.mean(known["object"] == index) >= LEAST_SHARE]
    if not shown:
        return []
    times = min(max(len(known) // (TO_A_CELL * PLACES * len(shown)), FEWEST_TIMES), MOST_TIMES)
    end_ns = max(int(samples["time_ns"].max()), 1)
    rows = [row for band, index in enumerate(shown) for row in _band(profile, known, index, band, (end_ns, times))]
    names = [profile.data["objects"][index]["name"] for index in shown]
    return [
        Chart(
            "Pages over time",
            _map_spec(names),
            Table(_MAP_COLUMNS, rows, note="Cells without a sample are left out."),
            about="Samples that waited for an address, by time and place in the object, of the "
            f"{count_text(len(names), 'object')} with most. Every object is cut into {PLACES} equal parts, "
            "its first byte on top. A sweep is a slope, a hot spot a line.",
            wide=True,
        )
    ]


_MAP_COLUMNS = (
    *(Column("object", "object"), Column("part", "part", "count"), Column("from_s", "from", "seconds")),
    *(Column("to_s", "to", "seconds"), Column("samples", "samples", "count")),
)


def _band(profile: Profile, known: npt.NDArray[np.void], index: int, band: int, clock: tuple[int, int]) -> list[Row]:
    end_ns, times = clock
    mine = known[known["object"] == index]
    item = profile.data["objects"][index]
    size = max(item.get("address_bytes", item["size_bytes"]), 1)
    places = np.minimum(mine["offset"].astype(np.float64) / size, 1 - 1e-9)
    counts, _, _ = np.histogram2d(mine["time_ns"] / end_ns, places, bins=(times, PLACES), range=((0, 1), (0, 1)))
    step_s = end_ns * 1e-9 / times
    return [
        {
            "object": item["name"],
            "part": int(part) + 1,
            "samples": int(counts[time, part]),
            "from_s": float(time * step_s),
            "to_s": float((time + 1) * step_s),
            "top": band + 0.06 + 0.88 * part / PLACES,
            "bottom": band + 0.06 + 0.88 * (part + 1) / PLACES,
        }
        for time, part in np.argwhere(counts > 0)
    ]


def _map_spec(names: Sequence[str]) -> Spec:
    label = by_place(names, "floor(datum.value)")
    return chart(
        {
            "mark": {"type": "rect", "clip": True},
            "encoding": {
                "x": field("from_s", title="time, s", scale={"nice": False, "zero": True}, axis={"grid": False}),
                "x2": {"field": "to_s"},
                "y": field(
                    "top",
                    title="",
                    scale={"domain": [0, len(names)], "reverse": True, "nice": False},
                    axis={
                        "values": [at + 0.5 for at in range(len(names))],
                        "labelExpr": label,
                        "grid": False,
                        "ticks": False,
                        "domain": False,
                    },
                ),
                "y2": {"field": "bottom", "title": None},
                "color": heat("samples", "samples", {"type": "log"}),
                "tooltip": tips(
                    ("object", "object"),
                    ("part", f"part of {PLACES}", "d"),
                    ("from_s", "from, s", ".3f"),
                    ("samples", "samples", ",d"),
                ),
            },
        },
        height=BAND * len(names),
        usermeta={"renderer": "canvas"},
    )


def by_share(profile: Profile) -> list[Chart]:
    """How unevenly each object's pages are touched, from the hottest sixteenth to the coldest."""
    known = [item for item in profile.data["objects"] if item.get("hotness")]
    shown = sorted(known, key=lambda item: (-max(item["hotness"]), item["name"]))[:SHARE_OBJECTS]
    if not shown:
        return []
    rows: list[Row] = [
        {
            "object": item["name"],
            "from": at / len(item["hotness"]),
            "to": (at + 1) / len(item["hotness"]),
            "share": share,
            "times": share * len(item["hotness"]),
        }
        for item in shown
        for at, share in enumerate(item["hotness"])
    ]
    columns = [
        *(Column("object", "object"), Column("from", "pages from", "percent"), Column("to", "to", "percent")),
        *(Column("share", "share of its accesses", "percent"), Column("times", "times the mean", "times")),
    ]
    return [
        Chart(
            "Hot and cold pages",
            _share_spec([item["name"] for item in shown], max([EVEN_TOP, *(row["times"] for row in rows)])),
            Table(columns, rows),
            about="Each object's pages from its hottest to its coldest: an even row is touched evenly, a row that is "
            "bright at its left has few pages that most accesses go to.",
        )
    ]


def _share_spec(names: Sequence[str], top: float) -> Spec:
    return chart(
        {
            "mark": {"type": "rect"},
            "encoding": {
                "x": field("from", title="pages, hottest first", scale={"domain": [0, 1]}, axis=_SHARE_AXIS),
                "x2": {"field": "to"},
                "y": names_axis("object", names, scale={"paddingInner": 0.2}),
                "color": heat("times", "accesses, times the mean", {"domain": [0, top]}),
                "tooltip": tips(("object", "object"), ("from", "pages from", ".0%"), ("share", "share", ".1%")),
            },
        },
        height=max(len(names), 2) * 30,
    )


_SHARE_AXIS = {"format": ".0%", "grid": False, "tickCount": 5}
