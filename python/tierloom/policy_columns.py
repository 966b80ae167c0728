"""What is told of policies that were compared, and of the memories under one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tierloom.columns import Column, Row, Worded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.schema import ComparisonDoc, PolicyDoc


def policy_columns(fast_memory: str) -> Sequence[Column]:
    """What is told of each policy."""
    return (
        *(Column("policy", "policy"), Column("chosen", "chosen", rank="frame")),
        *(Column("time_s", "time", "seconds", "key"), Column("low_s", "range", "seconds", "key", "high_s")),
        Column("against", "against chosen", "times", "extra", about="time over that of the chosen policy"),
        Column("fast_bytes", f"{fast_memory} used", "bytes", about="bytes of the fast memory that it fills"),
        Column("bound", "what limits it"),
        Column("not_possible", "not possible", rank="frame", about="why it cannot be used"),
        Column("about", "what it does", rank="page"),
    )


def policy_rows(data: ComparisonDoc) -> list[Row]:
    """A row a policy, in the order of the document."""
    times = {each["policy"]: each["prediction"]["time_s"] for each in data["policies"] if "prediction" in each}
    return [_policy_row(policy, data["chosen"], times[data["chosen"]]) for policy in data["policies"]]


def _policy_row(policy: PolicyDoc, chosen: str, chosen_s: float) -> Row:
    is_chosen = policy["policy"] == chosen
    told = {"policy": policy["policy"], "chosen": is_chosen, "ours": is_chosen, "about": policy["about"]}
    if "prediction" not in policy:
        reason = reason_text(policy["refused"])
        return {**told, "time_s": None, "bound": Worded(None, "not possible"), "not_possible": reason}
    answer = policy["prediction"]
    return {
        **told,
        **{key: answer[key] for key in ("time_s", "low_s", "high_s")},
        "against": answer["time_s"] / chosen_s if chosen_s > 0 else None,
        "fast_bytes": policy["fast_bytes"],
        "bound": bound_text(answer["bound"]),
    }


def reason_text(error: str) -> str:
    """Why a policy cannot be used, without the hint: beside others that can, there is nothing to do."""
    return error.split("\nhint:", maxsplit=1)[0]


TIERS = (
    *(Column("memory", "memory"), Column("placed_bytes", "holds", "bytes")),
    *(Column("read_bytes", "read", "gb", "extra"), Column("write_bytes", "written", "gb", "extra")),
    Column("gb_s", "GB/s", "tenths", about="bytes read and written over the run time"),
    Column("utilisation", "of its peak", "percent"),
    *(Column("idle_ns", "latency at rest", "ns"), Column("loaded_ns", "under this load", "ns")),
)
"""What is told of each memory under a placement."""


def bound_text(bound: str | Mapping[str, str]) -> str:
    """What keeps a program, or a phase of it, from being faster.

    Example:
        >>> bound_text({"bandwidth": "cxl"}), bound_text("compute")
        ('bandwidth of cxl', 'computing')
    """
    if isinstance(bound, Mapping):
        return f"bandwidth of {bound['bandwidth']}"
    return {"compute": "computing"}.get(bound, bound)
