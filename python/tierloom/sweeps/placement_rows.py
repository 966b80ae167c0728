"""``predict`` and ``plan`` as rows: one placement that the study sets, or the best of all policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.nouns import Machine, Profile
from tierloom.placements import fractions
from tierloom.policy_columns import bound_text
from tierloom.policy_search import plan, predict
from tierloom.sweeps.rows import by_name, picked, takes
from tierloom.what_if import scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tierloom.sweeps.rows import Row

NOUNS: dict[str, Callable[[str], object]] = {
    "profile": Profile.load,
    "machine": Machine.load,
    "ran_on": Machine.load,
}


@takes(predict, without=["fractions"])
def predict_row(
    profile: Profile,
    machine: Machine,
    place: Mapping[str, float],
    scale: Mapping[str, float],
    socket: str | None = None,
    rest: str | None = None,
    **asked: Any,  # noqa: ANN401 (as `predict` takes it)
) -> Row:
    """Time of one placement: ``place.OBJECT.MEMORY`` is a share of an object's pages, ``rest`` takes the others."""
    on = scaled(machine, scale)
    answer = predict(profile, on, fractions(profile, on, place, rest, socket), socket=socket, **asked)
    return {
        **picked(answer, "time_s", "low_s", "high_s", "compute_s", "stall_s"),
        "bound": bound_text(answer["bound"]),
        **by_name(answer["tiers"], "memory", "placed_bytes", "gb_s", "utilisation", "loaded_ns"),
    }


@takes(plan)
def plan_row(machine: Machine, scale: Mapping[str, float], **asked: Any) -> Row:  # noqa: ANN401 (as `plan` takes it)
    """The best placement, and the time under each policy."""
    answer = plan(machine=scaled(machine, scale), **asked)
    chosen = answer.chosen["prediction"]
    usable = [policy for policy in answer.data["policies"] if "prediction" in policy]
    return {
        "chosen": answer.data["chosen"],
        **picked(chosen, "time_s", "low_s", "high_s"),
        "fast_bytes": answer.chosen["fast_bytes"],
        "budget_bytes": answer.data["budget_bytes"],
        **by_name(chosen["tiers"], "memory", "placed_bytes", "gb_s", "loaded_ns"),
        **{f"{policy['policy']}.time_s": policy["prediction"]["time_s"] for policy in usable},
    }
