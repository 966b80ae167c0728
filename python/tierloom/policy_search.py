"""Where should each object live, and how fast will the program then run?

The faces call these; they hand nouns to the engines of the Rust core and hand its answers on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import tierloom._core as _core
from tierloom import measured_hosts
from tierloom.arguments import each, or_none, reads, real, refused, teams
from tierloom.arguments import names as name_texts
from tierloom.arguments import policies as user_policy_list
from tierloom.errors import RequestError
from tierloom.notebook_tables import Charted, Tabular
from tierloom.nouns import Machine, Plan, Profile
from tierloom.policy_columns import TIERS, bound_text, policy_columns, policy_rows
from tierloom.units import Amount, amount_in_bytes, count_text, fraction, seconds_text
from tierloom.user_policies import PLACEMENT, PlacementQuestion, UserPolicy, placing
from tierloom.user_policies import policies as user_policies
from tierloom.what_if import changed, changes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tierloom.columns import Column, Row
    from tierloom.schema import ComparisonDoc, PolicyDoc, PredictionDoc

Threads = int | Mapping[str, int]
"""How many, or how many on each socket."""


@dataclass(frozen=True, repr=False)
class Comparison(Charted, Tabular):
    """Every policy on one profile and machine.

    A row a policy, in the order of the document. What policies do with single objects is read when it is asked for.
    """

    machine: Machine
    profile: Profile
    brief: ComparisonDoc
    """The answer, but what its policies do with single objects."""
    core: _core.Comparison

    @cached_property
    def data(self) -> ComparisonDoc:
        """The answer as a document, as the verb prints it in JSON."""
        policies = [cast("PolicyDoc", self.core.policy(at)) for at in range(len(self.brief["policies"]))]
        return {**self.brief, "policies": policies}

    @cached_property
    def chosen(self) -> PolicyDoc:
        """The policy that was chosen."""
        return self.policy(self.brief["chosen"])

    def policy(self, name: str) -> PolicyDoc:
        """One policy's result by its name.

        Raises:
            RequestError: No such policy was compared.

        Example:
            >>> answer = plan("mg-e", "liu-a", threads=32)
            >>> answer.policy("local")["prediction"]["time_s"] >= answer.chosen["prediction"]["time_s"]
            True
        """
        return cast("PolicyDoc", self.core.policy(self._position(name)))

    def _position(self, name: str) -> int:
        for at, policy in enumerate(self.brief["policies"]):
            if policy["policy"] == name:
                return at
        known = ", ".join(policy["policy"] for policy in self.brief["policies"])
        raise refused(name, "policy", "no policy that was compared", f"use one of: {known}")

    def plan(self, policy: str | None = None) -> Plan:
        """The chosen placement, or a policy's, as rules that a person can read and edit.

        Raises:
            RequestError: The policy was not compared or cannot be used here.
        """
        at = self._position(self.brief["chosen"] if policy is None else policy)
        return Plan(self.core.plan(at).to_toml())

    @property
    def columns(self) -> Sequence[Column]:
        """Of a policy."""
        return policy_columns(self.brief["fast_memory"])

    def told(self) -> list[Row]:
        """A row a policy: its time with its range, the fast memory it takes, and what limits it."""
        return policy_rows(self.brief)

    def __repr__(self) -> str:
        time_s = self.chosen["prediction"]["time_s"]
        asked = f"{self.profile.name} on {self.machine.name}, {count_text(self.brief['threads'], 'thread')}"
        return f"<Comparison of {asked}: {self.brief['chosen']}, {seconds_text(time_s)}>"


@dataclass(frozen=True, repr=False)
class Prediction(Tabular):
    """How long a program takes under one placement; ``data`` has every part.

    A row a memory: what it holds and what it does.
    """

    data: PredictionDoc

    @property
    def time_s(self) -> float:
        """Run time, s."""
        return self.data["time_s"]

    @property
    def range_s(self) -> tuple[float, float]:
        """What the assumptions leave open, s."""
        return self.data["low_s"], self.data["high_s"]

    @property
    def columns(self) -> Sequence[Column]:
        """Of a memory."""
        return TIERS

    def told(self) -> Sequence[Row]:
        """A row a memory: bytes placed and moved, bandwidth, and latency idle and under this load."""
        return self.data["tiers"]

    def __repr__(self) -> str:
        return f"<Prediction: {seconds_text(self.time_s)}, limited by {bound_text(self.data['bound'])}>"


@reads(policies=or_none(user_policy_list), ablated=name_texts)
def plan(
    profile: Profile | str | Path,
    machine: Machine | str | Path,
    *,
    threads: int | None = None,
    socket: str | None = None,
    nodes: Sequence[str] | None = None,
    fast_memory: Amount | None = None,
    max_slowdown: str | float | None = None,
    policies: str | Sequence[str | Callable[[PlacementQuestion], Mapping[str, str]]] | None = None,
    ran_on: Machine | str | Path | None = None,
    what_if: Sequence[str] = (),
    ablated: Sequence[str] = (),
) -> Comparison:
    """Compares every placement policy and chooses one, as the verb ``plan`` does.

    Args:
        profile: What the program does with its data: a profile, a name of the catalog, or a folder.
        machine: The machine: a name of the catalog (`tierloom machine list`), a file, or a line such as
            ``"dram 512GiB, cxl 1TiB 250ns 60GB/s"``.
        threads: Threads to plan for; the profile's by default.
        socket: Socket where the threads run; the machine's first by default.
        nodes: Memories that may be used, such as ``"ldram,cxl"``; all that the socket reaches by default.
        fast_memory: Fast memory, the nearest, that may be used: ``"64GiB"``, or ``"50%"`` of the program's data.
        max_slowdown: Use the least fast memory with which the program takes at most so much longer than the least time
            that is found with any amount of it: ``"5%"``.
        policies: Policies to compare: ``"usual"`` (the default: all that make sense), local, preferred:NODE, bind:A+B,
            interleave:A+B, weighted:A=3+B=1, weighted-auto:A+B, object-interleave:A+B, object-interleave-traffic:A+B,
            soar, balanced, tierloom, and your own: FILE.py:FUNCTION.

            :mod:`tierloom.user_policies` says how one of your own is written; it may be handed over as it is.
        ran_on: Machine that the profile was recorded on, measured: predictions are anchored to that run. Known by
            itself where `tierloom machine measure` ran there.
        what_if: Change the machine first, and say what that does: MEMORY.FIGURE=AMOUNT, as ``"cxl.idle=+70ns"`` (a
            switch), ``"ldram.bandwidth=x1.17"`` (DDR5-5600 for 4800), ``"cxl.capacity=512GiB"``, ``"cxl.cards=3"``,
            ``"cxl.hosts=4"`` (a pool shared by four), ``"cxl.neighbours=10GB/s"``.

            :mod:`tierloom.what_if` has them all.
        ablated: Objects that cost no memory, as if they were always in the core's caches: what the program would take
            without waiting for them.

    Returns:
        A table, a row a policy; ``.chosen`` is the best and ``.plan()`` its rules.

    Raises:
        RequestError: A quantity or a name is wrong, or a policy of your own raised something.
        PlacementError: No placement does what was asked for.

    Example:
        >>> answer = plan("mg-e", "liu-a", threads=32, fast_memory="64GiB")
        >>> answer.chosen["policy"]
        'tierloom'
    """
    program, on = Profile.of(profile), changed(Machine.of(machine), changes(what_if))
    budget = None if fast_memory is None else amount_in_bytes(fast_memory, program.footprint_bytes)
    slowdown = None if max_slowdown is None else _slowdown(max_slowdown)
    names, own = named(policies)
    request = {
        "threads": threads,
        "socket": socket,
        "nodes": list(nodes) if nodes is not None else None,
        "budget": budget,
        "max_slowdown": slowdown,
        "policies": names,
        "ablated": list(ablated),
    }
    known = measured_hosts.ran_on(program, on, ran_on)
    brought = [placing(policy, program, on) for policy in own]
    answer = _core.compare(on.core, program.core, request, known.core if known else None, brought)
    return Comparison(on, program, cast("ComparisonDoc", answer.brief()), answer)


def named(
    policies: Sequence[str | Callable[[PlacementQuestion], Mapping[str, str]]] | None,
) -> tuple[list[str] | None, list[UserPolicy]]:
    """Names of policies, and those among them that are users' own; None stands for what is usual.

    Raises:
        RequestError: There is no such policy, or it cannot be read.
    """
    return user_policies(policies, PLACEMENT, _core.placement_policies)


def _slowdown(share: str | float) -> float:
    """A share of the time; text without a % from 1 on may be meant as a percentage, so it has to say.

    Raises:
        RequestError: It is no share, or may be one of two.
    """
    value = fraction(share)
    if isinstance(share, str) and value >= 1.0 and not share.strip().endswith("%"):
        message = (
            f"a slow-down of `{share}` is {value:.0%}\nhint: write {share}% or {value * 100:g}%, whichever is meant"
        )
        raise RequestError(message)
    return value


@reads(threads=teams, ablated=name_texts)
def predict(
    profile: Profile,
    machine: Machine,
    fractions: Sequence[Sequence[float]],
    *,
    threads: Threads | None = None,
    socket: str | None = None,
    ablated: Sequence[str] = (),
) -> PredictionDoc:
    """How long a program takes under one placement.

    Args:
        profile: What the program does with its data.
        machine: What memory there is.
        fractions: By object of the profile, the share of its pages in each memory of the machine.
        threads: Threads that the program will run with, by socket where they run on several; those of
            the profile by default.
        socket: Where the threads run unless `threads` says so; the machine's first socket by default.
        ablated: As for :func:`plan`.

    Raises:
        RequestError: The fractions do not fit the profile and machine, or a name is wrong.
    """
    rows = fractions if _are_shares(fractions) else each(each(real(-math.inf)))("placement", fractions)
    by_socket = threads if isinstance(threads, Mapping) else {socket: threads or profile.data["program"]["threads"]}
    request = {
        "teams": [{"socket": name, "threads": many} for name, many in by_socket.items()],
        "fractions": [list(row) for row in rows],
        "ablated": list(ablated),
    }
    return cast("PredictionDoc", _core.predict(machine.core, profile.core, request))


def _are_shares(rows: object) -> bool:
    """Whether rows are plain numbers already, as a loop over placements has them.

    To read each share again takes longer than to predict.
    """
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        return False
    return all(type(share) is float for row in rows for share in row) and math.isfinite(sum(map(sum, rows)))
