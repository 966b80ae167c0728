"""Tables of plans: what each policy brings, where each object goes, what fast memory buys."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tierloom.nouns import FIRST_TOUCH, action_text
from tierloom.report.tables.layout import noted, table
from tierloom.report.tables.profiles import ROWS
from tierloom.units import bytes_text, count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.policy_search import Comparison
    from tierloom.report.tables.layout import Table
    from tierloom.schema import (
        Action,
        ComparisonDoc,
        ObjectDoc,
        ObjectUseDoc,
        PhasePredictionDoc,
        PolicyDoc,
        PredictionDoc,
    )

FRONTIER_ROWS = 9
"""Points of the frontier that a table shows; the pictures show all."""


def policies(comparison: Comparison) -> Table:
    """Every policy, the fastest first, those that cannot be used last."""
    data = comparison.brief
    made = table(
        f"{data['profile']} on {data['machine']}, {count_text(data['threads'], 'thread')} on {data['socket']}, "
        f"at most {bytes_text(data['budget_bytes'])} of {data['fast_memory']}",
        ("policy", "left"),
        ("time", "right", "key"),
        ("range", "right"),
        ("against chosen", "right", "extra"),
        (f"{data['fast_memory']} used", "right", "key"),
        ("what limits it", "left"),
    )
    best = comparison.chosen["prediction"]["time_s"]
    for policy in ordered(data):
        style = "bold green" if policy["policy"] == data["chosen"] else None
        made.add_row(*_policy_cells(policy, best), style=style)
        if "prediction" not in policy:
            made.add_reason(policy["policy"], f"not possible: {reason_text(policy['refused'])}")
    about = f"{data['chosen']}: {comparison.chosen['about']}."
    return noted(made, f"range: what the assumptions leave open. {about}")


def ordered(comparison: ComparisonDoc) -> list[PolicyDoc]:
    """Policies by time, the chosen one first among equals, unusable ones last."""

    def key(policy: PolicyDoc) -> tuple[float, bool, str]:
        time = policy["prediction"]["time_s"] if "prediction" in policy else float("inf")
        return time, policy["policy"] != comparison["chosen"], policy["policy"]

    return sorted(comparison["policies"], key=key)


def _policy_cells(policy: PolicyDoc, best: float) -> list[str]:
    if "prediction" not in policy:
        return [policy["policy"], "-", "", "", "", "not possible"]
    answer = policy["prediction"]
    return [
        policy["policy"],
        seconds_text(answer["time_s"]),
        f"{seconds_text(answer['low_s'])} to {seconds_text(answer['high_s'])}",
        f"{answer['time_s'] / best:.2f}x" if best > 0 else "",
        bytes_text(policy["fast_bytes"]),
        bound_text(answer),
    ]


def reason_text(error: str) -> str:
    """Why a policy cannot be used, without the hint: beside others that can, there is nothing to do."""
    return error.split("\nhint:", maxsplit=1)[0]


def bound_text(answer: PredictionDoc | PhasePredictionDoc) -> str:
    """What keeps the program, or a phase of it, from being faster, in words."""
    bound = answer["bound"]
    if isinstance(bound, dict):
        return f"bandwidth of {bound['bandwidth']}"
    return {"compute": "computing", "latency": "latency"}.get(bound, bound)


class Placed(NamedTuple):
    """One object under the chosen policy."""

    item: ObjectDoc
    use: ObjectUseDoc
    shares: list[float]
    action: Action


def placed(comparison: Comparison) -> list[Placed]:
    """Every object under the chosen policy, those that cost most first."""
    chosen = comparison.chosen
    uses = chosen["prediction"]["objects"]
    objects = comparison.profile.data["objects"]
    rows = map(Placed, objects, uses, chosen["fractions"], chosen["actions"])
    return sorted(rows, key=lambda row: (-row.use["stall_s"], row.item["name"]))


def places(comparison: Comparison) -> Table:
    """Where the chosen policy puts each object."""
    nodes = [tier["memory"] for tier in comparison.chosen["prediction"]["tiers"]]
    made = table(
        f"Where the data goes: policy {comparison.brief['chosen']}",
        ("object", "left"),
        ("size", "right", "key"),
        *((node, "right", "key") for node in nodes),
        ("waits", "right"),
        ("of the time", "right", "extra"),
        ("asked of the kernel", "left", "extra"),
    )
    items = placed(comparison)
    for row in items[:ROWS]:
        made.add_row(
            row.item["name"],
            *_size_and_cost([row], _shares(row.shares)),
            asked_text(comparison.brief, row.item["name"], row.action),
        )
    if items[ROWS:]:
        made.add_row(f"and {len(items) - ROWS} more", *_size_and_cost(items[ROWS:], [""] * len(nodes)), "")
    return noted(made, ". ".join(filter(None, [_without_rule(comparison, items[:ROWS]), _unasked(comparison, items)])))


def asked_text(comparison: ComparisonDoc, name: str, action: Action) -> str:
    """What is asked of the kernel for an object, and whether for it alone."""
    return action_text(action) + (" (no rule)" if name in comparison.get("unselected", []) else "")


def _without_rule(comparison: Comparison, items: Sequence[Placed]) -> str:
    """Why some objects have no rule."""
    if not any(row.item["name"] in comparison.brief.get("unselected", []) for row in items):
        return ""
    return (
        "no rule: small objects together, and pages of files, which no rule can select; they are where the thread that "
        "touches them first puts its memory"
    )


def _unasked(comparison: Comparison, items: Sequence[Placed]) -> str:
    """What no rule holds to the budget: objects that are left to first touch, beside others that are placed."""
    fast = comparison.brief["fast_memory"]
    near = [tier["memory"] for tier in comparison.chosen["prediction"]["tiers"]].index(fast)
    left = [row.action == FIRST_TOUCH for row in items]
    spills = any(is_left and row.shares[near] < 1 for is_left, row in zip(left, items, strict=True))
    capacity = next(one for one in comparison.machine.data["memories"] if one["name"] == fast)["capacity_bytes"]
    if all(left) or not spills or comparison.brief["budget_bytes"] >= capacity["value"]:
        return ""
    return (
        f"first touch: no rule holds these objects to the {bytes_text(comparison.brief['budget_bytes'])}; they spill "
        f"as shown where {fast} has no more than that for the program, and stay in {fast} where it has"
    )


def _size_and_cost(rows: list[Placed], shares: list[str]) -> list[str]:
    return [
        bytes_text(sum(row.item["size_bytes"] for row in rows)),
        *shares,
        seconds_text(sum(row.use["stall_s"] for row in rows)),
        percent_text(sum(row.use["share"] for row in rows)),
    ]


def _shares(row: list[float]) -> list[str]:
    return [percent_text(share) if share > 0 else "·" for share in row]


def phases(answer: PredictionDoc) -> list[Table]:
    """What each phase comes to under the chosen placement; nothing where the run is one phase."""
    told = answer.get("phases", [])
    if len(told) < 2:
        return []
    memories = {at: tier["memory"] for at, tier in enumerate(answer["tiers"]) if tier["gb_s"] > 0}
    made = table(
        "What limits each phase",
        ("phase", "left"),
        ("time", "right", "key"),
        ("of the run", "right"),
        ("computing", "right"),
        ("what limits it", "left", "key"),
        *((f"{memory}, GB/s", "right", "extra") for memory in memories.values()),
    )
    for phase in told:
        made.add_row(
            phase["phase"],
            seconds_text(phase["time_s"]),
            percent_text(phase["time_s"] / answer["time_s"]) if answer["time_s"] else "",
            seconds_text(phase["compute_s"]),
            bound_text(phase),
            *(f"{phase['gb_s'][at]:.1f}" for at in memories),
        )
    return [made]


def tiers(answer: PredictionDoc) -> Table:
    """What each memory does under the chosen placement."""
    made = table(
        "What each memory does",
        ("memory", "left"),
        ("holds", "right"),
        ("read", "right"),
        ("written", "right"),
        ("GB/s", "right"),
        ("of its peak", "right"),
        ("latency at rest", "right"),
        ("under this load", "right"),
    )
    for tier in answer["tiers"]:
        made.add_row(
            tier["memory"],
            bytes_text(tier["placed_bytes"]),
            f"{tier['read_bytes'] / 1e9:.1f} GB",
            f"{tier['write_bytes'] / 1e9:.1f} GB",
            f"{tier['gb_s']:.1f}",
            percent_text(tier["utilisation"]),
            f"{tier['idle_ns']:.0f} ns",
            f"{tier['loaded_ns']:.0f} ns",
        )
    return noted(
        made, "GB/s and the share of the peak are over the whole run, the latency is that while the memory is used."
    )


def frontier(comparison: Comparison) -> Table:
    """The least time by amount of fast memory."""
    made = table(
        f"What {comparison.brief['fast_memory']} buys",
        (comparison.brief["fast_memory"], "right"),
        ("of the data", "right"),
        ("time", "right"),
        ("over the least time", "right"),
    )
    points = comparison.brief["frontier"]
    step = max(1, (len(points) - 1) // (FRONTIER_ROWS - 1))
    shown = points[::step] if not points or points[-1] in points[::step] else [*points[::step], points[-1]]
    for point in shown:
        made.add_row(
            bytes_text(point["fast_bytes"]),
            percent_text(point["fast_bytes"] / max(1, comparison.profile.footprint_bytes)),
            seconds_text(point["time_s"]),
            f"{(point['slowdown'] - 1) * 100:.1f} %",
        )
    return made
