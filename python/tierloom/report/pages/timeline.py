"""What a program has and does over its run: memory by object as it comes and goes, traffic by memory as predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tierloom.columns import Column, Row
from tierloom.policy_columns import bound_text
from tierloom.report.pages.parts import Chart
from tierloom.report.pages.specs import INK, LEGEND, Spec, chart, field, kept_scale, memory_scale, tips
from tierloom.report.pages.specs import OTHERS as GREY
from tierloom.report.table_layout.table import Table
from tierloom.units import binary_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tierloom.nouns import Profile
    from tierloom.schema import ObjectDoc, PredictionDoc

OBJECTS = 7
"""Objects with a colour of their own, the largest; the others are one."""

OTHERS = "others"
STEPS = 60
"""Times at which the others are added up."""

SUDDEN = 1e-6
"""Part of the run between the last moment of an object and the first without it: a picture has one value a moment."""

FLAT = 0.02
"""Memory that changes by less over the run is no picture."""


def largest_first(profile: Profile) -> list[ObjectDoc]:
    """All objects; the first ones have a colour of their own in every chart of a profile."""
    return sorted(profile.data["objects"], key=lambda item: (-item["size_bytes"], item["name"]))


def object_scale(names: Sequence[str], profile: Profile) -> Spec:
    """Colours of objects, each the same in every chart of a profile; the others together are grey."""
    known = {item["name"]: at for at, item in enumerate(largest_first(profile)[:OBJECTS])}
    named = kept_scale([name for name in names if name != OTHERS], known)
    return {"domain": [*named["domain"], OTHERS], "range": [*named["range"], GREY]} if OTHERS in names else named


def memory(profile: Profile) -> list[Chart]:
    """Memory that the program has at each moment, by object; nothing where it has the same all the time."""
    end_s = max(profile.data["program"]["wall_s"], max((item["last_s"] for item in profile.data["objects"]), default=0))
    objects = largest_first(profile)
    if not objects or end_s <= 0:
        return []
    shown, rest = objects[:OBJECTS], objects[OBJECTS:]
    times = _times(shown, rest, end_s)
    held = {item["name"]: resident([item], times) for item in shown}
    if rest:
        held[OTHERS] = resident(rest, times)
    whole = np.sum(list(held.values()), axis=0)
    inside = whole[(times > 0) & (times < end_s)]
    if not inside.size or np.ptp(inside) <= FLAT * whole.max():
        return []
    size, unit = binary_unit(float(whole.max()))
    rows: list[Row] = [
        {"time_s": float(time_s), "object": name, "rank": rank, "amount": float(amount) / size}
        for rank, (name, amounts) in enumerate(held.items())
        for time_s, amount in zip(times, amounts, strict=True)
    ]
    columns = [Column("time_s", "time", "seconds"), Column("object", "object"), Column("amount", unit, "gib")]
    about = (
        "Memory that was touched, by object. Taken as growing evenly from the first touch of an object to its last new "
        "page; an object of several allocations counts with the most it had at once."
    )
    return [
        Chart(
            "Memory over the run",
            _memory_spec(list(held), object_scale(list(held), profile), unit),
            Table(columns, rows),
            about=about,
            wide=True,
        )
    ]


def _times(shown: Sequence[ObjectDoc], rest: Sequence[ObjectDoc], end_s: float) -> npt.NDArray[np.float64]:
    """Where something happens to the objects that are shown, and evenly between if there are others."""
    moments = [time_s for item in shown for time_s in (*_lifetime(item), item["last_s"] + SUDDEN * end_s)]
    evenly = np.linspace(0, end_s, STEPS) if rest else np.array([0.0, end_s])
    times = np.unique(np.concatenate([evenly, np.clip(moments, 0, end_s)]))
    return times.astype(np.float64)


def _lifetime(item: ObjectDoc) -> tuple[float, float, float]:
    """First touch, all pages touched, last release, s."""
    first_s = max(item["first_touch_s"], item["first_s"])
    return first_s, max(item.get("populated_s", first_s), first_s), item["last_s"]


def resident(objects: Sequence[ObjectDoc], times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Bytes that objects have in memory at each time."""
    held = np.zeros(len(times))
    for item in objects:
        first_s, full_s, last_s = _lifetime(item)
        share = np.clip((times - first_s) / (full_s - first_s), 0, 1) if full_s > first_s else times >= first_s
        held += np.where(times <= last_s, share * item["size_bytes"], 0.0)
    return held


def _memory_spec(names: list[str], colours: Spec, unit: str) -> Spec:
    return chart(
        {
            "mark": {"type": "area"},
            "encoding": {
                "x": field("time_s", title="time, s", scale={"nice": False}),
                "y": field("amount", title=unit, stack="zero"),
                "color": field("object", "nominal", None, scale=colours, legend=LEGEND, sort=names),
                "order": {"field": "rank", "type": "quantitative"},
                "tooltip": tips(("object", "object"), ("time_s", "time, s", ".4~g"), ("amount", unit, ".3~g")),
            },
        }
    )


def traffic(told: PredictionDoc) -> list[Chart]:
    """Predicted traffic of each memory from phase to phase, and what limits it; nothing where the run is one phase."""
    phases = told.get("phases", [])
    if len(phases) < 2:
        return []
    names = [tier["memory"] for tier in told["tiers"]]
    used = [at for at, tier in enumerate(told["tiers"]) if tier["gb_s"] > 0]
    rows: list[Row] = []
    start_s = 0.0
    for phase in phases:
        end_s = start_s + phase["time_s"]
        told_of = {"phase": phase["phase"], "start_s": start_s, "end_s": end_s, "bound": bound_text(phase["bound"])}
        base = 0.0
        for at in used:
            top = base + phase["gb_s"][at]
            rows.append({**told_of, "memory": names[at], "gb_s": phase["gb_s"][at], "base": base, "top": top})
            base = top
        start_s = end_s
    if not rows:
        return []
    columns = [
        *(Column("phase", "phase"), Column("start_s", "from", "seconds"), Column("end_s", "to", "seconds")),
        *(Column("bound", "limited by"), Column("memory", "memory"), Column("gb_s", "traffic", "gb_s")),
    ]
    about = "Traffic of each memory under the plan, phase by phase, as long as each is predicted to take."
    return [Chart("The run as predicted", _traffic_spec(names), Table(columns, rows), about=about, wide=True)]


def _traffic_spec(names: list[str]) -> Spec:
    x = field("start_s", title="time, s", scale={"nice": False})
    return chart(
        {
            "mark": {"type": "rect", "clip": True},
            "encoding": {
                "x": x,
                "x2": {"field": "end_s"},
                "y": field("base", title="GB/s"),
                "y2": {"field": "top"},
                "color": field("memory", "nominal", None, scale=memory_scale(names), legend=LEGEND),
                "tooltip": tips(
                    *(("phase", "phase"), ("memory", "memory"), ("gb_s", "GB/s", ".3~g")),
                    *(("bound", "limited by"), ("start_s", "from, s", ".4~g"), ("end_s", "to, s", ".4~g")),
                ),
            },
        },
        {
            "mark": {"type": "rule", "color": INK, "opacity": 0.35, "strokeDash": [2, 3]},
            "encoding": {"x": x},
        },
    )
