"""Tables of runs under a plan: what became of every rule, and where pages are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.columns import Column
from tierloom.report.table_layout.table import Table, noted
from tierloom.units import count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.columns import Row
    from tierloom.nouns import Plan
    from tierloom.schema import (
        AppliedDoc,
        AppliedRuleDoc,
        NodeMatchDoc,
        PhaseOutcomeDoc,
        ResidencyDoc,
        RuleOutcomeDoc,
        RunDoc,
        SnapshotDoc,
    )


def outcomes(plan: Plan, run: RunDoc) -> list[Table]:
    """What was asked of the kernel for each object, what came of it, and where its pages were."""
    predicted = plan.data["predicted"]
    wide = count_text(predicted["threads"], "thread")
    there = f"{seconds_text(predicted['time_s'])} on {plan.data['machine']} with {wide}"
    note = f"Predicted: {there}. {memories_text(run['memories'])}{method(run)}"
    made = rules(run, f"Placed by {plan.data['policy']}: {seconds_text(run['wall_s'])}")
    moved = [phases(run["phases"])] if run["phases"] else []
    return [noted(made, note.rstrip()), *moved, *counters(run["counters"])]


RULES = (
    *(
        Column("object", "object"),
        Column("asked", "asked for", rank="key"),
        Column("bytes", "placed", "bytes", "extra"),
    ),
    *(Column("where", "pages were on", rank="key"), Column("elsewhere", "elsewhere", "percent")),
    Column("outcome", "outcome"),
)


def rules(run: RunDoc, title: str) -> Table:
    """What became of every rule."""
    names = node_names(run["memories"])
    rows = [
        {
            **{key: rule[key] for key in ("object", "bytes")},
            "asked": shares_text(rule["asked"], names) or None,
            **_pages(rule["residency"], names),
            "outcome": outcome_text(rule),
        }
        for rule in run["rules"]
    ]
    return Table(RULES, rows, title)


def node_names(memories: Sequence[NodeMatchDoc]) -> dict[int, str]:
    """The plan's names of this machine's nodes; all of them, as in `dram/cxl`, where a rehearsal put several on one."""
    names: dict[int, str] = {}
    for match in memories:
        node, name = match["node"], match["memory"]
        names[node] = f"{names[node]}/{name}" if node in names else name
    return names


def memories_text(memories: Sequence[NodeMatchDoc]) -> str:
    """Which memory is which node, in one sentence; nothing where the plan uses none."""
    each = [f"{match['memory']} is node {match['node']} ({match['kind']}, {match['because']})" for match in memories]
    return f"Here {', '.join(each)}. " if each else ""


def method(run: RunDoc) -> str:
    """How pages were looked at, in one sentence; nothing where none were."""
    seen = [rule["residency"] for rule in run["rules"] if rule["residency"]["looked"]]
    if not seen:
        return ""
    pages = sum(each["bytes"] for each in seen) // 4096
    looked = sum(each["looked"] for each in seen)
    stale = max(each["stale_s"] for each in seen)
    how = "all pages" if looked >= pages else f"{looked} of {pages} pages, one of each of as many equal parts"
    late = f"; some were last seen {seconds_text(stale)} before the end" if stale > 0 else ""
    return f"Asked about {how}, when objects were given back or the program ended (move_pages){late}."


def shares_text(shares: Mapping[str, float], names: Mapping[int, str]) -> str:
    """`dram 75 %, cxl 25 %`."""
    return ", ".join(f"{names.get(int(node), f'node {node}')} {percent_text(share)}" for node, share in shares.items())


def where_text(seen: ResidencyDoc, names: Mapping[int, str]) -> str:
    """Where pages were, in shares of those that were there."""
    total = sum(seen["by_node"].values())
    if not total:
        return "never touched" if seen["looked"] else "·"
    return shares_text({node: bytes_ / total for node, bytes_ in seen["by_node"].items()}, names)


def _pages(seen: ResidencyDoc, names: Mapping[int, str]) -> Row:
    """Where pages were, and the share of those that were there and not where the plan wanted them."""
    there = seen["looked"] - seen["absent"]
    return {"where": where_text(seen, names), "elsewhere": seen["elsewhere"] / there if there else None}


def outcome_text(rule: RuleOutcomeDoc) -> str:
    """What became of a rule, in words."""
    if rule["problems"]:
        return "; ".join(rule["problems"])
    if rule["ranges"]:
        means = ", ".join(name for name in rule["how"] if name != "policy")
        how = f" by {means}" if means else ""
        locked = ", locked" if rule["locked"] else ""
        return (f"held for {rule['ranges']} ranges" if rule["ranges"] > 1 else "held") + how + locked
    if rule["object"] == "default":
        return "in force" if rule["held"] else "not in force"
    return "never asked for"


def phases(told: list[PhaseOutcomeDoc]) -> Table:
    """What became of the plan's phases."""
    columns = [
        *(Column("name", "phase"), Column("start_s", "began", "seconds"), Column("gain_s", "promised", "seconds")),
        *(Column("expected_s", "expected cost", "seconds"), Column("moved_bytes", "moved", "bytes")),
        *(Column("took_s", "took", "seconds"), Column("outcome", "outcome")),
    ]
    return Table(columns, [{**phase, "outcome": phase["skipped"] or "moved"} for phase in told], "Phases")


def counters(moved: Mapping[str, int]) -> list[Table]:
    """The kernel's counters that moved, if any did."""
    columns = [Column("counter", "counter", "code"), Column("by", "moved by", "more")]
    rows = [{"counter": name, "by": by} for name, by in moved.items()]
    return [Table(columns, rows, "The whole machine's counters meanwhile")] if rows else []


def snapshot(seen: SnapshotDoc) -> Table:
    """Where the objects of a running program are."""
    columns = [
        *(Column("object", "object"), Column("bytes", "bytes", "bytes")),
        *(Column("where", "pages are on"), Column("elsewhere", "elsewhere", "percent")),
    ]
    rows = [
        {"object": name, "bytes": told["bytes"], **_pages(told, {})} for name, told in seen["rules"] if told["objects"]
    ]
    return Table(columns, rows, f"After {seconds_text(seen['at_s'])}")


def applied(done: AppliedDoc) -> Table:
    """What was moved of a running program."""
    columns = [
        *(Column("object", "object"), Column("present_bytes", "there", "bytes")),
        *(Column("moved_bytes", "moved", "bytes"), Column("outcome", "outcome")),
    ]
    rows = [{**rule, "outcome": _applied_text(rule)} for rule in done["rules"]]
    title = f"Process {done['pid']}: moved in {seconds_text(done['took_s'])}"
    return Table(columns, rows, title, memories_text(done["memories"]).rstrip())


def _applied_text(rule: AppliedRuleDoc) -> str:
    there = count_text(rule["objects"], "object") if rule["objects"] else "none there"
    return "; ".join(rule["problems"]) or there
