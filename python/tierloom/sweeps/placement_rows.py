"""``predict`` and ``plan`` as rows: one placement that the study sets, or the best of all policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.arguments import name_list
from tierloom.nouns import Machine, Profile
from tierloom.placements import fractions
from tierloom.policy_search import bound_word, plan, predict
from tierloom.sweeps.rows import by_name, picked
from tierloom.what_if import scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tierloom.sweeps.rows import Row
    from tierloom.units import Amount
    from tierloom.user_policies import UserPolicy

NOUNS: dict[str, Callable[[str], object]] = {"profile": Profile.load, "machine": Machine.load}


def predict_row(
    profile: Profile,
    machine: Machine,
    place: Mapping[str, float],
    scale: Mapping[str, float],
    threads: int | None = None,
    socket: str | None = None,
    rest: str | None = None,
) -> Row:
    """Time of one placement: ``place.OBJECT.MEMORY`` is a share of an object's pages, ``rest`` takes the others."""
    on = scaled(machine, scale)
    answer = predict(profile, on, fractions(profile, on, place, rest, socket), threads=threads, socket=socket)
    return {
        **picked(answer, "time_s", "low_s", "high_s", "compute_s", "stall_s"),
        "bound": bound_word(answer["bound"]),
        **by_name(answer["tiers"], "memory", "placed_bytes", "gb_s", "utilisation", "loaded_ns"),
    }


def plan_row(
    profile: Profile,
    machine: Machine,
    scale: Mapping[str, float],
    threads: int | None = None,
    socket: str | None = None,
    nodes: str | list[str] | None = None,
    fast_memory: Amount | None = None,
    max_slowdown: str | float | None = None,
    policies: str | list[str | UserPolicy] | None = None,
) -> Row:
    """The best placement, and the time under each policy."""
    answer = plan(
        profile,
        scaled(machine, scale),
        threads=threads,
        socket=socket,
        nodes=name_list(nodes),
        fast_memory=fast_memory,
        max_slowdown=max_slowdown,
        policies=policies,
    )
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
