"""Changes of a machine: what they do to its figures, and that a plan follows them in the right direction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import Tierloom

from tierloom import plan
from tierloom.errors import RequestError
from tierloom.nouns import Machine
from tierloom.what_if import changed, changes, scaled

SOCKET = "socket1"


def liu_a(*words: str) -> Machine:
    return changed(Machine.load("liu-a"), changes(words))


def idle_ns(machine: Machine, memory: str = "cxl") -> float:
    return machine.curve(SOCKET, memory).latency_ns(0.0)


def peak_gb_s(machine: Machine, memory: str = "cxl") -> float:
    return machine.curve(SOCKET, memory).peak_gb_s


def capacity(machine: Machine, memory: str = "cxl") -> float:
    return next(each["capacity_bytes"]["value"] for each in machine.data["memories"] if each["name"] == memory)


def test_a_switch_hop_adds_to_every_latency() -> None:
    before, after = liu_a(), liu_a("cxl.idle=+70ns")
    for load in (0.0, 0.5, 0.9):
        far, near = (each.curve(SOCKET, "cxl").latency_ns(load) for each in (after, before))
        assert far - near == pytest.approx(70.0, abs=1e-6)


@pytest.mark.parametrize(
    ("word", "bandwidth", "size"),
    [
        ("cxl.cards=3", 3.0, 3.0),
        ("cxl.hosts=4", 0.25, 0.25),
        ("cxl.bandwidth=x2", 2.0, 1.0),
        ("cxl.bandwidth=70GB/s", 2.0, 1.0),
        ("cxl.bandwidth=+35GB/s", 2.0, 1.0),
        ("cxl.capacity=256GiB", 1.0, 2.0),
        ("cxl.capacity=-64GiB", 1.0, 0.5),
    ],
)
def test_cards_hosts_bandwidth_and_capacity(word: str, bandwidth: float, size: float) -> None:
    before, after = liu_a(), liu_a(word)
    assert peak_gb_s(after) / peak_gb_s(before) == pytest.approx(bandwidth)
    assert capacity(after) / capacity(before) == pytest.approx(size)
    assert idle_ns(after) == pytest.approx(idle_ns(before))


@settings(max_examples=20, deadline=None)
@given(st.floats(1.0, 20.0), st.sampled_from([0.5, 0.75, 1.0]))
def test_beside_neighbours_latency_is_that_of_all_traffic(gb_s: float, reads: float) -> None:
    alone = liu_a().curve(SOCKET, "cxl", reads)
    beside = liu_a(f"cxl.neighbours={gb_s:.3f}GB/s").curve(SOCKET, "cxl", reads)
    assert beside.peak_gb_s + gb_s <= alone.peak_gb_s * 1.01
    for mine in (0.0, 0.3, 0.6):
        together = mine * beside.peak_gb_s + gb_s
        expected = alone.latency_ns(together / alone.peak_gb_s)
        assert beside.latency_ns(mine) == pytest.approx(expected, rel=0.05)


WORSE = ("cxl.idle=+100ns", "cxl.idle=+400ns", "cxl.hosts=4", "cxl.neighbours=10GB/s", "ldram.bandwidth=x0.5")
BETTER = ("cxl.cards=2", "cxl.cards=4", "ldram.bandwidth=x1.17", "cxl.idle=x0.5", "ldram.capacity=1TiB")


@pytest.mark.parametrize("word", [*WORSE, *BETTER])
def test_a_worse_machine_is_never_faster_and_a_better_one_never_slower(word: str) -> None:
    asked = {"threads": 32, "nodes": ["ldram", "cxl"], "fast_memory": "60GiB"}
    was, now = (plan("ft-d", "liu-a", what_if=words, **asked).chosen["prediction"]["time_s"] for words in ((), (word,)))
    assert now >= was * 0.999 if word in WORSE else now <= was * 1.001


def test_changes_follow_each_other_and_a_factor_is_what_a_study_scales() -> None:
    both = liu_a("cxl.idle=x2", "cxl.idle=+10ns")
    assert idle_ns(both) == pytest.approx(2 * idle_ns(liu_a()) + 10)
    assert liu_a("cxl.idle=x2").data == scaled(Machine.load("liu-a"), {"cxl.idle": 2.0}).data
    assert liu_a() is not None


def test_what_was_changed_is_derived_and_says_how() -> None:
    path = next(each for each in liu_a("cxl.idle=+70ns").data["paths"] if each["to"] == "cxl")
    assert path["idle_ns"]["kind"] == "derived"
    assert "+70" in path["idle_ns"]["how"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("cxl", "it is no change"),
        ("cxl.colour=3", "it is no change"),
        ("cxl.idle=fast", "is no amount"),
        ("cxl.idle=70", "it needs a unit: ns, us"),
        ("cxl.cards=-1", "a number above 0"),
        ("cxl.cards=0", "a number above 0"),
        ("cxl.neighbours=x2", "neighbours have a bandwidth"),
        ("cxl.idle=-1000ns", "nothing would be left"),
        ("cxl.idle=x0", "nothing would be left"),
        ("far.idle=+1ns", "liu-a has no memory far"),
        ("cxl.neighbours=400GB/s", "neighbours may not take 400"),
    ],
)
def test_what_is_no_change_is_refused_with_examples(word: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        liu_a(word)


def test_plan_says_what_the_change_does(tierloom: Tierloom, tmp_path: Path) -> None:
    asked = ("plan", "ft-d", "--machine", "liu-a", "--threads", "32", "--fast-memory", "40GiB")
    answer = tierloom(*asked, "--what-if", "cxl.cards=3", "-o", f"{tmp_path}/ft.toml")
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.startswith("With cxl.cards=3: ")
    told = tierloom(*asked, "--what-if", "cxl.cards=3", "-o", f"{tmp_path}/ft.toml", "--json")
    assert json.loads(told.stdout)["policies"]
