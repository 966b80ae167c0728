"""A program whose threads run on two sockets: what the face hands on, and what it refuses."""

from __future__ import annotations

import pytest

import tierloom
from tierloom.errors import RequestError

NEAR, FAR = "socket1", "socket0"
"""Of `liu-a`, seen from `ldram`."""


def time_s(threads: int | dict[str, int], placement: dict[str, float]) -> float:
    return tierloom.predict("mg-e", "liu-a", placement, threads=threads).time_s


def test_one_socket_by_name_is_the_same_as_its_number_of_threads() -> None:
    assert time_s({NEAR: 16}, {"*.ldram": 1.0}) == time_s(16, {"*.ldram": 1.0})


def test_a_second_socket_helps_where_its_memory_does() -> None:
    alone, over = {NEAR: 32}, {NEAR: 32, FAR: 32}
    both = {"*.ldram": 0.5, "*.rdram": 0.5}
    assert time_s(over, both) < 0.6 * time_s(alone, both)
    assert time_s(over, {"*.cxl": 1.0}) == pytest.approx(time_s(alone, {"*.cxl": 1.0}), rel=0.05), "the card is full"


@pytest.mark.parametrize(
    ("threads", "placement", "reason"),
    [
        ({NEAR: 0}, {"*.ldram": 1.0}, "0 is no such number"),
        ({NEAR: 33}, {"*.ldram": 1.0}, "do not fit on socket"),
        ({"socket7": 1}, {"*.ldram": 1.0}, "no socket `socket7`"),
        ({NEAR: 1, FAR: 1}, "local", "threads of one socket"),
    ],
)
def test_wrong_threads_are_refused(threads: dict[str, int], placement: dict[str, float] | str, reason: str) -> None:
    with pytest.raises(RequestError, match=reason) as refused:
        tierloom.predict("mg-e", "liu-a", placement, threads=threads)
    assert "hint:" in str(refused.value)
