"""The sections of a plan's rules, and of a run under them: what was asked for, where pages really were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.columns import Column, Row
from tierloom.nouns import action_text
from tierloom.report.pages.parts import Chart, Fact, Notes, Section
from tierloom.report.pages.specs import bars_height, chart, memory_scale, stacked, tips
from tierloom.report.table_layout.table import Table
from tierloom.report.tables.runs import counters, rules
from tierloom.units import binary_unit, bytes_text, count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from tierloom.report.pages.sources import Shelf, Source
    from tierloom.schema import Action, PlanDoc, RunDoc

BARS = 20
TOUCHED = "first touch"
FRAMES = 3
"""Innermost frames of a call stack that a table shows."""


def section(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Which object goes where."""
    data: PlanDoc = source.data  # type: ignore[assignment] # recognised by its keys
    told = data["predicted"]
    size = sum(rule["size_bytes"] for rule in data["rules"])
    return Section(
        kind="rules",
        title=f"{data['profile']} for {data['machine']}",
        about=f"Policy {data['policy']}. Everything that no rule names: {action_text(data['default'])}.",
        facts=[
            Fact("predicted time", seconds_text(told["time_s"]), f"with {count_text(told['threads'], 'thread')}"),
            Fact("rules", str(len(data["rules"])), f"for {bytes_text(size)}"),
            Fact("nodes", ", ".join(data["nodes"]), "as the plan calls them"),
        ],
        charts=_placed(data),
        tables=[_rules(data)],
    )


def shares(action: Action, nodes: list[str]) -> dict[str, float]:
    """The share of an object's pages that an action asks for on each node; first touch asks for none."""
    if isinstance(action, str):
        return {TOUCHED: 1.0}
    (verb, told), *_ = action.items()
    if isinstance(told, dict):
        weights = {name: float(weight) for name, weight in told.items()}
    elif isinstance(told, str):
        weights = {told: 1.0}
    else:
        weights = dict.fromkeys(told if verb == "interleave" else told[:1], 1.0)
    whole = sum(weights.values()) or 1.0
    return {name: weights[name] / whole for name in [*nodes, *weights] if name in weights}


def _placed(data: PlanDoc) -> list[Chart]:
    rules = sorted(data["rules"], key=lambda rule: (-rule["size_bytes"], rule["object"]))
    if not rules:
        return []
    scale, unit = binary_unit(rules[0]["size_bytes"])
    names = [*data["nodes"], TOUCHED]
    rows: list[Row] = [
        {
            "object": rule["object"],
            "node": node,
            "rank": names.index(node) if node in names else len(names),
            "share": share,
            "amount": share * rule["size_bytes"] / scale,
        }
        for rule in rules
        for node, share in shares(rule["place"], data["nodes"]).items()
    ]
    listed = [rule["object"] for rule in rules[:BARS]]
    colours = memory_scale([name for name in names if any(row["node"] == name for row in rows)])
    tip = tips(("object", "object"), ("node", "asked for"), ("share", "of it", ".0%"), ("amount", unit, ".3~g"))
    spec = chart(
        stacked("object", "amount", "node", colours, title=unit, tooltip=tip, names=listed),
        height=bars_height(len(listed)),
    )
    columns = [
        *(Column("object", "object"), Column("node", "node"), Column("share", "of it", "percent")),
        Column("amount", unit, "number"),
    ]
    shown = [row for row in rows if row["object"] in listed]
    about = "Bytes of each rule by the node that it asks for; where a rule names several in order, the first."
    return [Chart("What goes where", spec, Table(columns, rows), values=shown, about=about, wide=True)]


def _rules(data: PlanDoc) -> Table:
    rows = [
        {
            "object": rule["object"],
            "size": rule["size_bytes"],
            "place": action_text(rule["place"]),
            "select": selector(rule["select"]),
        }
        for rule in data["rules"]
    ]
    columns = [
        *(Column("object", "object"), Column("size", "size", "bytes"), Column("place", "asked of the kernel", "code")),
        Column("select", "found by", "code"),
    ]
    return Table(columns, rows, "Rules")


def selector(select: dict[str, Any]) -> str:
    """How a rule finds its object again."""
    if "stack" in select:
        return " ← ".join(str(frame) for frame in select["stack"][:FRAMES])
    (how, what), *_ = [*select.items(), ("", "")]
    return ":".join(map(str, what.values())) if isinstance(what, dict) else f"{how} {what}"


def run_section(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """What became of a run under a plan."""
    data: RunDoc = source.data  # type: ignore[assignment] # recognised by its keys
    there = sum(rule["residency"]["looked"] - rule["residency"]["absent"] for rule in data["rules"])
    astray = sum(rule["residency"]["elsewhere"] for rule in data["rules"])
    held = sum(rule["held"] for rule in data["rules"])
    return Section(
        kind="run",
        title=source.name,
        about="Where the pages of each rule's objects really were when they were given back or the program ended.",
        facts=[
            Fact("run time", seconds_text(data["wall_s"]), f"{seconds_text(data['cpu_s'])} of CPU time"),
            Fact("rules in force", f"{held} of {len(data['rules'])}"),
            Fact("pages elsewhere", percent_text(astray / there) if there else "none seen", f"of {there:,} looked at"),
            Fact("exit code", str(data["exit_code"])),
        ],
        charts=_resided(data),
        tables=[rules(data, "What became of each rule"), *counters(data["counters"])],
        notes=[Notes("Warnings", [warning["text"] for warning in data["warnings"]])] if data["warnings"] else [],
    )


def _resided(data: RunDoc) -> list[Chart]:
    seen = [rule for rule in data["rules"] if rule["residency"]["by_node"]]
    if not seen:
        return []
    scale, unit = binary_unit(max(sum(rule["residency"]["by_node"].values()) for rule in seen))
    nodes = sorted({node for rule in seen for node in rule["residency"]["by_node"]}, key=int)
    rows: list[Row] = [
        {"object": rule["object"], "node": f"node {node}", "rank": nodes.index(node), "amount": held / scale}
        for rule in seen
        for node, held in rule["residency"]["by_node"].items()
    ]
    listed = list(dict.fromkeys(row["object"] for row in rows))[:BARS]
    tip = tips(("object", "object"), ("node", "node"), ("amount", unit, ".3~g"))
    colours = memory_scale([f"node {node}" for node in nodes])
    spec = chart(
        stacked("object", "amount", "node", colours, title=unit, tooltip=tip, names=listed),
        height=bars_height(len(listed)),
    )
    columns = [Column("object", "object"), Column("node", "node"), Column("amount", unit, "number")]
    return [
        Chart(
            "Where the pages were",
            spec,
            Table(columns, rows),
            values=[r for r in rows if r["object"] in listed],
            wide=True,
        )
    ]
