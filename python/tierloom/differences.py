"""What changed between two profiles, or between two results of one verb.

Profiles are compared object by object: shares of waiting come with confidence intervals, so a difference is
tested against both; sizes, numbers of allocations and all figures of profiles derived on paper are exact.
Results are documents that a verb printed under ``--json``: numbers are compared key by key, entries of lists by
their names, and a number that has a range (``low_s`` and ``high_s`` beside ``time_s``) by the ranges.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, TypedDict

from tierloom import answer_differences
from tierloom.arguments import path as a_path
from tierloom.arguments import reads
from tierloom.errors import ProfileError, RequestError
from tierloom.notebook_tables import Charted
from tierloom.nouns import Profile
from tierloom.readers import MALFORMED, reading

Verdict = Literal["changed", "within uncertainty", "only in A", "only in B"]
Kind = Literal["profiles", "results"]
Item = Mapping[str, Any]
"""An object of a profile."""

FALSE_ALARMS = 0.05
"""Chance that two runs alike show any changed share, over all shares that are compared together."""

INTERVAL_Z = NormalDist().inv_cdf(0.975)
"""Standard errors on each side of a 95 % interval."""

OTHER_SPEED = 1.1
"""CPU time of one command against its own from which on its runs are not alike: 5 % is usual. Assumed."""

UNCOUNTED = 2.0
"""Factor within which a count may be off that no interval goes with: what the core assumes of code that no window
counted."""

NAMES = ("id", "name", "policy", "object", "memory", "region", "config", "workload", "model", "source")
"""Keys that say which entry of a list is which."""

CHOSEN = "chosen"
"""Where changes of what is chosen are."""

ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class Change:
    """One figure that is not alike in A and B.

    Attributes:
        where: Object, or keys that lead to the figure.
        what: The figure; its key's ending is the unit.
        a: In A; none where there is none.
        b: In B.
        range_a: Its range in A, where it has one.
        range_b: Its range in B.
        verdict: Whether it changed, by what is known of its uncertainty.
    """

    where: str
    what: str
    a: float | None
    b: float | None
    range_a: tuple[float, float] | None = None
    range_b: tuple[float, float] | None = None
    verdict: Verdict = "changed"

    @property
    def relative(self) -> float | None:
        """Change relative to A; none where that has no meaning."""
        return None if self.a in (None, 0.0) or self.b is None else self.b / float(self.a or 1.0) - 1.0


@dataclass(frozen=True, kw_only=True)
class Difference(Charted):
    """Everything that is not alike, the largest change first."""

    kind: Kind
    changes: Sequence[Change]
    remarks: Sequence[str] = ()
    """What the intervals do not tell."""
    answer: Sequence[str] = ()
    """Of two answers of `plan`: what is chosen, how fast it is, and what moves."""

    @property
    def changed(self) -> int:
        """Changes beyond uncertainty."""
        return sum(change.verdict != "within uncertainty" for change in self.changes)


class ChangeDoc(TypedDict):
    """One figure that differs between A and B; ranges are lowest and highest."""

    where: str
    what: str
    a: float | None
    b: float | None
    range_a: list[float] | None
    range_b: list[float] | None
    relative: float | None
    verdict: Verdict


class DifferenceDoc(TypedDict):
    """What ``diff --json`` prints."""

    compared: Kind
    answer: list[str]
    remarks: list[str]
    changed: int
    changes: list[ChangeDoc]


@reads(a=a_path, b=a_path)
def diff(a: str | Path, b: str | Path) -> Difference:
    """What changed between two profiles, or between two results of one verb.

    Objects of profiles are the same where they have one name, or one place of allocation in one program; all others
    are in one profile only.

    Args:
        a: A profile's folder, JSON file or catalog name, or a file with what a verb printed as JSON.
        b: The same of the other, of the same kind.

    Returns:
        ``.kind`` is ``profiles`` or ``results``; ``.changes`` has an entry a figure that is not alike, the largest
        first: where it is, its value in `a` and in `b` in the unit of its key (``_bytes``, ``_s``, ``_gb_s``; shares
        are of 1), their 95 % intervals where there are some, and whether it changed by more than these explain.

    Raises:
        RequestError: One is neither, or they are of different kinds.

    Example:
        >>> found = diff("mg-e", "cg-e")
        >>> found.kind, found.changed > 0
        ('profiles', True)
        >>> diff("mg-e", "mg-e").changes
        []
    """
    first, second = _load(str(a)), _load(str(b))
    if isinstance(first, Profile) and isinstance(second, Profile):
        found = list(_profiles(first, second))
        return Difference(kind="profiles", changes=sorted(found, key=_weight), remarks=list(_remarks(first, second)))
    if isinstance(first, Profile) or isinstance(second, Profile):
        one, other = (a, b) if isinstance(first, Profile) else (b, a)
        message = (
            f"{one} is a profile and {other} a result\nhint: give two profiles, or two files that one verb printed"
        )
        raise RequestError(message)
    listed = sorted(_documents(first, second, ""), key=lambda change: (_part(change), _depth(change), _weight(change)))
    chosen_a, chosen_b = _choice(first), _choice(second)
    if chosen_a is None or chosen_b is None:
        return Difference(kind="results", changes=listed)
    answer = answer_differences.sentences(chosen_a, chosen_b)
    return Difference(kind="results", changes=[*_chosen(chosen_a, chosen_b), *listed], answer=answer)


def _choice(document: Mapping[str, Any]) -> answer_differences.Choice | None:
    """What an answer of `plan` chose; none of another document, and of one that lacks something."""
    try:
        return answer_differences.choice(document)
    except (*MALFORMED, StopIteration):
        return None


def _chosen(one: answer_differences.Choice, other: answer_differences.Choice) -> Iterator[Change]:
    """Time and fast memory of what two answers of `plan` chose, and the objects that move."""
    yield from _numbers(one.row["prediction"], other.row["prediction"], "time_s", CHOSEN)
    yield from _numbers(one.row, other.row, "fast_bytes", CHOSEN)
    for move in answer_differences.moves(one, other):
        yield Change(where=f"{CHOSEN}.{move.object}", what=f"share in {move.memory}", a=move.a, b=move.b)


def _remarks(a: Profile, b: Profile) -> Iterator[str]:
    """Whether something else than the program changed, or the program itself is another."""
    first, second = _program(a), _program(b)
    if not _may_be_one(first, second):
        yield f"A is of {first} and B of {second}: what has one name in both need not be the same data"
    one, other = (profile.data["program"] for profile in (a, b))
    if not one or not other or one.get("command") != other.get("command"):
        return
    before, after = (float(run.get("cpu_s") or 0.0) for run in (one, other))
    if min(before, after) > 0.0 and max(before, after) > OTHER_SPEED * min(before, after):
        yield (
            f"B took {after / before - 1.0:+.0%} CPU time for the command of A: what else the machine did is in the "
            "shares, beyond their intervals; compare several runs of each"
        )


def _program(profile: Profile) -> str | None:
    """The file name of what ran; none where nothing ran (the command is a description then), or nobody knows it."""
    command = profile.data["program"]["command"]
    return Path(command[0]).name if command and "sampling" in profile.data else None


def _may_be_one(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _part(change: Change) -> bool:
    """Points of a frontier have no names, so they say least and come last."""
    return change.where.startswith("frontier.")


def _depth(change: Change) -> tuple[bool, int]:
    """What concerns all of a result stands before its parts; what is within uncertainty last."""
    return change.verdict == "within uncertainty", change.where.count(".")


def _weight(change: Change) -> tuple[int, float, str]:
    """What is in one only, then by relative change; what is within uncertainty last."""
    relative = change.relative
    return (change.verdict == "within uncertainty", -abs(relative) if relative is not None else -math.inf, change.where)


def _load(name: str) -> Profile | dict[str, Any]:
    path = Path(name)
    if path.is_file():
        return _of_file(path)
    try:
        return Profile.load(name)
    except ProfileError as problem:
        if path.is_dir():
            raise
        first = str(problem).partition("\n")[0]
        message = f"{first}\nhint: give a profile's folder or name, or a file with what a verb printed under --json"
        raise RequestError(message) from problem


def _of_file(path: Path) -> Profile | dict[str, Any]:
    with reading(path, "JSON document", "give what a verb printed under --json"):
        text = path.read_text(encoding="utf-8")
        refuse_other_texts(path, text)
        data = json.loads(text)
    if isinstance(data, dict) and {"objects", "phases", "program"} <= data.keys():
        return Profile(text, str(path))
    return data if isinstance(data, dict) else {"": data}


def refuse_other_texts(path: Path, text: str) -> None:
    """Refuses what is no JSON, by what it is.

    Raises:
        RequestError: It is a plan, another TOML file, or something else.
    """
    if text.lstrip().startswith(("{", "[")) and path.suffix != ".toml":
        return
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        told = {}
    if {"policy", "nodes", "predicted"} <= told.keys():
        made = f"tierloom plan {told.get('profile')} --machine {told.get('machine')} --json > {path.stem}.json"
        message = (
            f"{path}: this is a plan, and compared are the answers that plans are made of\nhint: print those with "
            f"`{made}`, and compare the two files"
        )
        raise RequestError(message)
    what = f"this is a {told['kind']}" if isinstance(told.get("kind"), str) else "this is no JSON"
    message = (
        f"{path}: {what}, and no profile nor a result\n"
        "hint: give a profile's folder or name, or a file with what a verb printed under --json"
    )
    raise RequestError(message)


def _profiles(a: Profile, b: Profile) -> Iterator[Change]:
    pairs = _matched(a.data["objects"], b.data["objects"], one_program=_may_be_one(_program(a), _program(b)))
    yield from _shares(a, b, pairs)
    for name, one, other in pairs:
        if one is None or other is None:
            size = (one or other or {})["size_bytes"]
            absent: Verdict = "only in B" if one is None else "only in A"
            at = (None, size) if one is None else (size, None)
            yield Change(where=name, what="size_bytes", a=at[0], b=at[1], verdict=absent)
            continue
        for key in ("size_bytes", "allocations"):
            yield from _exact(name, key, one[key], other[key])
    yield from _traffic(a, b, pairs)


def _matched(a: Sequence[Item], b: Sequence[Item], *, one_program: bool) -> list[tuple[str, Item | None, Item | None]]:
    """Objects of both by name; of one program, those that are left by where they are allocated."""
    by_name = {item["name"]: item for item in b}
    names = {item["name"]: item["name"] for item in a if item["name"] in by_name}
    if one_program:
        left = [item for item in b if item["name"] not in names]
        names |= _renamed([item for item in a if item["name"] not in names], left)
    found: list[Any] = []
    for item in a:
        name, other = item["name"], names.get(item["name"])
        label = name if other in (None, name) else f"{name} ({other} in B)"
        found.append((label, item, by_name.get(other)))
    matched = set(names.values())
    return [*found, *[(name, None, item) for name, item in by_name.items() if name not in matched]]


def _renamed(a: Sequence[Item], b: Sequence[Item]) -> dict[str, str]:
    """Names in B of objects of A; several objects of one place cannot be told apart, and are left."""
    at_place = {one["name"]: [other["name"] for other in b if _at_one_place(one["site"], other["site"])] for one in a}
    claims = Counter(name for names in at_place.values() for name in names)
    return {name: names[0] for name, names in at_place.items() if len(names) == 1 and claims[names[0]] == 1}


def _at_one_place(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a site is the same: a symbol, a path or a name; of a call stack every frame."""
    frames, others = one.get("stack"), other.get("stack")
    if frames is None or others is None:
        return one == other
    return len(frames) == len(others) and all(map(_is_one_frame, frames, others))


def _is_one_frame(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a return address is the same: its offset in one build, its function after a rebuild."""
    functions = (one.get("function"), other.get("function"))
    builds = (one.get("build_id"), other.get("build_id"))
    if one["module"] == other["module"] and (builds[0] == builds[1] or None in functions):
        return bool(one["offset"] == other["offset"])
    return functions[0] is not None and functions[0] == functions[1]


def _shares(a: Profile, b: Profile, pairs: Sequence[tuple[str, Any, Any]]) -> Iterator[Change]:
    """Shares of waiting, tested together so that many objects raise no more false alarms than one."""
    rows = [(name, (one or {}).get("stall"), (other or {}).get("stall")) for name, one, other in pairs]
    rest_a, rest_b = ({row["name"]: row["stall"] for row in profile.data.get("unattributed", [])} for profile in (a, b))
    rows += [(name, rest_a.get(name), rest_b.get(name)) for name in dict.fromkeys([*rest_a, *rest_b])]
    both = [(name, one, other) for name, one, other in rows if one and other]
    limit = NormalDist().inv_cdf(1.0 - FALSE_ALARMS / 2.0 / max(len(both), 1))
    for name, one, other in both:
        if one["share"] != other["share"]:
            yield _tested(name, one, other, limit)


def _tested(name: str, one: Mapping[str, float], other: Mapping[str, float], limit: float) -> Change:
    errors = [(share["high"] - share["low"]) / (2.0 * INTERVAL_Z) for share in (one, other)]
    apart = abs(other["share"] - one["share"])
    return Change(
        where=name,
        what="stall.share",
        a=one["share"],
        b=other["share"],
        range_a=(one["low"], one["high"]),
        range_b=(other["low"], other["high"]),
        verdict="changed" if apart > limit * math.hypot(*errors) else "within uncertainty",
    )


def _traffic(a: Profile, b: Profile, pairs: Sequence[tuple[str, Any, Any]]) -> Iterator[Change]:
    """Accesses and memory traffic of each object over all phases.

    Traffic follows from accesses, so their interval is its own, too. A count of a run that has no interval is an
    estimate that nobody checked: it has to change by the factor by which such estimates are off.
    """
    sums = [_sums(profile) for profile in (a, b)]
    for name, one, other in pairs:
        if one is None or other is None:
            continue
        counts = [total.get(item["name"], {}) for total, item in zip(sums, (one, other), strict=True)]
        near = _nearness(one, other)
        for key in ("accesses", "dram_bytes"):
            yield from _estimated(name, key, counts[0].get(key, 0.0), counts[1].get(key, 0.0), near)


def _sums(profile: Profile) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for phase in profile.data["phases"]:
        for access in phase["accesses"]:
            total = found.setdefault(access["object"], {"accesses": 0.0, "dram_bytes": 0.0})
            total["accesses"] += access["reads"] + access["writes"]
            total["dram_bytes"] += access["dram_read_bytes"] + access["dram_write_bytes"]
    return found


def _nearness(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The part of the larger of two counts by which they may be apart without a change; none of what is exact."""
    if any("stall" in item and not _known(item) for item in (one, other)):
        return 1.0 - 1.0 / UNCOUNTED
    return INTERVAL_Z * math.hypot(*[_relative_error(item) for item in (one, other)])


def _known(item: Mapping[str, Any]) -> bool:
    return bool(item.get("accesses", {}).get("count", 0.0) > 0.0)


def _relative_error(item: Mapping[str, Any]) -> float:
    """Standard error of an object's accesses over their count; none for what was derived on paper."""
    if not _known(item):
        return 0.0
    known = item["accesses"]
    return float((known["high"] - known["low"]) / (2.0 * INTERVAL_Z) / known["count"])


def _estimated(name: str, key: str, a: float, b: float, near: float) -> Iterator[Change]:
    if math.isclose(a, b, rel_tol=ROUNDING):
        return
    is_near = abs(b - a) <= near * max(a, b)
    yield Change(where=name, what=key, a=a, b=b, verdict="within uncertainty" if is_near else "changed")


def _exact(where: str, what: str, a: float, b: float) -> Iterator[Change]:
    if not math.isclose(a, b, rel_tol=ROUNDING):
        yield Change(where=where, what=what, a=float(a), b=float(b))


def _documents(a: Any, b: Any, where: str) -> Iterator[Change]:  # noqa: ANN401 (any JSON)
    """Numbers that differ below one place of both documents."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            yield from _entry(a, b, key, where)
    elif isinstance(a, list) and isinstance(b, list):
        yield from _lists(a, b, where)


def _entry(a: dict[str, Any], b: dict[str, Any], key: str, where: str) -> Iterator[Change]:
    one, other = a.get(key), b.get(key)
    inner = f"{where}.{key}" if where else key
    if _number(one) or _number(other):
        yield from _numbers(a, b, key, where)
    elif one is None or other is None:
        if one is not other:
            yield Change(where=inner, what="", a=None, b=None, verdict="only in B" if one is None else "only in A")
    else:
        yield from _documents(one, other, inner)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(a: dict[str, Any], b: dict[str, Any], key: str, where: str) -> Iterator[Change]:
    one, other = (value if _number(value) else None for value in (a.get(key), b.get(key)))
    if one is None or other is None:
        yield Change(where=where, what=key, a=one, b=other, verdict="only in B" if one is None else "only in A")
        return
    if key.startswith(("low", "high")) or math.isclose(one, other, rel_tol=ROUNDING):
        return
    range_a, range_b = _range(a, key), _range(b, key)
    verdict: Verdict = "changed"
    if range_a and range_b and range_a[0] <= range_b[1] and range_b[0] <= range_a[1]:
        verdict = "within uncertainty"
    yield Change(where=where, what=key, a=one, b=other, range_a=range_a, range_b=range_b, verdict=verdict)


def _range(entry: dict[str, Any], key: str) -> tuple[float, float] | None:
    """`low` and `high` beside a share, `low_s` and `high_s` beside `time_s`."""
    unit = key[key.rfind("_") :] if "_" in key else ""
    low, high = entry.get(f"low{unit}"), entry.get(f"high{unit}")
    return (float(low), float(high)) if low is not None and high is not None else None


def _lists(a: list[Any], b: list[Any], where: str) -> Iterator[Change]:
    name = next((key for key in NAMES if _tells_apart(a, key) and _tells_apart(b, key)), None)
    if name is None:
        keyed_a, keyed_b = ({str(index): item for index, item in enumerate(each)} for each in (a, b))
    else:
        keyed_a, keyed_b = ({str(item[name]): item for item in each} for each in (a, b))
    yield from _documents(keyed_a, keyed_b, where)


def _tells_apart(items: list[Any], key: str) -> bool:
    names = [item.get(key) for item in items if isinstance(item, dict)]
    return len(names) == len(items) == len(set(map(str, names))) and None not in names
