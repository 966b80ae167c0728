"""Tables of plans: what each policy brings, where each object goes, what fast memory buys."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tierloom.columns import Column
from tierloom.nouns import FIRST_TOUCH, action_text
from tierloom.policy_columns import TIERS, bound_text, policy_columns, policy_rows, reason_text
from tierloom.report.table_layout.table import Table, noted
from tierloom.report.tables.profiles import ROWS
from tierloom.units import bytes_text, count_text, percent_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tierloom.nouns import Profile
    from tierloom.policy_search import Comparison
    from tierloom.schema import (
        Action,
        ComparisonDoc,
        ObjectUseDoc,
        PolicyDoc,
        PredictionDoc,
        TierUseDoc,
    )

SAME = 1e-3
"""Times that are no further apart are the same to the planner (`crates/place/src/planner.rs`)."""
NAMED = 3
"""Policies of equal times that a sentence names."""
FRONTIER_ROWS = 9
"""Points of the frontier that a table shows; the pictures show all."""


def policies(data: ComparisonDoc) -> Table:
    """Every policy, the fastest first, those that cannot be used last."""
    fast, chosen = data["fast_memory"], data["chosen"]
    told = {policy["policy"]: policy for policy in data["policies"]}
    made = Table(
        policy_columns(fast),
        policy_rows({**data, "policies": ordered(data)}),
        f"{data['profile']} on {data['machine']}, {count_text(data['threads'], 'thread')} on {data['socket']}, "
        f"at most {bytes_text(data['budget_bytes'])} of {fast}",
        " ".join([f"range: what the assumptions leave open. {chosen}: {told[chosen]['about']}.", *_why_chosen(data)]),
    )
    for policy in data["policies"]:
        if "refused" in policy:
            made.add_reason(policy["policy"], f"not possible: {reason_text(policy['refused'])}")
    return made


def _why_chosen(data: ComparisonDoc) -> Iterator[str]:
    """Why the chosen policy is preferred to others that take as long."""
    times = {each["policy"]: each["prediction"]["time_s"] for each in data["policies"] if "prediction" in each}
    chosen, fast = data["chosen"], data["fast_memory"]
    fastest = _as_fast(times, min(times.values()))
    is_first = fastest[0] == chosen
    others = [name for name in (fastest if is_first else _as_fast(times, times[chosen])) if name != chosen]
    if others:
        named = ", ".join([*others[:NAMED], *([f"{len(others) - NAMED} more"] if len(others) > NAMED else [])])
        first = "it comes before them, and policies are compared from simple to elaborate, or as --policies names them"
        why = first if is_first else f"it takes less {fast}"
        yield f"{chosen} is chosen over {named}, as fast to {percent_text(SAME)}: {why}."


def _as_fast(times: Mapping[str, float], time_s: float) -> list[str]:
    return [name for name, other_s in times.items() if abs(other_s - time_s) <= SAME * time_s]


def ordered(comparison: ComparisonDoc) -> list[PolicyDoc]:
    """Policies by time, the chosen one first among equals, unusable ones last."""

    def key(policy: PolicyDoc) -> tuple[float, bool, str]:
        time = policy["prediction"]["time_s"] if "prediction" in policy else float("inf")
        return time, policy["policy"] != comparison["chosen"], policy["policy"]

    return sorted(comparison["policies"], key=key)


class Placed(NamedTuple):
    """One object under the chosen policy; its size is known to the profile alone."""

    name: str
    size_bytes: int | None
    use: ObjectUseDoc
    shares: list[float]
    action: Action


def placed(chosen: PolicyDoc, sizes: Mapping[str, int]) -> list[Placed]:
    """Every object under a policy, those that cost most first."""
    uses = chosen["prediction"]["objects"]
    each = zip(uses, chosen["fractions"], chosen["actions"], strict=True)
    rows = [Placed(use["object"], sizes.get(use["object"]), use, shares, action) for use, shares, action in each]
    return sorted(rows, key=lambda row: (-row.use["stall_s"], row.name))


def sizes_of(profile: Profile) -> dict[str, int]:
    """Bytes by object."""
    return {item["name"]: item["size_bytes"] for item in profile.data["objects"]}


def places(data: ComparisonDoc, chosen: PolicyDoc, items: Sequence[Placed]) -> Table:
    """Where the chosen policy puts objects."""
    memories = [tier["memory"] for tier in chosen["prediction"]["tiers"]]
    columns = [
        *(Column("object", "object"), Column("size_bytes", "size", "bytes", "key")),
        *(Column(f"in {name}", name, "percent", "key") for name in memories),
        *(Column("stall_s", "waits", "seconds"), Column("share", "of the time", "percent", "extra")),
        Column("action", "asked of the kernel", "code", "extra"),
    ]
    rows = [
        {
            "object": each.name,
            "size_bytes": each.size_bytes,
            **{f"in {name}": share or None for name, share in zip(memories, each.shares, strict=True)},
            **{key: each.use[key] for key in ("stall_s", "share")},
            "action": asked_text(data, each.name, each.action),
        }
        for each in items
    ]
    return Table(columns, rows, f"Where the data goes: policy {data['chosen']}")


def first_places(comparison: Comparison) -> Table:
    """Where it puts those that cost most, and the others together."""
    data, chosen = comparison.brief, comparison.chosen
    items = placed(chosen, sizes_of(comparison.profile))
    made = places(data, chosen, items[:ROWS])
    if others := items[ROWS:]:
        together = {
            "object": f"and {len(others)} more",
            "size_bytes": sum(each.size_bytes or 0 for each in others),
            **{key: sum(each.use[key] for each in others) for key in ("stall_s", "share")},
        }
        made.rows = [*made.rows, together]
    return noted(made, ". ".join(filter(None, [_without_rule(data, items[:ROWS]), _unasked(comparison, items)])))


def asked_text(comparison: ComparisonDoc, name: str, action: Action) -> str:
    """What is asked of the kernel for an object, and whether for it alone."""
    return action_text(action) + (" (no rule)" if name in comparison.get("unselected", []) else "")


def _without_rule(data: ComparisonDoc, items: Sequence[Placed]) -> str:
    """Why some objects have no rule."""
    if not any(row.name in data.get("unselected", []) for row in items):
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


def phases(answer: PredictionDoc) -> list[Table]:
    """What each phase comes to under the chosen placement; nothing where the run is one phase."""
    told = answer.get("phases", [])
    if len(told) < 2:
        return []
    memories = {at: tier["memory"] for at, tier in enumerate(answer["tiers"]) if tier["gb_s"] > 0}
    columns = [
        *(
            Column("phase", "phase"),
            Column("time_s", "time", "seconds", "key"),
            Column("share", "of the run", "percent"),
        ),
        *(Column("compute_s", "computing", "seconds"), Column("bound", "what limits it", rank="key")),
        *(Column(f"in {memory}", f"{memory}, GB/s", "tenths", "extra") for memory in memories.values()),
    ]
    rows = [
        {
            **{key: phase[key] for key in ("phase", "time_s", "compute_s")},
            "share": phase["time_s"] / answer["time_s"] if answer["time_s"] else None,
            "bound": bound_text(phase["bound"]),
            **{f"in {memory}": phase["gb_s"][at] for at, memory in memories.items()},
        }
        for phase in told
    ]
    return [Table(columns, rows, "What limits each phase")]


def tiers(told: Sequence[TierUseDoc]) -> Table:
    """What each memory does under the chosen placement."""
    note = "GB/s and the share of the peak are over the whole run, the latency is that while the memory is used."
    return Table(TIERS, told, "What each memory does", note)


def frontier(comparison: Comparison) -> Table:
    """The least time by amount of fast memory."""
    fast, points = comparison.brief["fast_memory"], comparison.brief["frontier"]
    columns = [
        *(Column("fast_bytes", fast, "bytes"), Column("share", "of the data", "percent")),
        *(Column("time_s", "time", "seconds"), Column("over", "over the least time", "percent_tenths")),
    ]
    step = max(1, (len(points) - 1) // (FRONTIER_ROWS - 1))
    shown = points[::step] if not points or points[-1] in points[::step] else [*points[::step], points[-1]]
    rows = [
        {
            **point,
            "share": point["fast_bytes"] / max(1, comparison.profile.footprint_bytes),
            "over": point["slowdown"] - 1,
        }
        for point in shown
    ]
    return Table(columns, rows, f"What {fast} buys")
