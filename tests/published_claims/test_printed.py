"""The rule by which a printed figure accepts ours, with its value and unit from how it is printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierloom.published_claims.printed import Figure, figure, read_off


@pytest.mark.parametrize(
    ("printed", "unit", "value", "told"),
    [
        ("80.3%", "", 0.803, "of 1"),
        ("153 ns", "", 153.0, "ns"),
        ("2.8x", "", 2.8, "x"),
        ("336,469,816", "", 336469816.0, ""),
        ("~34%", "", 0.34, "of 1"),
        ("3TB", "", 3.0, "TB"),
        ("52.7", "x", 52.7, "x"),
        ("25", "%", 0.25, "of 1"),
        ("420 GB/s", "", 420.0, "GB/s"),
    ],
)
def test_value_and_unit_follow_from_what_is_printed(printed: str, unit: str, value: float, told: str) -> None:
    read = figure(printed, unit=unit)
    assert (read.value, read.unit) == (pytest.approx(value), told)


@pytest.mark.parametrize("text", ["", "many", "80.3% of it", "1.2.3"])
def test_what_is_no_figure_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no figure"):
        figure(text)


@pytest.mark.parametrize(
    ("read", "low", "high"),
    [
        (figure("100 ns"), 90.0, 110.0),
        (figure("40%"), 0.36, 0.44),
        (figure("40%", change=True), 0.30, 0.50),
        (figure("4%", change=True), 0.02, 0.06),
        (figure("1.42x"), 1.315, 1.525),
        (figure("1.01x"), 0.99, 1.03),
        (figure("44.2", unit="x"), 39.78, 48.62),
        (figure("0.6x"), 0.54, 0.66),
        (figure("3.2%", bound="below"), None, 0.032),
        (figure("1.9x", bound="above"), 1.9, None),
        (figure(["10%", "85%"]), 0.10, 0.85),
        (read_off(8.0, unit="GB/s"), 6.0, 10.0),
        (read_off(20.0, unit="%", change=True), 0.15, 0.25),
    ],
)
def test_the_rule(read: Figure, low: float | None, high: float | None) -> None:
    assert read.accepted == (pytest.approx(low), pytest.approx(high))


@given(st.floats(0.01, 1e9), st.sampled_from(["", "x", "%", "ns"]), st.sampled_from([{}, {"change": True}]))
def test_every_figure_accepts_itself(value: float, unit: str, stated: dict[str, bool]) -> None:
    read = figure(f"{value:.6f}", unit=unit, **stated)
    low, high = read.accepted
    assert low is not None
    assert high is not None
    assert low <= read.value <= high
