"""A profile against the truth, in bytes that the program loads and stores.

Bytes, for a profile counts the elements of vector code one by one and the processor does not.
"""

import json
import math
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierloom.profiler import kept_counts

from .matching import Found, matched
from .program import Program
from .truth import Truth

LARGE = 0.03
"""Objects with this share of the bytes are asked for their reads and writes."""
FLOOR = 0.05
"""Part of an object's bytes that is added to its reads and its writes, so that an object that is
written once is judged by its reads."""


@dataclass(frozen=True)
class Item:
    """An object's bytes: the truth, and what the profile says."""

    name: str
    reads: float
    writes: float
    found_reads: float
    found_writes: float
    half: float | None = None
    """How far above the count the 95 % interval ends; None where the profile has none."""
    below: float = 0.0
    """How far below the count it begins."""

    @property
    def true(self) -> float:
        """Bytes loaded and stored."""
        return self.reads + self.writes

    @property
    def found(self) -> float:
        """The same as profiled."""
        return self.found_reads + self.found_writes

    @property
    def is_inside(self) -> bool:
        """Whether the truth lies in the interval."""
        return self.half is not None and -self.below <= self.true - self.found <= self.half

    def ratio_off(self) -> float:
        """How far reads by writes is off, in percent."""
        true = (self.reads + FLOOR * self.true) / (self.writes + FLOOR * self.true)
        found = (self.found_reads + FLOOR * self.found) / max(self.found_writes + FLOOR * self.found, 1)
        return 100 * (max(found, 1e-9) / true - 1)


@dataclass(frozen=True)
class Verdict:
    """One recording against the truth; percent."""

    tvd: float
    total: float
    ratio: float
    """Of the object with at least 3 % of the bytes where it is furthest off."""
    warnings: tuple[str, ...]
    samples: int
    items: tuple[Item, ...]

    @property
    def large(self) -> list[Item]:
        """Objects with at least 3 % of the bytes that have an interval."""
        true = sum(one.true for one in self.items)
        return [one for one in self.items if one.half is not None and one.true >= LARGE * true]


def items(profile: dict[str, Any], truths: list[Truth]) -> list[Item]:
    """Every object of both."""
    counted: dict[str, tuple[float, float]] = {}
    for access in (access for phase in profile["phases"] for access in phase["accesses"]):
        reads, writes = counted.get(access["object"], (0.0, 0.0))
        counted[access["object"]] = (reads + access["read_bytes"], writes + access["write_bytes"])

    accesses = {one["name"]: one.get("accesses") for one in profile["objects"]}

    def ends(name: str) -> tuple[float, float] | None:
        known, found = accesses.get(name), sum(counted.get(name, (0.0, 0.0)))
        if not known or not known["count"]:
            return None
        return (1 - known["low"] / known["count"]) * found, (known["high"] / known["count"] - 1) * found

    def item(one: Found) -> Item:
        both = [counted.get(name, (0.0, 0.0)) for name in one.profiled]
        reads, writes = sum(true.read_bytes for true in one.true), sum(true.write_bytes for true in one.true)
        intervals = [ends(name) for name in one.profiled]
        known = [one for one in intervals if one is not None]
        is_known = bool(known) and len(known) == len(intervals)
        below, above = (math.hypot(*side) for side in zip(*known, strict=True)) if is_known else (0.0, None)
        return Item(one.name, reads, writes, sum(r for r, _ in both), sum(w for _, w in both), above, below)

    return [item(one) for one in matched(truths, profile["objects"])]


def judged(profile: dict[str, Any], truths: list[Truth]) -> Verdict:
    """What a profile is worth."""
    all_ = items(profile, truths)
    true, found = sum(one.true for one in all_), sum(one.found for one in all_)
    shares = [abs(one.true / true - one.found / max(found, 1)) for one in all_]
    ratios = [one.ratio_off() for one in all_ if one.true >= LARGE * true]
    sampling = profile["sampling"]
    warnings = tuple(sorted({one["kind"] for one in sampling.get("warnings", [])}))
    ratio = max(ratios, key=abs, default=0.0)
    return Verdict(50 * sum(shares), 100 * (found / true - 1), ratio, warnings, sampling["samples"], tuple(all_))


def recorded(program: Program, tierloom: Path, name: str, options: list[str]) -> None:
    """Makes a new profile of a program, and keeps its recording."""
    kept = program.folder / f"{name}.recording"
    kept.unlink(missing_ok=True)
    tool([tierloom, "profile", *options, "--keep", kept], program, name, program.command)


def analysed(program: Program, tierloom: Path, name: str) -> None:
    """Makes a new profile of a recording that was kept."""
    kept = program.folder / f"{name}.recording"
    counts = [word for file in kept_counts(kept) for word in ("--counts", file)]
    tool([tierloom, "analyse", kept, *counts], program, name)


def tool(words: list[str | Path], program: Program, name: str, command: tuple[str, ...] = ()) -> None:
    """Runs a verb that writes a profile."""
    out = program.folder / f"{name}.profile"
    shutil.rmtree(out, ignore_errors=True)
    with program.input() as given:
        done = subprocess.run(
            [*map(str, words), "-o", str(out), *(["--", *command] if command else [])],
            cwd=program.folder,
            env=program.surroundings,
            stdin=given,
            capture_output=True,
            check=False,
            timeout=1500,
        )
    if not (out / "profile.json").exists():
        message = f"{program.name}: {done.stderr.decode(errors='replace')[-2000:]}"
        raise RuntimeError(message)


def profiled(program: Program, name: str) -> dict[str, Any]:
    """A profile that was made."""
    profile: dict[str, Any] = json.loads((program.folder / f"{name}.profile" / "profile.json").read_text())
    return profile


def apart(verdicts: list[Verdict]) -> int:
    """Large objects of which the intervals of several recordings have no value in common."""
    ends: dict[str, list[tuple[float, float]]] = {}
    for one in (one for verdict in verdicts for one in verdict.large):
        ends.setdefault(one.name, []).append((one.found - one.below, one.found + (one.half or 0.0)))
    return sum(max(low for low, _ in of) > min(high for _, high in of) for of in ends.values())


def spread(verdicts: list[Verdict]) -> float:
    """How far the totals of several recordings lie apart, in percent of their median."""
    totals = [100 + one.total for one in verdicts]
    return 100 * (max(totals) - min(totals)) / max(statistics.median(totals), 1e-9)
