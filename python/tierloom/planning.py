"""Where should each object live, and how fast will the program then run?

The faces call these; they hand nouns to the engines of the Rust core and hand its answers on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import tierloom._core as _core
from tierloom.nouns import Machine, Plan, Profile
from tierloom.quantities import Amount, amount_in_bytes, fraction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.schema import ComparisonDoc, PolicyDoc, PredictionDoc


@dataclass(frozen=True)
class Comparison:
    """Every policy on one profile and machine; ``data`` is the document that ``--json`` prints."""

    machine: Machine
    profile: Profile
    data: ComparisonDoc

    @property
    def chosen(self) -> PolicyDoc:
        """The policy that was chosen."""
        return self.policy(self.data["chosen"])

    def policy(self, name: str) -> PolicyDoc:
        """One policy's result by its name.

        Raises:
            KeyError: No such policy was compared.
        """
        for policy in self.data["policies"]:
            if policy["policy"] == name:
                return policy
        raise KeyError(name)

    def plan(self, policy: str | None = None) -> Plan:
        """The chosen placement, or a policy's, as rules that a person can read and edit.

        Raises:
            RequestError: The policy was not compared or cannot be used here.
        """
        name = policy or self.data["chosen"]
        return Plan(_core.make_plan(self.machine.text, self.profile.text, json.dumps(self.data), name))


def compare(
    profile: Profile,
    machine: Machine,
    *,
    threads: int | None = None,
    socket: str | None = None,
    nodes: Sequence[str] | None = None,
    fast_memory: Amount | None = None,
    max_slowdown: str | float | None = None,
    policies: Sequence[str] | None = None,
) -> Comparison:
    """Tries every policy and chooses one.

    Args:
        profile: What the program does with its data.
        machine: What memory there is.
        threads: Threads that the program will run with; those of the profile by default.
        socket: Where the threads run; the machine's first socket by default.
        nodes: Memories that may be used; all that the socket reaches by default.
        fast_memory: Fast memory that may be used: bytes, ``"64GiB"``, or ``"50%"`` of the footprint.
        max_slowdown: Take the least fast memory whose time stays within this share of the time with
            all data in fast memory, for example ``"5%"``.
        policies: Names of the policies to compare, such as ``"interleave:ldram+cxl"``; all by default.

    Raises:
        RequestError: A quantity or a name is wrong.
        PlacementError: No placement does what was asked for.

    Example:
        >>> answer = compare(Profile.load("mg-e"), Machine.load("liu-a"), threads=32)
        >>> answer.data["machine"]
        'liu-a'
    """
    budget = None if fast_memory is None else amount_in_bytes(fast_memory, profile.footprint_bytes)
    slowdown = None if max_slowdown is None else fraction(max_slowdown)
    request = {
        "threads": threads,
        "socket": socket,
        "nodes": list(nodes) if nodes is not None else None,
        "budget": budget,
        "max_slowdown": slowdown,
        "policies": list(policies) if policies is not None else None,
    }
    answer = _core.compare(machine.text, profile.text, json.dumps(request))
    return Comparison(machine, profile, cast("ComparisonDoc", json.loads(answer)))


def predict(
    profile: Profile,
    machine: Machine,
    fractions: Sequence[Sequence[float]],
    *,
    threads: int | None = None,
    socket: str | None = None,
) -> PredictionDoc:
    """How long a program takes under one placement.

    Args:
        profile: What the program does with its data.
        machine: What memory there is.
        fractions: By object of the profile, the share of its pages in each memory of the machine.
        threads: Threads that the program will run with; those of the profile by default.
        socket: Where the threads run; the machine's first socket by default.

    Raises:
        RequestError: The fractions do not fit the profile and machine, or a name is wrong.
    """
    request = {
        "threads": threads or profile.data["program"]["threads"],
        "socket": socket,
        "fractions": [list(row) for row in fractions],
    }
    answer = _core.predict(machine.text, profile.text, json.dumps(request))
    return cast("PredictionDoc", json.loads(answer))
