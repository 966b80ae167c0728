"""Migration policies of users' own: what they may look at, and their moves checked."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierloom.arguments import refused, whole
from tierloom.errors import RequestError
from tierloom.user_policies.lookup import UserPolicy

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]

Move = tuple[int, "int | str", "int | str", float]
"""Position of a group, the memory that its pages leave and the one that they go to, by position or name, and how many
pages."""

Checked = tuple[int, int, int, float]
"""A move by positions."""

GROUP = whole()
"""A position, NumPy's too, and 8.0 as 8."""


@dataclass(frozen=True)
class MigrationView:
    """What a migration policy may look at: pages that a sampler cannot tell apart are one group.

    Groups stand in the order of their addresses. Rates are of the time since the last look.
    """

    now_s: float
    """Seconds from the start of the run."""
    since_s: float
    """Seconds since the last look."""
    nodes: tuple[str, ...]
    """Names of the memories, nearest first."""
    region: npt.NDArray[np.int64]
    """By group: position of the object that it is part of."""
    pages: Numbers
    """By group and memory: pages there."""
    reads: Numbers
    """By group: reads that missed the last-level cache, per page and second."""
    writes: Numbers
    """By group: lines written back, per page and second; 0 where pages are followed one by one."""
    visits: Numbers
    """By group: visits, per page and second, as accessed bits would show."""
    free: Numbers
    """By memory: free pages."""
    low: Numbers
    """By memory: its low watermark, pages: with fewer free ones the kernel begins to reclaim."""
    latency_ns: Numbers
    """By memory: latency under the load of now, ns."""


@dataclass(frozen=True)
class Migrating:
    """A migration policy as the core takes it."""

    name: str
    about: str
    period_s: float
    sample_period: float
    waits_for_copy: bool
    shootdowns: float
    knobs: list[tuple[str, float]]
    make: Callable[[], Callable[..., list[Checked]]]
    """Starts the policy anew; returns what looks."""


def migrating(found: UserPolicy, knobs: Mapping[str, float]) -> Migrating:
    """A migration policy with these knobs.

    Raises:
        RequestError: It takes no such knob, has no `look`, or no period.
    """

    def start() -> Any:  # noqa: ANN401 (a class of the user's)
        try:
            return found(**knobs)
        except Exception as error:
            raise found.raised(error) from error

    first = start()
    if not callable(getattr(first, "look", None)):
        message = f"policy `{found.name}` has no `look`\nhint: give it a method look(self, view) that returns moves"
        raise RequestError(message)

    def make() -> Callable[..., list[Checked]]:
        policy = start()
        return lambda *told: _moves(found, policy, _view(*told))

    return Migrating(
        found.name,
        found.about,
        period_s=_figure(found.name, first, "period_s", positive=True),
        sample_period=_figure(found.name, first, "sample_period", default=0.0),
        waits_for_copy=bool(getattr(first, "waits_for_copy", False)),
        shootdowns=_figure(found.name, first, "shootdowns", default=1.0),
        knobs=sorted(knobs.items()),
        make=make,
    )


def _view(
    now_s: float,
    since_s: float,
    nodes: list[str],
    region: bytes,
    pages: bytes,
    rates: tuple[bytes, bytes, bytes],
    rooms: tuple[bytes, bytes, bytes],
) -> MigrationView:
    import numpy as np  # when pages move: placing must not wait for it

    reads, writes, visits = map(np.frombuffer, rates)
    free, low, latency_ns = map(np.frombuffer, rooms)
    held = np.frombuffer(pages).reshape(-1, len(nodes))
    where = np.frombuffer(region).astype(np.int64)
    return MigrationView(now_s, since_s, tuple(nodes), where, held, reads, writes, visits, free, low, latency_ns)


def _moves(found: UserPolicy, policy: Any, view: MigrationView) -> list[Checked]:  # noqa: ANN401 (as above)
    try:
        told = policy.look(view)
        moves = [] if told is None else [tuple(each) for each in told]
    except Exception as error:
        raise found.raised(error) from error
    return [_move(found.name, each, view) for each in moves]


def _move(name: str, told: tuple[Any, ...], view: MigrationView) -> Checked:
    group, origin, target, pages = 0, 0, 0, math.nan
    with suppress(TypeError, ValueError, RequestError):
        one, source, end, many = told
        group = GROUP("group", one)
        origin, target = (view.nodes.index(at) if isinstance(at, str) else GROUP("node", at) for at in (source, end))
        pages = float(many)
    if not pages >= 0.0 or group >= len(view.region) or max(origin, target) >= len(view.nodes):
        near = ", ".join(view.nodes)
        hint = f"return (group, from, to, pages) with a group below {len(view.region)} and two of {near}"
        raise refused(told, f"policy `{name}`", "no move", hint)
    return group, origin, target, 0.0 if origin == target else min(pages, float(view.pages[group, origin]))


def _figure(name: str, of: object, what: str, *, default: float | None = None, positive: bool = False) -> float:
    value: Any = getattr(of, what, default)
    if isinstance(value, numbers.Real) and value is not True and math.isfinite(value):
        number = float(value)
        if number > 0.0 or (number == 0.0 and not positive):
            return number
    size = "above 0" if positive else "of 0 or more"
    raise refused(value, f"policy `{name}`, {what}", "no such number", f"set {what} in the class, to a number {size}")
