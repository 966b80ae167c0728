"""How many users: the most that limits allow, and the table from one user to as many as fit.

A plan for more users holds more and does more in each step, so a user's speed falls, and the wait for the first
token grows, with the number of users; the most that meet both limits are found by doubling and bisection, and the
answer is a plan that was timed. Total throughput may rise or fall: where the KV cache outgrows the GPU, more users
can bring less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.errors import PlacementError
from tierloom.offload import planner, shortfall
from tierloom.offload.user_figures import UserFigures, figures
from tierloom.units import count_text, rate_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tierloom.offload.planner import InferPlan
    from tierloom.offload.problem import Problem

STEP = 4
"""Each row of the table has so many times the users of the one before."""

MOST = 4096
"""Most users that a table or a search tries."""

WORTH = 0.2
"""Gain of throughput for twice the users that is worth them: the knee is the last row that brings it."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What every user is to get.

    Attributes:
        ttft_s: Longest time to the first token.
        tokens_s: Fewest tokens per second.
    """

    ttft_s: float | None = None
    tokens_s: float | None = None

    def missed(self, found: UserFigures) -> list[str]:
        """Which limits figures miss, in words; none where all are met."""
        told = []
        if self.ttft_s is not None and found.ttft_s > self.ttft_s:
            told.append(f"the first token takes {seconds_text(found.ttft_s)}, not {seconds_text(self.ttft_s)}")
        if self.tokens_s is not None and found.tokens_s < self.tokens_s:
            told.append(f"each gets {rate_text(found.tokens_s)} tokens/s, not {rate_text(self.tokens_s)}")
        return told


UNLIMITED = Limits()


@dataclass(frozen=True, kw_only=True)
class Served:
    """A plan for a number of users, and what each gets."""

    plan: InferPlan
    figures: UserFigures


def served(problem: Problem, users: int, policy: str) -> Served | None:
    """The fastest plan for so many users; none where they do not fit."""
    plan = planner.fastest(replace(problem, batch=users), policy)
    return None if plan is None else Served(plan=plan, figures=figures(plan))


def exactly(problem: Problem, users: int, limits: Limits, policy: str) -> Served:
    """A plan for a given number of users, held against limits.

    Raises:
        PlacementError: They do not fit, or a limit is missed.
    """
    found = served(problem, users, policy)
    if found is None:
        raise PlacementError(shortfall.explain(replace(problem, batch=users)))
    missed = limits.missed(found.figures)
    if missed:
        fewer = _largest(lambda count: _meets(problem, count, limits, policy), users)
        hint = (
            f"{count_text(fewer.figures.users, 'user')} can have that" if fewer else "no number of users can have that"
        )
        message = f"with {count_text(users, 'user')} {', and '.join(missed)}\nhint: {hint}"
        raise PlacementError(message)
    return found


def most_users(problem: Problem, limits: Limits, policy: str) -> Served:
    """The plan for the most users that all get what the limits say.

    Raises:
        PlacementError: Nothing fits, or no number of users meets the limits: why, and the best there is.
    """
    found = _largest(lambda count: _meets(problem, count, limits, policy), MOST)
    if found is not None:
        return found
    alone = served(problem, 1, policy)
    if alone is None:
        raise PlacementError(shortfall.explain(replace(problem, batch=1)))
    message = (
        f"no number of users meets it, because even with one user {', and '.join(limits.missed(alone.figures))}\n"
        f"hint: the best is {rate_text(alone.figures.tokens_s)} tokens/s with a first token after "
        f"{seconds_text(alone.figures.ttft_s)}"
    )
    raise PlacementError(message)


def table(problem: Problem, policy: str) -> list[Served]:
    """A row for 1, 4, 16, ... users, and one for the most that fit.

    Raises:
        PlacementError: Not even one fits.
    """
    rows: list[Served] = []
    users = 1
    while users <= MOST and (found := served(problem, users, policy)) is not None:
        rows.append(found)
        users *= STEP
    if not rows:
        raise PlacementError(shortfall.explain(replace(problem, batch=1)))
    if users <= MOST:
        fits = _between(lambda count: served(problem, count, policy), rows[-1], users)
        rows += [fits] if fits is not rows[-1] else []
    return rows


def knee(rows: Sequence[Served]) -> int:
    """Index of the last row to which every doubling of users gained at least `WORTH` in throughput."""
    for index in range(1, len(rows)):
        before, now = rows[index - 1].figures, rows[index].figures
        doublings = math.log2(now.users / before.users)
        if (now.total_tokens_s / before.total_tokens_s) ** (1.0 / doublings) < 1.0 + WORTH:
            return index - 1
    return len(rows) - 1


def throughput(problem: Problem, policy: str) -> Served:
    """The plan with the most tokens per second of all users together, however many it takes.

    Where lengths vary or a prefix is shared, what memory is kept for depends on the number of users; it is
    planned for mean lengths first, and then for the most users that fit.

    Raises:
        PlacementError: Nothing fits.
    """
    plan = planner.plan(problem, policy)
    if problem.batch is None and (problem.variation.longest is not None or problem.shared):
        found = _largest(lambda count: served(problem, count, policy), plan.placement.batch)
        if found is None:
            raise PlacementError(shortfall.explain(replace(problem, batch=1)))
        return found
    return Served(plan=plan, figures=figures(plan))


def _meets(problem: Problem, users: int, limits: Limits, policy: str) -> Served | None:
    found = served(problem, users, policy)
    return found if found is not None and not limits.missed(found.figures) else None


def _largest(attempt: Callable[[int], Served | None], most: int) -> Served | None:
    """The last success of attempts with 1, 2, ... users up to `most`, success ending at one number."""
    best, users = None, 1
    while users <= most and (found := attempt(users)) is not None:
        best, users = found, users * 2
    return None if best is None else _between(attempt, best, min(users, most + 1))


def _between(attempt: Callable[[int], Served | None], best: Served, fails: int) -> Served:
    """The last success between one that is known and a number of users that fails."""
    while fails - best.figures.users > 1:
        middle = (best.figures.users + fails) // 2
        found = attempt(middle)
        if found is None:
            fails = middle
        else:
            best = found
    return best
