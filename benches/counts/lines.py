"""Lines from memory, by object: profiles against two levels of caches through which every access went."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierloom.counted_run import FIRST_LEVEL, geometry
from tierloom.units import LINE_BYTES

from .judge import profiled, recorded
from .matching import matched
from .program import Program
from .truth import Truth, truth

WAYS = {"estimated": [], "counted": ["--count=traffic"]}
"""How lines come into a profile, with the words that ask for it."""


@dataclass(frozen=True)
class LinesVerdict:
    """A profile against the truth; percent."""

    tvd: float
    """Share of the lines that is booked on the wrong object."""
    total: float
    """How far all lines together are off."""


def caches(llc_bytes: int) -> str:
    """For the tool: those that `--count traffic` simulates."""
    return ",".join(",".join(level.split(",")[:2]) for level in (FIRST_LEVEL, geometry(llc_bytes)))


def judged(profile: dict[str, Any], truths: list[Truth]) -> LinesVerdict:
    """What a profile's memory traffic is worth."""
    fetched: dict[str, float] = {}
    for access in (access for phase in profile["phases"] for access in phase["accesses"]):
        fetched[access["object"]] = fetched.get(access["object"], 0.0) + access["dram_read_bytes"] / LINE_BYTES
    pairs = [
        (sum(true.lines_from_memory for true in one.true), sum(fetched.get(name, 0.0) for name in one.profiled))
        for one in matched(truths, profile["objects"])
    ]
    true, found = (max(sum(side), 1.0) for side in zip(*pairs, strict=True))
    tvd = 50 * sum(abs(left / true - right / found) for left, right in pairs)
    return LinesVerdict(tvd, 100 * (found / true - 1))


def verdicts(program: Program, tierloom: Path, tool: Path) -> dict[str, LinesVerdict]:
    """By way, of one recording each."""
    for way, words in WAYS.items():
        recorded(program, tierloom, f"lines-{way}", words)
    profiles = {way: profiled(program, f"lines-{way}") for way in WAYS}
    llc_bytes = profiles["counted"]["program"]["llc_bytes"]
    known = truth(program, tool, f"lines-{llc_bytes}", [f"--caches={caches(llc_bytes)}"])
    return {way: judged(profile, known) for way, profile in profiles.items()}
