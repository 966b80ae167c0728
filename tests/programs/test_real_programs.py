"""Programs that nobody here wrote go through `profile` and `run` unharmed, with a sensible object table.

What they do is in `real.py`; the heavy ones and the overheads are `benches/real_programs.py`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from programs.conftest import real

if TYPE_CHECKING:
    from programs.conftest import ThreeWays, Ways

MIB = 1 << 20


def keeps_its_window_in_statics(ways: Ways) -> None:
    assert any("statics" in name for name in ways.objects), "gzip has static arrays and no symbols"


def has_a_dictionary(ways: Ways) -> None:
    largest = max(ways.objects.values(), key=lambda item: item["size_bytes"])
    assert largest["size_bytes"] >= 2 * MIB, "the dictionary of level 2 has 2 MiB, its hash chains more"


def holds_the_waves(ways: Ways) -> None:
    waves = 128**3 * 16
    near = [item for item in ways.objects.values() if waves <= item["size_bytes"] <= 4 * waves]
    assert near, "the transform's array of 128^3 complex numbers is an object"


def holds_the_values(ways: Ways) -> None:
    assert ways.profile["sampling"]["samples"] > 50
    assert sum(item["size_bytes"] for item in ways.objects.values()) > 20_000 * 500, "the values are somewhere"


OBJECTS = {
    "gzip": keeps_its_window_in_statics,
    "xz": has_a_dictionary,
    "numpy and scipy": holds_the_waves,
    "redis": holds_the_values,
}
"""What we know of the data of some."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [program.name for program in real.PROGRAMS if not program.heavy])
def test_a_program_runs_as_ever(three_ways: ThreeWays, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    ways = three_ways(name)
    ways.unharmed()
    ways.sensible()
    OBJECTS.get(name, lambda _ways: None)(ways)


def test_twenty_programs_are_listed() -> None:
    assert len({program.command[0:2] for program in real.PROGRAMS}) >= 20
    assert len({program.name for program in real.PROGRAMS}) == len(real.PROGRAMS)
