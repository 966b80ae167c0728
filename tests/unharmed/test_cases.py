"""Every small program that is hard to watch, in every way: it must not notice, and nobody must see it from outside."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from unharmed import cases
from unharmed.behaviour import Behaviour, differences, report
from unharmed.building import built, owned_by_nobody
from unharmed.cases import SET_USER_ID, Case
from unharmed.harness import observe
from unharmed.ways import ALONE, CALLED, IN_COPIES, TYPED, Way


def every(ways: tuple[Way, ...], *marks: pytest.MarkDecorator) -> list:
    """Each case in each way."""
    return [
        pytest.param(
            case,
            way,
            id=f"{case.name}-{way.name}",
            marks=[*marks, *([pytest.mark.long] if case.heavy else [])],
        )
        for case in cases.ALL
        for way in ways
    ]


@pytest.mark.live
@pytest.mark.parametrize(
    ("case", "way"), [*every(CALLED), *every(IN_COPIES, pytest.mark.long), *every(TYPED, pytest.mark.long)]
)
def test_a_case_is_unharmed(case: Case, way: Way, alone: Callable[..., Behaviour], place: Path) -> None:
    if case.root and os.geteuid() != 0:
        pytest.skip("only root may do what it does")
    command = typed(case)

    def start(one: Way) -> Behaviour:
        return observe(one, command, place).seen_by(case.visible)

    expected = alone(case.name, lambda: start(ALONE))
    assert (expected.code, case.says in expected.stdout.decode()) == (case.end, True), expected
    found = differences(expected, start(way), ours_follow=way.ours_follow)
    assert not found, report(found, way.typed(command), place)


def typed(case: Case) -> list[str]:
    program = built(case.source, *case.flags)
    return [str(program), *(str(owned_by_nobody(program)) if word == SET_USER_ID else word for word in case.words)]


def test_names_of_cases_differ() -> None:
    assert len({case.name for case in cases.ALL}) == len(cases.ALL)
