"""The columns of what ``offload`` answers, and its documents as rows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.columns import Column, Row, Worded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.offload.documents import PlaceDoc, TrainPolicyDoc

HELD = (
    *(Column("weights_bytes", "weights", "bytes"), Column("kv_bytes", "KV cache", "bytes")),
    *(Column("hidden_bytes", "hidden", "bytes", about="hidden states"), Column("buffer_bytes", "buffers", "bytes")),
)
PLACES = (
    *(Column("place", "place"), *HELD, Column("held_bytes", "of it, in all", "bytes")),
    Column("allowed_bytes", "may hold", "bytes", about="what the runtime's margin leaves of the capacity"),
    Column("capacity_bytes", "capacity", "bytes", "frame"),
)
"""What each place holds: the GPU, and the tiers of the host."""


def place_rows(places: Sequence[PlaceDoc]) -> list[Row]:
    """A row a place, in the order of the document."""
    return [_place_row(place) for place in places]


def _place_row(place: Row) -> Row:
    held = {column.key: place[column.key] for column in HELD}
    shown = {key: amount if amount >= 1.0 else None for key, amount in held.items()}
    return {**place, **shown, "held_bytes": sum(held.values())}


STEPS = (
    *(Column("policy", "policy"), Column("step_s", "step", "seconds"), Column("tokens_s", "tokens/s", "digits", "key")),
    *(Column("forward", "forward", "seconds"), Column("backward", "backward", "seconds")),
    *(Column("optimizer", "optimizer", "seconds"), Column("parameters in", "parameters in", "seconds")),
    Column("against", "plan against it", "gain", "key", about="how much longer than the plan's its step takes"),
    Column("problem", "not possible", rank="frame", about="why it cannot be used"),
)
"""What a step of training takes under each policy."""


def step_rows(policies: Sequence[TrainPolicyDoc]) -> list[Row]:
    """A row a policy, the plan first."""
    return [_step_row(policy, is_plan=index == 0) for index, policy in enumerate(policies)]


def _step_row(policy: TrainPolicyDoc, *, is_plan: bool) -> Row:
    if "problem" in policy:
        no = Worded(None, "not possible")
        return {"policy": policy["policy"], "step_s": None, "against": no, "problem": policy["problem"]}
    pieces = {piece: seconds or None for piece, seconds in policy["pieces_s"].items()}
    against = Worded(0.0, "") if is_plan else policy["against"]
    return {**policy, **pieces, "against": against, "ours": is_plan}
