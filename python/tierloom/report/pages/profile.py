"""The section of a profile: its objects by stack and size, their pages, waits with intervals, phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.columns import Column, Row
from tierloom.nouns import Profile
from tierloom.nouns.profile_objects import place, traffic
from tierloom.report.pages import flame_graph, heat_maps, timeline
from tierloom.report.pages.parts import Chart, Fact, Notes, Section
from tierloom.report.pages.specs import (
    LEGEND,
    OTHERS,
    OURS,
    bars_height,
    chart,
    chosen_colour,
    dots,
    field,
    names_axis,
    scale,
    tips,
)
from tierloom.report.table_layout.table import Table
from tierloom.report.tables.profiles import caption, every_object
from tierloom.units import bytes_text, count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.nouns.profile_objects import Traffic
    from tierloom.report.pages.sources import Shelf, Source
    from tierloom.schema import ObjectDoc, ShareDoc

ROWS = 16
"""Objects that bars show; the table of every object has all."""

PHASE_OBJECTS = 6


def section(source: Source, shelf: Shelf) -> Section:
    """Which data a program has and how it is touched."""
    profile = shelf.profile(source.data["name"]) if source.noun is None else source.noun
    if not isinstance(profile, Profile):
        message = f"{source.name} is no profile"
        raise TypeError(message)
    totals = traffic(profile.data)
    what, asked = flame_graph.asked_of(profile, totals)
    items = flame_graph.heated(profile.data["objects"], asked)
    return Section(
        kind="profile",
        title=profile.name,
        about=" ".join(profile.data["program"]["command"]),
        facts=_facts(profile, totals),
        charts=[
            flame_graph.flame(items, profile.name, what),
            flame_graph.treemap(items, what),
            *_waits(profile),
            *timeline.memory(profile),
            *heat_maps.over_time(profile),
            *heat_maps.by_share(profile),
            *_phases(profile),
            *_traffic(totals),
        ],
        tables=[every_object(profile, totals)],
        notes=_notes(profile),
    )


def _facts(profile: Profile, totals: Mapping[str, Traffic]) -> list[Fact]:
    program, sampling = profile.data["program"], profile.data.get("sampling")
    carried = sum(total.total_bytes for total in totals.values())
    facts = [
        Fact("data", bytes_text(profile.footprint_bytes), f"in {count_text(len(profile.data['objects']), 'object')}"),
        Fact("run time", seconds_text(program["wall_s"]), f"{_threads(program['threads'])}, {program['cpu']}"),
        Fact("memory traffic", bytes_text(carried), "read and written beyond the last-level cache"),
    ]
    if sampling:
        lost = f", {sampling['lost']:,} lost" if sampling["lost"] else ""
        facts.append(
            Fact("samples", f"{sampling['samples']:,}", f"{sampling['event']} at {sampling['hz']:.0f} Hz{lost}")
        )
    return facts


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count != 1 else ''}"


def _waits(profile: Profile) -> list[Chart]:
    """Shares of samples with their intervals, those of no object too."""
    told: list[tuple[str, ObjectDoc | None, ShareDoc]] = [
        (item["name"], item, item["stall"]) for item in profile.data["objects"] if "stall" in item
    ]
    told += [(rest["name"], None, rest["stall"]) for rest in profile.data.get("unattributed", [])]
    rows: list[Row] = [
        {"name": name, "ours": item is not None, **share, "place": place(item) if item else "no object"}
        for name, item, share in sorted(told, key=lambda each: (-each[2]["share"], each[0]))
    ]
    if not rows:
        return []
    shown = rows[:ROWS]
    spec = chart(
        {
            "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.45, "strokeCap": "round"},
            "encoding": {
                "y": names_axis("name", [row["name"] for row in shown]),
                "x": field("low", title="share of CPU time", axis={"format": ".0%"}),
                "x2": {"field": "high"},
                "color": {"condition": {"test": "datum.ours", "value": OURS}, "value": OTHERS},
            },
        },
        dots(
            70,
            y=names_axis("name", [row["name"] for row in shown]),
            x=field("share"),
            color=chosen_colour(),
            tooltip=tips(
                *(("name", "object"), ("share", "share", ".2%")),
                *(("low", "from", ".2%"), ("high", "to", ".2%"), ("place", "at")),
            ),
        ),
        height=bars_height(len(shown)),
    )
    columns = [
        *(Column("name", "object"), Column("share", "share", "percent"), Column("low", "95 % from", "percent")),
        *(Column("high", "to", "percent"), Column("place", "at", "code")),
    ]
    about = f"{caption(profile)} Bars: 95 % intervals. Grey: samples of no object."
    if len(rows) > len(shown):
        about += f" The {len(shown)} of {len(rows)} with most."
    listed = [*shown, *(row for row in rows[ROWS:] if not row["ours"])]
    return [Chart("What the program waits for", spec, Table(columns, listed), about=about, values=shown)]


def _phases(profile: Profile) -> list[Chart]:
    """Bandwidth over the run by object; nothing when the program does the same all the time."""
    phases = profile.data["phases"]
    if len(phases) < 2:
        return []
    totals = {name: total.total_bytes for name, total in traffic(profile.data).items()}
    named = sorted(totals, key=lambda name: (-totals[name], name))[:PHASE_OBJECTS]
    rows: list[Row] = []
    for phase in phases:
        seconds = max(phase["end_s"] - phase["start_s"], 1e-12)
        carried: dict[str, float] = dict.fromkeys(named, 0.0)
        for access in phase["accesses"]:
            name = access["object"] if access["object"] in named else timeline.OTHERS
            moved = access["dram_read_bytes"] + access["dram_write_bytes"]
            carried[name] = carried.get(name, 0.0) + moved
        base = 0.0
        for name, moved in carried.items():
            top = base + moved / seconds / 1e9
            rows.append(
                {
                    "phase": phase["name"],
                    "start_s": phase["start_s"],
                    "end_s": phase["end_s"],
                    "object": name,
                    "gb_s": top - base,
                    "base": base,
                    "top": top,
                }
            )
            base = top
    shown = [*named, *([timeline.OTHERS] if len(totals) > len(named) else [])]
    return [
        Chart(
            "Phases",
            _phase_spec(timeline.object_scale(shown, profile)),
            Table(_PHASE_COLUMNS, rows),
            about=_PHASES_ABOUT,
            wide=True,
        )
    ]


_PHASES_ABOUT = "Traffic between memory and last-level cache over the run, by object."
_PHASE_COLUMNS = (
    *(Column("phase", "phase"), Column("start_s", "from", "seconds"), Column("end_s", "to", "seconds")),
    *(Column("object", "object"), Column("gb_s", "traffic", "gb_s")),
)


def _phase_spec(colours: dict[str, object]) -> dict[str, object]:
    return chart(
        {
            "mark": {"type": "rect", "clip": True},
            "encoding": {
                "x": field("start_s", title="time, s", scale={"nice": False}),
                "x2": {"field": "end_s"},
                "y": field("base", title="GB/s"),
                "y2": {"field": "top"},
                "color": field("object", "nominal", None, scale=colours, legend=LEGEND),
                "tooltip": tips(("phase", "phase"), ("object", "object"), ("gb_s", "GB/s", ".3~g")),
            },
        }
    )


def _traffic(totals: Mapping[str, Traffic]) -> list[Chart]:
    """Reads and writes of memory by object."""
    ordered = sorted(totals.items(), key=lambda each: (-each[1].total_bytes, each[0]))
    rows: list[Row] = [
        {"object": name, "way": way, "rank": rank, "gb": moved / 1e9, "pattern": total.pattern}
        for name, total in ordered
        for rank, (way, moved) in enumerate((("read", total.read_bytes), ("written", total.write_bytes)))
        if total.total_bytes > 0
    ]
    if not rows:
        return []
    names = list(dict.fromkeys(row["object"] for row in rows))[:ROWS]
    spec = chart(
        {
            "mark": {"type": "bar", "height": {"band": 0.68}},
            "encoding": {
                "y": names_axis("object", names),
                "x": field("gb", title="GB to and from memory"),
                "color": field("way", "nominal", None, scale=scale(["read", "written"]), legend=LEGEND),
                "order": {"field": "rank"},
                "tooltip": tips(("object", "object"), ("way", "way"), ("gb", "GB", ".4~g"), ("pattern", "pattern")),
            },
        },
        height=bars_height(len(names)),
    )
    columns = [
        Column("object", "object"),
        Column("way", "way"),
        Column("gb", "GB", "number"),
        Column("pattern", "pattern"),
    ]
    shown = [row for row in rows if row["object"] in names]
    about = f"The {len(names)} of {len(totals)} objects with most of it." if len(totals) > len(names) else ""
    return [Chart("Memory traffic by object", spec, Table(columns, shown), about=about)]


def _notes(profile: Profile) -> list[Notes]:
    warnings = [warning["text"] for warning in profile.data.get("sampling", {}).get("warnings", [])]
    sources = [f"{key}: {text}" for key, text in profile.data.get("sources", {}).items()]
    found = [Notes("Before you believe it", warnings), Notes("Sources", sources)]
    if percent := profile.data.get("sampling", {}).get("skid_purity"):
        found.insert(
            0,
            Notes(
                "Sampling", [f"{percent_text(percent)} of calibration samples hit one past the stalled instruction."]
            ),
        )
    return [note for note in found if note.lines]
