"""Executions by `--count`, against the truth: whether all is accounted for, and the shares of what samples saw."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .judge import LARGE, Item, analysed, items, profiled, recorded
from .program import Program
from .truth import LUMPS, Truth, truth

NAME = "counted"
SMALL = LUMPS["a"]
"""Where the truth has thread-local storage of one thread: in memory that the loader asked for."""


@dataclass(frozen=True)
class CountedVerdict:
    """A profile against the truth; percent of all bytes but stacks'."""

    samples: int
    tvd: float
    """How far apart the shares of objects that samples saw are; what no sample saw of them makes theirs smaller."""
    wrong: float
    """The least part of what was attributed to objects that is another object's: what objects have too much."""
    total: float
    """How far off is what was counted, on objects, seen by no sample, and thread-local together."""
    not_sampled: float
    thread_local: float
    intervals: int
    """Objects with at least 3 % of the bytes that have an interval."""
    inside: int
    """Of these, with the truth in it."""


def judged(profile: dict[str, Any], truths: list[Truth]) -> CountedVerdict:
    """What its counts are worth."""
    sampling, all_ = profile["sampling"], items(profile, truths)
    unseen, own = (sampling[kind]["bytes"] for kind in ("not_sampled", "thread_local"))
    true, found = sum(one.true for one in all_), sum(one.found for one in all_)
    seen = [(_placed(one, own), one.found) for one in all_ if one.found]
    trues, founds = (sum(side) for side in zip(*seen, strict=True))
    large = [one for one in all_ if one.half is not None and one.true >= LARGE * true]
    return CountedVerdict(
        samples=sampling["samples"],
        tvd=50 * sum(abs(left / trues - right / founds) for left, right in seen),
        wrong=100 * sum(max(one.found - _placed(one, own), 0.0) for one in all_) / found,
        total=100 * ((found + unseen + own) / true - 1),
        not_sampled=100 * unseen / true,
        thread_local=100 * own / true,
        intervals=len(large),
        inside=sum(abs(_placed(one, own) - one.found) <= (one.half or 0.0) for one in large),
    )


def _placed(one: Item, thread_local: float) -> float:
    """True bytes of an object, as profiles have it."""
    return max(one.true - thread_local, 0.0) if one.name == SMALL else one.true


def verdict(program: Program, tierloom: Path, tool: Path, *, kept: bool, again: bool) -> CountedVerdict:
    """Of one recording, made anew unless it is kept."""
    if again:
        analysed(program, tierloom, NAME)
    elif not kept:
        recorded(program, tierloom, NAME, ["--count=executions"])
    return judged(profiled(program, NAME), truth(program, tool))
