"""Random programs, told by their seeds: what they print is the same in every way, and they come to their end.

Each asks for at least 50 blocks from the depth of frames, coroutines, handlers and threads: 200 of them are 10,000
cases in every way. `cases/random_program.cpp` is all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from unharmed.behaviour import Behaviour, differences, report
from unharmed.building import built
from unharmed.harness import observe
from unharmed.ways import ALONE, CALLED, IN_COPIES, Way

CASES = 50
BATCH = 10
EVERY_TIME = range(1, 21)
"""Seeds of every test run; what we look at while we work."""
GATE = range(1_000_001, 1_000_201)
"""Seeds that nothing was made to fit."""


def batches(seeds: range, ways: tuple[Way, ...], *marks: pytest.MarkDecorator) -> list:
    return [
        pytest.param(seeds[at : at + BATCH], way, id=f"{seeds[at]}-{way.name}", marks=marks)
        for at in range(0, len(seeds), BATCH)
        for way in ways
    ]


BATCHES = [
    *batches(EVERY_TIME, CALLED),
    *batches(EVERY_TIME, IN_COPIES, pytest.mark.long),
    *batches(GATE, (*CALLED, *IN_COPIES), pytest.mark.long),
]


@pytest.mark.live
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("seeds", "way"), BATCHES)
def test_random_programs_are_unharmed(seeds: range, way: Way, alone: Callable[..., Behaviour], place: Path) -> None:
    program = str(built("random_program.cpp"))
    found = []
    for seed in seeds:
        command = [program, str(seed), str(CASES)]
        expected = alone(f"random {seed}", lambda command=command: observe(ALONE, command, place))
        assert (expected.code, int(expected.stdout.split()[0]) >= CASES) == (0, True), expected
        if changed := differences(expected, observe(way, command, place)):
            found.append(report(changed, way.typed(command), place))
    assert not found, f"{len(found)} of {len(seeds)}:\n" + "\n".join(found)
