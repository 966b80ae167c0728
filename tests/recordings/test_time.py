"""The time of a profile's phases is the run's: what threads did not wait for memory they computed, or were idle."""

from __future__ import annotations

import pytest
from recordings import estimates


@pytest.mark.parametrize("name", estimates.names())
def test_no_time_is_lost(name: str) -> None:
    profile = estimates.profile(name)
    program = profile["program"]
    assert program["threads"] == 1
    waited_s = sum(access["wait_s"] for phase in profile["phases"] for access in phase["accesses"])
    beside_s = sum(phase["compute_s"] + phase["idle_s"] for phase in profile["phases"])
    disturbed_s = sum(program.get(part, 0.0) for part in ("queued_s", "held_s", "sampled_s"))
    assert waited_s + beside_s == pytest.approx(program["wall_s"] - disturbed_s, rel=0.005)
