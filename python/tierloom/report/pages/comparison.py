"""The section of a plan's comparison: policies, the frontier, what moves where, what memories do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tierloom.columns import Column, Row
from tierloom.nouns.profile_objects import traffic
from tierloom.policy_columns import bound_text
from tierloom.report import verdicts
from tierloom.report.pages import budget, memory_loads, timeline
from tierloom.report.pages.flame_graph import asked_of
from tierloom.report.pages.parts import Chart, Fact, Notes, Picture, Section
from tierloom.report.pages.specs import (
    INK,
    OURS,
    Spec,
    bars_height,
    chart,
    chosen_colour,
    field,
    labels,
    memory_scale,
    names_axis,
    room,
    stacked,
    tips,
)
from tierloom.report.table_layout.table import Table
from tierloom.report.tables.plans import placed, places, policies, sizes_of
from tierloom.units import binary_unit, bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.policy_search import Comparison
    from tierloom.report.pages.sources import Shelf, Source
    from tierloom.schema import ComparisonDoc, PolicyDoc

BARS = 14
"""Policies that bars compare; the table has all."""

OBJECTS = 16
SLIDER_STEPS = 200
HEADROOM = 1.6
"""Height of the frontier's picture over the frontier: policies above would flatten it."""

PLAIN = "local"
"""First touch, which is what the kernel does when nobody asks it for anything: what a plan is held against."""

TOUCH = "first touch"


def section(source: Source, shelf: Shelf) -> Section:
    """Every policy on one program and machine, and what was chosen."""
    data: ComparisonDoc = source.data  # type: ignore[assignment] # recognised by its keys
    chosen = {policy["policy"]: policy for policy in data["policies"]}[data["chosen"]]
    told = chosen["prediction"]
    table, sizes = policies(data), _sizes(shelf, data["profile"])
    charts = [_policies(data, table), _frontier(data, table.rows), *_by_budget(data, shelf)]
    if sizes:
        charts += [_places(data, chosen, sizes), *_moves(data, chosen, sizes)]
    return Section(
        kind="plan",
        title=f"{data['profile']} on {data['machine']}",
        about=f"{count_text(data['threads'], 'thread')} on {data['socket']}, "
        f"at most {bytes_text(data['budget_bytes'])} of {data['fast_memory']}. "
        f"Chosen: {data['chosen']}, {chosen['about']}.",
        facts=_facts(data, chosen),
        charts=[*charts, *timeline.traffic(told), *memory_loads.charts(told)],
        tables=[
            replace(places(data, chosen, placed(chosen, sizes)), title=f"Every object under {data['chosen']}"),
            replace(table, title="Every policy"),
        ],
        notes=[Notes("What this rests on", told["assumptions"])],
    )


def picture(answer: Comparison) -> Picture:
    """The policies, and time against fast memory, under the answer in a sentence."""
    data = answer.brief
    table = policies(data)
    title = f"{data['profile']} on {data['machine']}, {count_text(data['threads'], 'thread')}"
    charts = [_policies(data, table), _frontier(data, table.rows)]
    return Picture(title, charts, about=verdicts.verdict(answer))


def _sizes(shelf: Shelf, name: str) -> dict[str, int]:
    profile = shelf.profile(name)
    return sizes_of(profile) if profile else {}


def _by_budget(data: ComparisonDoc, shelf: Shelf) -> list[Chart]:
    profile = shelf.profile(data["profile"])
    if profile is None:
        return []
    what, asked = asked_of(profile, traffic(profile.data))
    return budget.by_budget(data, profile.data["objects"], what, asked)


def _facts(data: ComparisonDoc, chosen: PolicyDoc) -> list[Fact]:
    told = chosen["prediction"]
    facts = [
        Fact(
            "predicted time",
            seconds_text(told["time_s"]),
            f"{seconds_text(told['low_s'])} to {seconds_text(told['high_s'])}",
        ),
        Fact("policy", data["chosen"], f"limited by {bound_text(told['bound'])}"),
        Fact(
            f"{data['fast_memory']} used",
            bytes_text(chosen["fast_bytes"]),
            f"of {bytes_text(data['budget_bytes'])} allowed",
        ),
    ]
    plain = next((policy for policy in data["policies"] if policy["policy"] == PLAIN and "prediction" in policy), None)
    if plain is not None and plain is not chosen:
        gain = plain["prediction"]["time_s"] / told["time_s"]
        facts.append(
            Fact(f"against {TOUCH}", f"{gain:.2f}x", f"it takes {seconds_text(plain['prediction']['time_s'])}")
        )
    return facts


def _policies(data: ComparisonDoc, table: Table) -> Chart:
    rows = [row for row in table.rows if row["time_s"] is not None]
    shown = rows[:BARS]
    names = [row["policy"] for row in shown]
    spec = chart(
        {
            "mark": {"type": "bar", "height": {"band": 0.66}, "cornerRadiusEnd": 3},
            "encoding": {
                "y": names_axis("policy", names, standing_out=data["chosen"]),
                "x": field("time_s", title="predicted time, s", scale=room([row["high_s"] for row in shown])),
                "color": chosen_colour(),
                "tooltip": tips(
                    *(("policy", "policy"), ("time_s", "time, s", ".4~g"), ("low_s", "from", ".4~g")),
                    *(("high_s", "to", ".4~g"), ("against", "against chosen", ".2f"), ("bound", "limited by")),
                ),
            },
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.75},
            "encoding": {
                "y": names_axis("policy", names),
                "x": field("low_s"),
                "x2": {"field": "high_s"},
                "color": {"value": INK},
            },
        },
        labels("format(datum.against, '.2f') + 'x'", x=field("high_s"), y=names_axis("policy", names)),
        height=bars_height(len(shown)),
    )
    slower = len(rows) - len(shown)
    more = f" {slower} slower ones are in the table." if slower else ""
    about = f"Bar: time. Line: what the assumptions leave open. Number: time over that of {data['chosen']}.{more}"
    listed = Table([column for column in table.seen if column.rank != "page"], rows)
    return Chart("Time by policy", spec, listed, values=shown, about=about)


def _frontier(data: ComparisonDoc, policies: Sequence[Row]) -> Chart:
    scale, unit = binary_unit(max(point["fast_bytes"] for point in data["frontier"]))
    line: list[Row] = [
        {
            "what": "least time",
            "amount": point["fast_bytes"] / scale,
            "time_s": point["time_s"],
            "slowdown": point["slowdown"] - 1,
        }
        for point in data["frontier"]
    ]
    slowest = max((row["time_s"] for row in line), default=1.0)
    dots = [
        {
            "what": row["policy"],
            "amount": row["fast_bytes"] / scale,
            "time_s": row["time_s"],
            "ours": row["ours"],
            "dot": True,
        }
        for row in policies
        if row["time_s"] is not None
    ]
    dots.sort(key=lambda row: bool(row["ours"]))
    top = min(HEADROOM * slowest, 1.05 * max(row["time_s"] for row in [*line, *dots]))
    tip = tips(
        ("what", "policy"), ("amount", f"{unit} of {data['fast_memory']}", ".3~f"), ("time_s", "time, s", ".4~g")
    )
    x = field("amount", title=f"{data['fast_memory']} used, {unit}", scale={"nice": False, "padding": 8})
    y = field("time_s", title="time, s", scale={"domain": [0, top]})
    dot = {
        "mark": {"type": "point", "filled": True, "clip": True, "opacity": 0.9},
        "transform": [{"filter": "datum.dot"}],
        "encoding": {
            "x": x,
            "y": y,
            "color": chosen_colour(),
            "tooltip": tip,
            "size": {"condition": {"test": "datum.ours", "value": 150}, "value": 45},
            "shape": {"condition": {"test": "datum.ours", "value": "diamond"}, "value": "circle"},
        },
    }
    most = max(row["amount"] for row in line)
    budget = min(data["budget_bytes"] / scale, most)
    spec = chart(
        {
            "mark": {"type": "rule", "strokeDash": [3, 3], "color": INK},
            "data": {"values": [{}]},
            "transform": [{"calculate": "budget", "as": "amount"}],
            "encoding": {"x": field("amount")},
        },
        {
            "mark": {"type": "line", "color": OURS, "strokeWidth": 2.5, "clip": True},
            "transform": [{"filter": "!datum.dot"}],
            "encoding": {"x": x, "y": y},
        },
        dot,
        _time_at_budget(unit, most),
        params=[_budget(f"{data['fast_memory']}, {unit}: ", budget, most)],
    )
    above = sum(row["time_s"] > top for row in dots)
    more = f" {above} slower ones are above the picture." if above else ""
    columns = [
        *(Column("what", "what"), Column("amount", f"{data['fast_memory']}, {unit}", "gib")),
        *(Column("time_s", "time", "seconds"), Column("slowdown", "over the least time", "percent")),
    ]
    return Chart(
        f"What {data['fast_memory']} buys",
        spec,
        Table(columns, [*line, *dots]),
        about=f"Line: least time for each amount. Dots: policies. Dotted: what is allowed.{more}",
        moves="Drag the slider to read other amounts off, straight from point to point.",
    )


def _budget(name: str, value: float, most: float) -> Spec:
    """A slider over amounts of fast memory."""
    step = max(most, 1e-9) / SLIDER_STEPS
    return {
        "name": "budget",
        "value": value,
        "bind": {"input": "range", "min": 0, "max": most, "step": step, "name": name},
    }


def _time_at_budget(unit: str, most: float) -> Spec:
    """The least time where the slider stands, beside the line."""
    along = "datum.time_s + (datum.later - datum.time_s) * (budget - datum.amount) / (datum.next - datum.amount)"
    behind = [{"op": "lead", "field": "amount", "as": "next"}, {"op": "lead", "field": "time_s", "as": "later"}]
    right = f"budget > {most / 2}"
    # More memory takes less time: above the line on the left, below it on the right, the label stands clear.
    beside = {"align": "'right' : 'left'", "dx": "-6 : 6", "dy": "18 : -10"}
    return {
        "mark": {
            "type": "text",
            "fontWeight": "bold",
            "fontSize": 12,
            **{key: {"expr": f"{right} ? {either}"} for key, either in beside.items()},
        },
        "transform": [
            {"filter": "!datum.dot"},
            {"window": behind, "sort": [{"field": "amount"}]},
            {"filter": "datum.amount <= budget && (!isValid(datum.next) || budget < datum.next)"},
            {"calculate": "budget", "as": "there"},
            {"calculate": f"isValid(datum.next) ? {along} : datum.time_s", "as": "at"},
            {"calculate": f"format(datum.at, '.4~g') + ' s at ' + format(budget, '.3~g') + ' {unit}'", "as": "label"},
        ],
        "encoding": {
            "x": field("there"),
            "y": field("at"),
            "text": {"field": "label"},
            "color": {"value": INK},
        },
    }


def _places(data: ComparisonDoc, chosen: PolicyDoc, sizes: dict[str, int]) -> Chart:
    told = chosen["prediction"]
    names = [tier["memory"] for tier in told["tiers"]]
    waits = {use["object"]: use for use in told["objects"]}
    listed = _largest(chosen, sizes)
    scale, unit = binary_unit(sizes[listed[0]])
    rows: list[Row] = [
        {
            "object": use["object"],
            "memory": memory,
            "rank": rank,
            "share": share,
            "amount": share * sizes.get(use["object"], 0) / scale,
            "stall": waits[use["object"]]["share"],
        }
        for use, shares in zip(told["objects"], chosen["fractions"], strict=True)
        for rank, (memory, share) in enumerate(zip(names, shares, strict=True))
        if share > 0
    ]
    tip = tips(
        ("object", "object"),
        ("memory", "memory"),
        ("share", "of it", ".0%"),
        ("amount", unit, ".3~g"),
        ("stall", "of the time", ".1%"),
    )
    spec = chart(
        stacked("object", "amount", "memory", _used(names, rows), title=unit, tooltip=tip, names=listed),
        height=bars_height(len(listed)),
    )
    columns = [
        *(Column("object", "object"), Column("memory", "memory"), Column("share", "of it", "percent")),
        *(Column("amount", unit, "gib"), Column("stall", "waits, of the time", "percent")),
    ]
    shown = [row for row in rows if row["object"] in listed]
    about = f"Each object's bytes by memory under {data['chosen']}, the {len(listed)} largest of {len(sizes)} objects."
    return Chart("Where the data goes", spec, Table(columns, shown), about=about)


def _used(names: Sequence[str], rows: Sequence[Row]) -> dict[str, Any]:
    """Colours of the memories that have anything, as they are elsewhere."""
    used = {row["memory"] for row in rows}
    colours = memory_scale(names)
    kept = [each for each in zip(colours["domain"], colours["range"], strict=True) if each[0] in used]
    return {"domain": [name for name, _ in kept], "range": [colour for _, colour in kept]}


def _largest(chosen: PolicyDoc, sizes: dict[str, int]) -> list[str]:
    objects = [use["object"] for use in chosen["prediction"]["objects"]]
    return sorted(objects, key=lambda name: (-sizes.get(name, 0), name))[:OBJECTS]


def _moves(data: ComparisonDoc, chosen: PolicyDoc, sizes: dict[str, int]) -> list[Chart]:
    """What the plan puts elsewhere than first touch does."""
    plain = next((each for each in data["policies"] if each["policy"] == PLAIN and "prediction" in each), None)
    if plain is None or plain is chosen:
        return []
    told = chosen["prediction"]
    names = [tier["memory"] for tier in told["tiers"]]
    scale, unit = binary_unit(max(sizes.values()))
    rows: list[Row] = []
    for use, new, old in zip(told["objects"], chosen["fractions"], plain["fractions"], strict=True):
        for rank, (memory, after, before) in enumerate(zip(names, new, old, strict=True)):
            moved = (after - before) * sizes.get(use["object"], 0) / scale
            if abs(after - before) > 1e-3:
                rows.append(
                    {
                        "object": use["object"],
                        "memory": memory,
                        "rank": rank,
                        "before": before,
                        "after": after,
                        "amount": moved,
                    }
                )
    if not rows:
        return []
    listed = [name for name in _largest(chosen, sizes) if any(row["object"] == name for row in rows)]
    tip = tips(
        *(("object", "object"), ("memory", "memory"), ("before", f"under {TOUCH}", ".0%")),
        *(("after", "planned", ".0%"), ("amount", f"{unit} more here", "+.3~g")),
    )
    bars = stacked(
        "object",
        "amount",
        "memory",
        _used(names, rows),
        title=f"{unit} moved in (right) and out (left)",
        tooltip=tip,
        names=listed,
    )
    spec = chart(
        bars,
        {
            "mark": {"type": "rule", "color": INK, "opacity": 0.6},
            "data": {"values": [{"zero": 0}]},
            "encoding": {"x": field("zero")},
        },
        height=bars_height(len(listed)),
    )
    columns = [
        *(Column("object", "object"), Column("memory", "memory"), Column("before", f"under {TOUCH}", "percent")),
        *(Column("after", "planned", "percent"), Column("amount", f"{unit} more here", "gib")),
    ]
    shown = [row for row in rows if row["object"] in listed]
    about = f"Against {TOUCH}: to the right, data that the plan adds to a memory, to the left, data that it takes away."
    return [Chart("What the plan moves", spec, Table(columns, rows), values=shown, about=about)]
