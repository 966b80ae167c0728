"""Programs of the distribution in every way: what they say, how they end, what becomes of their children."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from unharmed import debian
from unharmed.behaviour import Behaviour, differences, report
from unharmed.debian import Program
from unharmed.harness import observe
from unharmed.ways import ALONE, CALLED, Way

SECONDS = 120.0


def every(ways: tuple[Way, ...]) -> list:
    return [
        pytest.param(
            program,
            way,
            id=f"{program.name}-{way.name}",
            marks=[] if program.light else [pytest.mark.long],
        )
        for program in debian.ALL
        for way in ways
    ]


@pytest.mark.live
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("program", "way"), every(CALLED))
def test_a_program_is_unharmed(program: Program, way: Way, alone: Callable[..., Behaviour], place: Path) -> None:
    if missing := program.missing():
        pytest.skip(missing)
    command = program.typed()

    def start(one: Way) -> Behaviour:
        seen = observe(one, command, place, variables=program.variables, timeout_s=SECONDS)
        return seen.seen_by(program.visible)

    expected = alone(program.name, lambda: start(ALONE), words=program.words)
    assert (expected.code, program.says in expected.stdout.decode()) == (program.end, True), expected
    found = differences(expected, start(way), words=program.words, ours_follow=way.ours_follow)
    assert not found, report(found, way.typed(command), place)


def test_forty_programs_are_listed() -> None:
    assert len({program.name for program in debian.ALL}) == len(debian.ALL) >= 40
