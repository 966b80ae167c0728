"""What watching costs where a program does nothing but ask for memory, and that nothing is lost of what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from unharmed.building import built
from unharmed.harness import observe
from unharmed.ways import ALONE, BACKENDS, NOTHING, Called, Way, under

PAIRS = 400_000
BYTES = 100_000
TURNS = 3
"""The best of so many is compared, turn by turn: other programs on the machine disturb both sides alike."""
PLACED_AT_MOST = 5
"""Times as long under a plan whose rules match nothing: some nanoseconds of a loop of twenty, and the noise of a
machine that others use. With a message for each pair it was 60. What it costs, `benches/recorder.py` measures."""
PROFILED_AT_MOST = 40
"""Times as long when every pair is recorded; with waits it was 100 to 200."""

UNMATCHED = under(Called, None, NOTHING)
LIMITS = ((UNMATCHED, PLACED_AT_MOST), *((under(Called, backend), PROFILED_AT_MOST) for backend in BACKENDS))


@pytest.mark.live(measures=True)
@pytest.mark.parametrize("threads", [2, 1024])
@pytest.mark.parametrize(("way", "at_most"), LIMITS, ids=[way.name for way, _ in LIMITS])
def test_a_storm_is_hardly_slower_and_nothing_is_lost(
    way: Way, at_most: float, threads: int, place: Path, record_property: Callable[[str, object], None]
) -> None:
    command = [str(built("storm.c")), str(threads), str(PAIRS), str(BYTES)]
    turns = [(pair_ns(ALONE, command, place), pair_ns(way, command, place)) for _ in range(TURNS)]
    alone, watched = (min(times) for times in zip(*turns, strict=True))
    record_property("times as long", watched / alone)
    assert watched <= at_most * alone, f"{watched:.0f} ns a pair, alone {alone:.0f}; of all turns {turns}"


def pair_ns(way: Way, command: list[str], place: Path) -> float:
    seen = observe(way, command, place)
    assert (seen.code, seen.stdout) == (0, b"done\n"), seen
    assert not list(lost(seen.told.get("warnings", [])))
    return float((place / "pair_ns.txt").read_text())


def lost(warnings: list[str]) -> Iterator[str]:
    """Samples may be lost, reports of what the program did may not."""
    return (each for each in warnings if "events were lost" in each or "reports were lost" in each)
