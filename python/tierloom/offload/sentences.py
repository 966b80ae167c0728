"""The sentence that an answer of `infer` opens with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.units import count_text, rate_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.offload.goals import Kind
    from tierloom.offload.user_figures import UserFigures


def opening(kind: Kind, found: UserFigures, rows: Sequence[UserFigures]) -> str:
    """What was asked, answered in one plain sentence.

    Args:
        kind: Which question it was.
        found: What each user gets.
        rows: The table over numbers of users; empty where there is none.
    """
    total = f"{rate_text(found.total_tokens_s)} tokens/s in all"
    if kind == "table":
        return f"Good for {_each(found)}, {total}; {_beyond(found, rows)}."
    if kind == "throughput":
        return f"At most {total}: {_each(found)}."
    return f"{'At most ' if kind == 'limits' else ''}{_each(found)}, {total}."


def _each(found: UserFigures) -> str:
    """So many users with so much each, and how long they wait."""
    waits = f"the first token after {seconds_text(found.ttft_s)}"
    if found.users == 1:
        return f"1 user with {rate_text(found.tokens_s)} tokens/s, {waits}"
    alone = seconds_text(found.ttft_alone_s)
    return f"{found.users} users with {rate_text(found.tokens_s)} tokens/s each, {waits} ({alone} alone)"


def _beyond(found: UserFigures, rows: Sequence[UserFigures]) -> str:
    """What more users than those of the knee would bring."""
    more = [row for row in rows if row.users > found.users]
    if not more:
        return "no more fit"
    best = max(more, key=lambda row: row.total_tokens_s)
    if best.total_tokens_s <= found.total_tokens_s:
        return f"up to {more[-1].users} fit, and bring less in all"
    return f"{count_text(best.users, 'user')} bring {rate_text(best.total_tokens_s)} in all"
