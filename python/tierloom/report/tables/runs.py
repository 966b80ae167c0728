"""Tables of runs under a plan: what became of every rule, and where pages are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.report.tables.layout import noted, table
from tierloom.units import bytes_text, count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.nouns import Plan
    from tierloom.report.tables.layout import Table
    from tierloom.schema import (
        AppliedDoc,
        NodeMatchDoc,
        PhaseOutcomeDoc,
        ResidencyDoc,
        RuleOutcomeDoc,
        RunDoc,
        SnapshotDoc,
    )


def outcomes(plan: Plan, run: RunDoc) -> list[Table]:
    """What was asked of the kernel for each object, what came of it, and where its pages were."""
    names = node_names(run["memories"])
    predicted = plan.data["predicted"]
    made = table(
        f"Placed by {plan.data['policy']}: {seconds_text(run['wall_s'])}",
        ("object", "left"),
        ("asked for", "left", "key"),
        ("placed", "right", "extra"),
        ("pages were on", "left", "key"),
        ("elsewhere", "right"),
        ("outcome", "left"),
    )
    for rule in run["rules"]:
        seen = rule["residency"]
        made.add_row(
            rule["object"],
            shares_text(rule["asked"], names) or "·",
            bytes_text(rule["bytes"]),
            where_text(seen, names),
            elsewhere_text(seen),
            outcome_text(rule),
        )
    wide = count_text(predicted["threads"], "thread")
    there = f"{seconds_text(predicted['time_s'])} on {plan.data['machine']} with {wide}"
    note = f"Predicted: {there}. {memories_text(run['memories'])}{method(run)}"
    parts: list[Table] = [noted(made, note.rstrip())]
    if run["phases"]:
        parts.append(phases(run["phases"]))
    if run["counters"]:
        parts.append(counters(run["counters"]))
    return parts


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


def elsewhere_text(seen: ResidencyDoc) -> str:
    """Share of the pages that were there and not where the plan wanted them."""
    there = seen["looked"] - seen["absent"]
    return percent_text(seen["elsewhere"] / there) if there else "·"


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
    made = table(
        "Phases",
        ("phase", "left"),
        ("began", "right"),
        ("promised", "right"),
        ("expected cost", "right"),
        ("moved", "right"),
        ("took", "right"),
        ("outcome", "left"),
    )
    for phase in told:
        made.add_row(
            phase["name"],
            *(seconds_text(phase[key]) for key in ("start_s", "gain_s", "expected_s")),
            bytes_text(phase["moved_bytes"]),
            seconds_text(phase["took_s"]),
            phase["skipped"] or "moved",
        )
    return made


def counters(moved: Mapping[str, int]) -> Table:
    """The kernel's counters that moved."""
    made = table("The whole machine's counters meanwhile", ("counter", "left"), ("moved by", "right"))
    for name, by in moved.items():
        made.add_row(name, f"{by:+}")
    return made


def snapshot(seen: SnapshotDoc) -> Table:
    """Where the objects of a running program are."""
    made = table(
        f"After {seconds_text(seen['at_s'])}",
        ("object", "left"),
        ("bytes", "right"),
        ("pages are on", "left"),
        ("elsewhere", "right"),
    )
    for name, where in seen["rules"]:
        if where["objects"]:
            made.add_row(name, bytes_text(where["bytes"]), where_text(where, {}), elsewhere_text(where))
    return made


def applied(done: AppliedDoc) -> Table:
    """What was moved of a running program."""
    made = table(
        f"Process {done['pid']}: moved in {seconds_text(done['took_s'])}",
        ("object", "left"),
        ("there", "right"),
        ("moved", "right"),
        ("outcome", "left"),
    )
    for rule in done["rules"]:
        outcome = "; ".join(rule["problems"]) or (
            count_text(rule["objects"], "object") if rule["objects"] else "none there"
        )
        made.add_row(rule["object"], bytes_text(rule["present_bytes"]), bytes_text(rule["moved_bytes"]), outcome)
    told = memories_text(done["memories"]).rstrip()
    return noted(made, told) if told else made
