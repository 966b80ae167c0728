"""What a person wants of a server: so many users, so quick for each, or simply the most tokens. A noun.

Goals are read from words here once; `user_search` finds the plan that meets them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tierloom.errors import RequestError
from tierloom.offload.user_search import UNLIMITED, Limits

Kind = Literal["users", "limits", "throughput", "table"]


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What is asked for.

    Attributes:
        users: Users in flight, where they are given.
        limits: What every user is to get.
        throughput: The most tokens per second of all together.
    """

    users: int | None = None
    limits: Limits = UNLIMITED
    throughput: bool = False

    @property
    def kind(self) -> Kind:
        """Which question it is; ``table`` where nothing is asked for."""
        if self.throughput:
            return "throughput"
        if self.users is not None:
            return "users"
        return "table" if self.limits == UNLIMITED else "limits"


def goal_of(
    users: int | None, ttft: str | float | None, tokens_per_s: float | None, *, throughput: bool = False
) -> Goal:
    """The goal that words say.

    Raises:
        RequestError: A number is not above 0, or goals exclude each other.
    """
    if users is not None and users < 1:
        message = f"the number of users is {users}\nhint: it has to be at least 1"
        raise RequestError(message)
    if tokens_per_s is not None and not 0.0 < tokens_per_s < float("inf"):
        message = f"{tokens_per_s:g} tokens/s for each user\nhint: it has to be above 0"
        raise RequestError(message)
    limits = Limits(ttft_s=None if ttft is None else seconds_of(ttft), tokens_s=tokens_per_s)
    if throughput and (users is not None or limits != UNLIMITED):
        message = (
            "--throughput takes as many users as it likes, and other goals say how many or how quick\n"
            "hint: leave out --throughput, or the others"
        )
        raise RequestError(message)
    return Goal(users=users, limits=limits, throughput=throughput)


def seconds_of(time: str | float) -> float:
    """Reads ``2s``, ``500ms`` or a number of seconds.

    Raises:
        RequestError: It is no time above 0.

    Example:
        >>> seconds_of("500ms")
        0.5
    """
    text = str(time).strip()
    number, scale = (text[:-2], 1e-3) if text.endswith("ms") else (text.removesuffix("s"), 1.0)
    try:
        seconds = float(number) * scale
    except ValueError:
        seconds = -1.0
    if not 0.0 < seconds < float("inf"):
        message = f"`{time}` is no time\nhint: write for example 2s or 500ms"
        raise RequestError(message)
    return seconds
